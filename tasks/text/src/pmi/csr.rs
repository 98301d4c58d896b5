//! The file of a relevance matrix: its layout, and how it is made.
//!
//! All numbers are little-endian, all sections begin at a multiple of 8 bytes: the header, then where each row's entries begin (one more than
//! there are words), the entries' columns, their relevances, a hash table of words, where each word's letters end, the letters, and the
//! XXH3 of all that comes before it.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

/// The first eight bytes.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"engraftM");
pub(super) const VERSION: u64 = 1;
/// A slot of the hash table without a word.
pub(super) const EMPTY: u32 = u32::MAX;

/// The header, in words of 8 bytes.
pub(super) const HEADER: usize = 6;

/// Where the sections lie, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) words: usize,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
    pub(super) relevances: Range<usize>,
    pub(super) slots: Range<usize>,
    pub(super) ends: Range<usize>,
    pub(super) letters: Range<usize>,
    /// Where the check lies: the last eight bytes.
    pub(super) check: usize,
}

impl Layout {
    /// Of so many words, entries, slots and bytes of letters. `None` beyond what a machine can address.
    pub(super) fn new([words, entries, slots, letters]: [u64; 4]) -> Option<Self> {
        let mut at = HEADER * 8;
        let mut section = |count: u64, size: usize| {
            let bytes = usize::try_from(count).ok()?.checked_mul(size)?;
            let range = at..at.checked_add(bytes)?;
            at = range.end.checked_next_multiple_of(8)?;
            Some(range)
        };
        let rows = section(words.checked_add(1)?, 8)?;
        let columns = section(entries, 4)?;
        let relevances = section(entries, 4)?;
        let slots = section(slots, 4)?;
        let ends = section(words, 8)?;
        let letters = section(letters, 1)?;
        Some(Self {
            words: usize::try_from(words).ok()?,
            rows,
            columns,
            relevances,
            slots,
            ends,
            letters,
            check: at,
        })
    }
}

/// The slot at which a word is looked for first.
pub(super) fn slot(word: &str, slots: usize) -> usize {
    // `slots` is a power of two.
    let bits = xxh3_64(word.as_bytes()) & (slots as u64).wrapping_sub(1);
    usize::try_from(bits).unwrap_or(0)
}

/// Rows in the making.
#[derive(Debug)]
pub(super) struct Rows {
    rows: Vec<Vec<(u32, f32)>>,
}

impl Rows {
    pub(super) fn new(words: usize) -> Self {
        Self { rows: vec![Vec::new(); words] }
    }

    /// Adds an entry; those of a row come with ascending columns. One without relevance is left out.
    pub(super) fn push(&mut self, row: u32, column: u32, relevance: f32) {
        if relevance > 0.0 {
            self.rows[row as usize].push((column, relevance));
        }
    }

    pub(super) fn entries(&self) -> u64 {
        self.rows.iter().map(|row| row.len() as u64).sum()
    }

    /// The file.
    pub(super) fn encode(&self, words: &[&str]) -> Vec<u8> {
        let slots = (words.len() * 2).next_power_of_two();
        let mut table = vec![EMPTY; slots];
        for (number, word) in (0..).zip(words) {
            let mut at = slot(word, slots);
            while table[at] != EMPTY {
                at = (at + 1) & (slots - 1);
            }
            table[at] = number;
        }
        let letters: usize = words.iter().map(|word| word.len()).sum();
        let sizes = [words.len() as u64, self.entries(), slots as u64, letters as u64];
        let mut file = Vec::new();
        for number in [MAGIC, VERSION].into_iter().chain(sizes) {
            file.extend(number.to_le_bytes());
        }
        let mut start = 0u64;
        file.extend(start.to_le_bytes());
        for row in &self.rows {
            start += row.len() as u64;
            file.extend(start.to_le_bytes());
        }
        let entries = || self.rows.iter().flatten();
        entries().for_each(|(column, _)| file.extend(column.to_le_bytes()));
        pad(&mut file);
        entries().for_each(|(_, relevance)| file.extend(relevance.to_le_bytes()));
        pad(&mut file);
        table.iter().for_each(|number| file.extend(number.to_le_bytes()));
        pad(&mut file);
        let mut end = 0u64;
        for word in words {
            end += word.len() as u64;
            file.extend(end.to_le_bytes());
        }
        words.iter().for_each(|word| file.extend(word.as_bytes()));
        pad(&mut file);
        let check = xxh3_64(&file);
        file.extend(check.to_le_bytes());
        file
    }
}

fn pad(file: &mut Vec<u8>) {
    file.resize(file.len().next_multiple_of(8), 0);
}
