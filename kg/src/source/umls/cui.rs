//! Concept identifiers as numbers, and what concepts have.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use base::read::ReadError;

use crate::source::rrf::Record;

/// A UMLS concept: C and seven digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Cui(u32);

/// Concepts that there can be.
const CONCEPTS: usize = 10_000_000;

impl Cui {
    /// The concept in a field (from 0, called `name` in the documentation).
    pub(super) fn parse<const N: usize>(
        record: &Record<'_, N>,
        column: usize,
        name: &'static str,
    ) -> Result<Self, ReadError> {
        Self::of(record.field(column)).ok_or_else(|| record.wrong(column, name, "C and seven digits"))
    }

    /// The concept that a text names.
    pub(super) fn of(text: &str) -> Option<Self> {
        let [b'C', digits @ ..] = text.as_bytes() else { return None };
        let digits: &[u8; 7] = digits.try_into().ok()?;
        let mut number = 0;
        for digit in digits.map(|digit| digit.wrapping_sub(b'0')) {
            if digit > 9 {
                return None;
            }
            number = number * 10 + u32::from(digit);
        }
        Some(Self(number))
    }

    fn index(self) -> usize {
        self.0 as usize
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
}

impl<T: Copy> CuiMap<T> {
    pub(super) fn new() -> Self {
        Self { pages: Vec::new() }
    }

    pub(super) fn get(&self, cui: Cui) -> Option<T> {
        *self.pages.get(cui.index() / PAGE)?.get(cui.index() % PAGE)?
    }

    /// The place of the concept, made if need be.
    pub(super) fn place(&mut self, cui: Cui) -> &mut Option<T> {
        let place = cui.index();
        if place / PAGE >= self.pages.len() {
            self.pages.resize_with(place / PAGE + 1, Vec::new);
        }
        let page = &mut self.pages[place / PAGE];
        if page.is_empty() {
            page.resize_with(PAGE, || None);
        }
        &mut page[place % PAGE]
    }

    /// All concepts that have something, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Cui, T)> {
        let number = |page: usize, place: usize| Cui(u32::try_from(page * PAGE + place).unwrap_or(u32::MAX));
        self.pages.iter().enumerate().flat_map(move |(at, page)| {
            let places = page.iter().enumerate();
            places.filter_map(move |(place, thing)| thing.map(|thing| (number(at, place), thing)))
        })
    }
}

/// Concepts that were met, by any thread: one bit for each that there can be.
#[derive(Debug)]
pub(super) struct Met {
    words: Vec<AtomicU64>,
}

impl Met {
    pub(super) fn new() -> Self {
        Self { words: (0..CONCEPTS.div_ceil(64)).map(|_| AtomicU64::new(0)).collect() }
    }

    pub(super) fn add(&self, cui: Cui) {
        let (Some(word), bit) = (self.words.get(cui.index() / 64), 1 << (cui.index() % 64)) else { return };
        // Most concepts come many times, and a look costs less than an exchange between processors.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_c_and_seven_digits_are_a_concept() {
        assert_eq!(Cui::of("C0012345").map(|cui| cui.to_string()).as_deref(), Some("C0012345"));
        assert_eq!(Cui::of("C9999999"), Some(Cui(9_999_999)));
        for bad in ["", "C", "C001234", "C00123456", "c0012345", "C00123 5", "C001234\u{663}", "D0012345"] {
            assert_eq!(Cui::of(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_map_holds_what_was_put_there_in_the_order_of_concepts() {
        let mut map = CuiMap::new();
        for number in [9_999_999, 0, 4096, 4095] {
            *map.place(Cui(number)) = Some(number + 1);
        }
        assert_eq!(map.get(Cui(4096)), Some(4097));
        assert_eq!((map.get(Cui(1)), map.get(Cui(5_000_000))), (None, None));
        let numbers: Vec<u32> = map.iter().map(|(cui, _)| cui.0).collect();
        assert_eq!(numbers, [0, 4095, 4096, 9_999_999]);
    }

    #[test]
    fn the_met_are_counted_once() {
        let met = Met::new();
        [3, 64, 3, 9_999_999, 64].iter().for_each(|&number| met.add(Cui(number)));
        assert_eq!(met.count(), 3);
    }
}
