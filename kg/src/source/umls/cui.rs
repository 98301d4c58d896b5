//! Concept identifiers as numbers. Knows no file.

use std::fmt;

use crate::source::rrf::{self, Record};

/// A UMLS concept: C and seven digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cui(u32);

impl Cui {
    /// The concept in a field (from 0, called `name` in the documentation).
    pub(super) fn parse<const N: usize>(
        record: &Record<'_, N>,
        column: usize,
        name: &'static str,
    ) -> Result<Self, rrf::Error> {
        let number = match record.field(column).as_bytes() {
            [b'C', digits @ ..] if digits.len() == 7 => digits.iter().try_fold(0, |number, digit| {
                digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0'))
            }),
            _ => None,
        };
        number.map(Self).ok_or_else(|| record.wrong(column, name, "C and seven digits"))
    }
}

impl fmt::Display for Cui {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "C{:07}", self.0)
    }
}

/// Concepts of a page.
const PAGE: usize = 4096;

/// Something for each concept. Concepts are numbers below ten million, so it is a table of pages and not a hash map: one look
/// per row of MRREL is what reading UMLS spends its time on. A page is made when its first concept comes, so that a subset
/// with high numbers costs no more than it holds.
#[derive(Debug)]
pub(super) struct CuiMap<T> {
    pages: Vec<Vec<Option<T>>>,
    count: u64,
}

impl<T> CuiMap<T> {
    pub(super) fn new() -> Self {
        Self { pages: Vec::new(), count: 0 }
    }

    pub(super) fn get(&self, cui: Cui) -> Option<&T> {
        let place = cui.0 as usize;
        self.pages.get(place / PAGE)?.get(place % PAGE)?.as_ref()
    }

    /// What the concept has, put there by `make` if it has nothing yet.
    pub(super) fn get_or_insert_with(&mut self, cui: Cui, make: impl FnOnce() -> T) -> &mut T {
        let place = cui.0 as usize;
        if place / PAGE >= self.pages.len() {
            self.pages.resize_with(place / PAGE + 1, Vec::new);
        }
        let page = &mut self.pages[place / PAGE];
        if page.is_empty() {
            page.resize_with(PAGE, || None);
        }
        let count = &mut self.count;
        page[place % PAGE].get_or_insert_with(|| {
            *count += 1;
            make()
        })
    }

    /// Concepts that have something.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}
