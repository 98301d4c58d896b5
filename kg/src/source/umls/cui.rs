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

/// Something for each concept. Concepts are numbers below ten million, so it is a slice and not a hash map: one look per row of
/// MRREL is what reading UMLS spends its time on.
#[derive(Debug)]
pub(super) struct CuiMap<T> {
    slots: Vec<Option<T>>,
    count: u64,
}

impl<T> CuiMap<T> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), count: 0 }
    }

    pub(super) fn get(&self, cui: Cui) -> Option<&T> {
        self.slots.get(cui.0 as usize)?.as_ref()
    }

    /// What the concept has, put there by `make` if it has nothing yet.
    pub(super) fn get_or_insert_with(&mut self, cui: Cui, make: impl FnOnce() -> T) -> &mut T {
        let place = cui.0 as usize;
        if place >= self.slots.len() {
            self.slots.resize_with(place + 1, || None);
        }
        let count = &mut self.count;
        self.slots[place].get_or_insert_with(|| {
            *count += 1;
            make()
        })
    }

    /// Concepts that have something.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}
