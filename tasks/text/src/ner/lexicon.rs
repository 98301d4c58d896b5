//! The distinct words of a dictionary, numbered, and found as fast as may be.
//!
//! An open table: a word of up to sixteen bytes is its own key, so that one slot tells it from all others; of a longer one the slot
//! has a hash, and its letters are compared. Which slot a word has reaches no result.

use xxhash_rust::xxh3::xxh3_128;

/// No word, or no node.
pub(super) const NONE: u32 = u32::MAX;

/// Odd, with bits that look drawn: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The longest word that is its own key, in bytes.
const SHORT: usize = 16;

/// What a slot has of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    /// What a short word consists of, or else the hash of a longer one.
    halves: [u64; 2],
    /// Bytes of a short word, 0 for a longer one.
    length: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    key: Key,
    /// The word, or [`NONE`] where the slot is free.
    number: u32,
}

const FREE: Slot = Slot { key: Key { halves: [0; 2], length: 0 }, number: NONE };

/// Words, numbered as they are first met.
#[derive(Debug, Clone)]
pub(super) struct Lexicon {
    letters: String,
    ends: Vec<usize>,
    slots: Vec<Slot>,
    /// By how much a hash is shifted to be a place among the slots, whose number is a power of two.
    shift: u32,
}

impl Lexicon {
    pub(super) fn new() -> Self {
        let bits = 6;
        Self { letters: String::new(), ends: Vec::new(), slots: vec![FREE; 1 << bits], shift: 64 - bits }
    }

    /// The letters of a word that it has numbered.
    pub(super) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(number).and_then(|&end| self.letters.get(start..end)).unwrap_or_default()
    }

    /// The number of `word`, or [`NONE`].
    #[inline]
    pub(super) fn find(&self, word: &str) -> u32 {
        self.slots[self.place(word, key(word.as_bytes()))].number
    }

    /// The number of `word`, a new one if it has none; [`NONE`] when there are none left.
    pub(super) fn intern(&mut self, word: &str) -> u32 {
        let key = key(word.as_bytes());
        let place = self.place(word, key);
        if self.slots[place].number != NONE {
            return self.slots[place].number;
        }
        let number = u32::try_from(self.ends.len()).unwrap_or(NONE);
        if number == NONE {
            return NONE;
        }
        self.slots[place] = Slot { key, number };
        self.letters.push_str(word);
        self.ends.push(self.letters.len());
        if self.ends.len() * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    /// The slot of a word, or the free one where it would be.
    #[inline]
    fn place(&self, word: &str, key: Key) -> usize {
        let within = self.slots.len() - 1;
        let mut place = self.first_place(key);
        loop {
            let slot = &self.slots[place & within];
            let same = slot.key == key && (key.length != 0 || self.get(slot.number) == word);
            if slot.number == NONE || same {
                return place & within;
            }
            place += 1;
        }
    }

    #[inline]
    fn first_place(&self, key: Key) -> usize {
        let [low, high] = key.halves;
        let mixed = (low ^ high.rotate_left(29) ^ u64::from(key.length)).wrapping_mul(SPREAD);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(SPREAD);
        usize::try_from(mixed >> self.shift).unwrap_or(0)
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![FREE; old.len() * 2];
        self.shift -= 1;
        let within = self.slots.len() - 1;
        for slot in old.into_iter().filter(|slot| slot.number != NONE) {
            let mut place = self.first_place(slot.key);
            while self.slots[place & within].number != NONE {
                place += 1;
            }
            self.slots[place & within] = slot;
        }
    }
}

/// Of a short word its length and all its bytes, two overlapping halves being as good as a whole.
#[inline]
fn key(word: &[u8]) -> Key {
    let length = word.len();
    let eight = (word.first_chunk::<8>(), word.last_chunk::<8>());
    let four = (word.first_chunk::<4>(), word.last_chunk::<4>());
    let halves = match (eight, four) {
        _ if length > SHORT => return Key { halves: hash(word), length: 0 },
        ((Some(&first), Some(&last)), _) => [u64::from_le_bytes(first), u64::from_le_bytes(last)],
        (_, (Some(&first), Some(&last))) => {
            [u64::from(u32::from_le_bytes(first)), u64::from(u32::from_le_bytes(last))]
        }
        _ => match *word {
            [a] => [u64::from(a), 0],
            [a, b] => [u64::from(a), u64::from(b)],
            [a, b, c] => [u64::from(u16::from_le_bytes([a, b])), u64::from(c)],
            _ => [0; 2],
        },
    };
    Key { halves, length: short(length) }
}

#[allow(clippy::cast_possible_truncation, reason = "the two halves are kept")]
fn hash(word: &[u8]) -> [u64; 2] {
    let hash = xxh3_128(word);
    [hash as u64, (hash >> 64) as u64]
}

#[allow(clippy::cast_possible_truncation, reason = "it is at most sixteen")]
fn short(length: usize) -> u32 {
    length as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_numbered_once_and_found_again() {
        let mut lexicon = Lexicon::new();
        // All lengths around the border between short and long, and words that differ in one place only.
        let words: Vec<String> =
            (1..22).flat_map(|n| (0..n).map(move |at| format!("{:a<at$}b{:a<1$}", "", n - at - 1))).collect();
        for (number, word) in words.iter().enumerate() {
            assert_eq!(lexicon.find(word), NONE, "{word}");
            assert_eq!(lexicon.intern(word) as usize, number);
        }
        assert_eq!(lexicon.ends.len(), words.len());
        for (number, word) in words.iter().enumerate() {
            assert_eq!(lexicon.intern(word) as usize, number);
            assert_eq!(lexicon.find(word) as usize, number);
            assert_eq!(lexicon.get(lexicon.find(word)), word);
        }
        assert_eq!([lexicon.find(""), lexicon.find("aaaaaaaaaaaaaaaaaaaa"), lexicon.find("b\0")], [NONE; 3]);
    }

    #[test]
    fn it_grows_without_forgetting() {
        let mut lexicon = Lexicon::new();
        for n in 0..5000u32 {
            assert_eq!(lexicon.intern(&format!("word number {n}")), n);
            assert_eq!(lexicon.intern(&format!("word number {}", n / 2)), n / 2);
        }
        assert!((0..5000).all(|n| lexicon.find(&format!("word number {n}")) == n));
    }
}
