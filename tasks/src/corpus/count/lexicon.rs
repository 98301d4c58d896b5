//! Words and how often each occurs, each stored once. Knows no pair.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// Words numbered as they are met.
#[derive(Debug, Default)]
pub(super) struct Lexicon {
    letters: String,
    /// Where each word's letters end.
    ends: Vec<usize>,
    counts: Vec<u64>,
    numbers: HashTable<u32>,
}

impl Lexicon {
    /// The word's number; it is counted `times` times.
    pub(super) fn add(&mut self, word: &str, times: u64) -> u32 {
        let hash = xxh3_64(word.as_bytes());
        let (letters, ends) = (&self.letters, &self.ends);
        let entry = self.numbers.entry(
            hash,
            |number| get(letters, ends, *number) == word,
            |number| xxh3_64(get(letters, ends, *number).as_bytes()),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(found) => {
                let number = *found.get();
                self.counts[number as usize] += times;
                number
            }
            hashbrown::hash_table::Entry::Vacant(place) => {
                let number = u32::try_from(ends.len()).unwrap_or(u32::MAX);
                place.insert(number);
                self.letters.push_str(word);
                self.ends.push(self.letters.len());
                self.counts.push(times);
                number
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn word(&self, number: u32) -> &str {
        get(&self.letters, &self.ends, number)
    }

    pub(super) fn count(&self, number: u32) -> u64 {
        self.counts[number as usize]
    }

    /// Bytes that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.letters.capacity()
            + self.ends.capacity() * 8
            + self.counts.capacity() * 8
            + self.numbers.capacity() * 6
    }

    /// The numbers of the words in the order of their ranks: the most frequent first, equally frequent ones by their letters.
    pub(super) fn ranked(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..self.len()).map(|n| u32::try_from(n).unwrap_or(u32::MAX)).collect();
        numbers.sort_unstable_by(|&a, &b| (self.count(b), self.word(a)).cmp(&(self.count(a), self.word(b))));
        numbers
    }
}

fn get<'a>(letters: &'a str, ends: &[usize], number: u32) -> &'a str {
    let start = number.checked_sub(1).map_or(0, |before| ends[before as usize]);
    &letters[start..ends[number as usize]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_stored_once_and_ranked_by_count_then_letters() {
        let mut lexicon = Lexicon::default();
        for word in ["b", "a", "", "b", "c", "a", "é"] {
            lexicon.add(word, 1);
        }
        lexicon.add("d", 2);
        let ranked: Vec<(&str, u64)> =
            lexicon.ranked().into_iter().map(|n| (lexicon.word(n), lexicon.count(n))).collect();
        assert_eq!(ranked, [("a", 2), ("b", 2), ("d", 2), ("", 1), ("c", 1), ("é", 1)]);
        assert!(lexicon.bytes() > 0);
    }
}
