//! Words and how often each occurs, each stored once.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// Words numbered as they are met.
#[derive(Debug, Default)]
pub struct Lexicon {
    letters: String,
    words: Vec<Stored>,
    numbers: HashTable<u32>,
}

/// A word; its letters begin where those of the word before end.
#[derive(Debug, Clone, Copy)]
struct Stored {
    end: usize,
    count: u64,
}

impl Lexicon {
    /// The word's number; it is counted `times` times.
    #[inline]
    pub fn add(&mut self, word: &str, times: u64) -> u32 {
        let hash = xxh3_64(word.as_bytes());
        let (letters, words) = (&self.letters, &self.words);
        let entry = self.numbers.entry(
            hash,
            |number| get(letters, words, *number) == word,
            |number| xxh3_64(get(letters, words, *number).as_bytes()),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(found) => {
                let number = *found.get();
                self.words[number as usize].count += times;
                number
            }
            hashbrown::hash_table::Entry::Vacant(place) => {
                let number = u32::try_from(words.len()).unwrap_or(u32::MAX);
                place.insert(number);
                self.letters.push_str(word);
                self.words.push(Stored { end: self.letters.len(), count: times });
                number
            }
        }
    }

    /// The number of a word that was added.
    #[inline]
    pub fn find(&self, word: &str) -> Option<u32> {
        let same = |number: &u32| get(&self.letters, &self.words, *number) == word;
        self.numbers.find(xxh3_64(word.as_bytes()), same).copied()
    }

    /// How many words it has; they are numbered below that.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The letters of a word.
    #[must_use]
    pub fn word(&self, number: u32) -> &str {
        get(&self.letters, &self.words, number)
    }

    /// How often a word was added.
    #[must_use]
    pub fn count(&self, number: u32) -> u64 {
        self.words[number as usize].count
    }

    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        self.letters.capacity() + self.words.capacity() * size_of::<Stored>() + self.numbers.capacity() * 6
    }

    /// The numbers of the words in the order of their ranks: the most frequent first, equally frequent ones by their letters.
    pub fn ranked(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..self.len()).map(|n| u32::try_from(n).unwrap_or(u32::MAX)).collect();
        numbers.sort_unstable_by(|&a, &b| (self.count(b), self.word(a)).cmp(&(self.count(a), self.word(b))));
        numbers
    }
}

#[inline]
fn get<'a>(letters: &'a str, words: &[Stored], number: u32) -> &'a str {
    let start = number.checked_sub(1).map_or(0, |before| words[before as usize].end);
    &letters[start..words[number as usize].end]
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
        assert_eq!((lexicon.find("c"), lexicon.find("x"), lexicon.len()), (Some(3), None, 6));
        assert!(lexicon.bytes() > 0);
    }
}
