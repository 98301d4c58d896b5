//! Phrases without a parser: words side by side far more often than by chance.
//!
//! Neighbours are linked where their NPMI, from the counts of neighbours, is high enough; a phrase is a chain of links, the longest from the
//! left that is allowed. Shares are of the counts of neighbours alone, so the score stays in [-1, 1] (other tools divide by the
//! corpus's size and come out above 1).

use hashbrown::HashTable;
use serde::{Deserialize, Serialize};
use std::ops::Range;

use base::setting::InvalidSetting;

use super::count::{self, Read};
use super::lexicon::Lexicon;
use super::pmi::Marginals;

/// Which neighbours are linked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Adjacent words with a lower count are not linked.
    ///
    /// Source: ours: because NPMI overrates rare pairs; word2phrase drops words below 5.
    pub min_count: u64,
    /// Minimum NPMI to link adjacent words, -1 to 1.
    ///
    /// Source: ours: because it is half-way from independent (0) to never apart (1); word2phrase has a score without bounds.
    pub threshold: f64,
    /// Maximum words of a phrase, from 2.
    ///
    /// Source: ours: because chains of links longer than this are rather clauses than phrases.
    pub max_words: usize,
    /// Punctuation allowed inside a phrase (`-` in `x - ray`); all other punctuation separates phrases.
    ///
    /// Source: ours: because these three join the parts of one word in English.
    pub connectors: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            min_count: 10,
            threshold: 0.5,
            max_words: 6,
            connectors: ["-", "'", "/"].map(str::to_owned).to_vec(),
        }
    }
}

impl Config {
    /// Checks that the config can be meant.
    ///
    /// # Errors
    /// When a number is out of its range.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if !(-1.0..=1.0).contains(&self.threshold) {
            return Err(InvalidSetting::new("threshold", self.threshold, "-1 to 1"));
        }
        if self.max_words < 2 {
            return Err(InvalidSetting::new("max_words", self.max_words, "at least 2"));
        }
        Ok(())
    }
}

/// Linked neighbours.
#[derive(Debug)]
pub struct Phrases {
    /// The words that are linked to any.
    words: Lexicon,
    links: HashTable<Link>,
    /// Per word: whether it is the left one of a link.
    begins: Vec<bool>,
    max_words: usize,
}

/// Two neighbours.
#[derive(Debug, Clone, Copy)]
struct Link {
    key: u64,
    npmi: f64,
}

impl Phrases {
    /// The links among counted neighbours.
    ///
    /// # Errors
    /// When the config is invalid, or neighbours were not counted.
    pub fn of(read: &Read, config: &Config) -> Result<Self, count::Error> {
        config.check()?;
        let Some(table) = read.index.config.neighbours() else {
            let expected = "count, in what the counts were made with";
            return Err(InvalidSetting::new("adjacent", "leave", expected).into());
        };
        let lettered = |word: &str| {
            word.chars().any(char::is_alphanumeric) || config.connectors.iter().any(|c| c == word)
        };
        let keep: Vec<bool> = read.words.iter().map(|word| lettered(&word.letters)).collect();
        let everything = vec![true; keep.len()];
        let marginals = Marginals::of(read, table, &everything)?;
        let mut phrases = Self {
            words: Lexicon::default(),
            links: HashTable::new(),
            begins: Vec::new(),
            max_words: config.max_words,
        };
        read.pairs(table, |pair| {
            let linked =
                keep[pair.left as usize] && keep[pair.right as usize] && pair.count >= config.min_count;
            let npmi = if linked { marginals.npmi(pair) } else { f64::NEG_INFINITY };
            if npmi >= config.threshold {
                let letters = |rank: u32| read.words[rank as usize].letters.as_str();
                phrases.insert(letters(pair.left), letters(pair.right), npmi);
            }
            Ok::<(), count::Error>(())
        })?;
        Ok(phrases)
    }

    /// Links two words, which were not linked before.
    fn insert(&mut self, left: &str, right: &str, npmi: f64) {
        let [left, right] = [left, right].map(|word| self.words.add(word, 1));
        self.begins.resize(self.words.len(), false);
        self.begins[left as usize] = true;
        let key = key(left, right);
        self.links.insert_unique(hash(key), Link { key, npmi }, |link| hash(link.key));
    }

    fn find(&self, left: u32, right: u32) -> Option<&Link> {
        if !self.begins[left as usize] {
            return None;
        }
        let key = key(left, right);
        self.links.find(hash(key), |link| link.key == key)
    }

    /// Number of links.
    #[must_use]
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The NPMI of two neighbours that are linked.
    #[must_use]
    pub fn link(&self, left: &str, right: &str) -> Option<f64> {
        self.find(self.words.find(left)?, self.words.find(right)?).map(|link| link.npmi)
    }

    /// Cuts words into phrases, those of one word included: each word is in exactly one.
    pub fn segment<'w>(&self, words: impl Iterator<Item = &'w str>, phrases: &mut Vec<Range<usize>>) {
        phrases.clear();
        let mut before = None;
        for (at, word) in words.enumerate() {
            let number = self.words.find(word);
            let linked = before.zip(number).is_some_and(|(left, right)| self.find(left, right).is_some());
            match phrases.last_mut().filter(|phrase| linked && phrase.len() < self.max_words) {
                Some(phrase) => phrase.end = at + 1,
                None => phrases.push(at..at + 1),
            }
            before = number;
        }
    }
}

fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// Spreads keys over all bits: Fibonacci hashing (Knuth 6.4), the upper half folded onto the lower.
fn hash(key: u64) -> u64 {
    let spread = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    spread ^ spread >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::{Adjacent, Counting, Distance, LEAST_MEMORY, Order, Room, Weight, Within};
    use crate::word::Case;
    use base::cancel::CancelToken;

    fn counts(adjacent: Adjacent) -> (tempfile::TempDir, Read) {
        counted(Counting::Presence, adjacent)
    }

    fn counted(pairs: Counting, adjacent: Adjacent) -> (tempfile::TempDir, Read) {
        let dir = tempfile::tempdir().unwrap();
        let config = count::Config {
            case: Case::Uncased,
            within: Within::Sentence,
            pairs,
            adjacent,
            min_count: 1,
            max_words: None,
            max_distinct: None,
        };
        let room = Room {
            memory: LEAST_MEMORY,
            threads: 2,
            folder: dir.path().to_owned(),
            cancel: CancelToken::NEVER,
        };
        let counted: Result<_, count::Error> = count::count(&config, count::Share::Whole, &room, |feed| {
            for n in 0..30 {
                feed.text(&format!(
                    "The acute heart failure of patient {n}, an x-ray of the heart of a {n}."
                ))?;
                feed.text(&format!("Chronic heart failure {n} is the end , x-ray {n}"))?;
            }
            Ok(())
        });
        counted.unwrap().write(dir.path()).unwrap();
        let read = Read::open(dir.path()).unwrap();
        (dir, read)
    }

    fn plain() -> Config {
        Config { min_count: 5, threshold: 0.5, max_words: 4, connectors: vec!["-".to_owned()] }
    }

    fn segments(phrases: &Phrases, text: &str) -> Vec<String> {
        let words: Vec<&str> = text.split(' ').collect();
        let mut found = Vec::new();
        phrases.segment(words.iter().copied(), &mut found);
        found.into_iter().map(|phrase| words[phrase].join(" ")).collect()
    }

    #[test]
    fn chains_of_linked_neighbours_are_phrases_and_all_else_is_alone() {
        let (_dir, read) = counts(Adjacent::Count);
        let phrases = Phrases::of(&read, &plain()).unwrap();
        assert_eq!(
            segments(&phrases, "acute heart failure , x - ray of unheard heart failure 3"),
            ["acute heart failure", ",", "x - ray", "of", "unheard", "heart failure", "3"]
        );
        let short = Phrases::of(&read, &Config { max_words: 2, ..plain() }).unwrap();
        assert_eq!(segments(&short, "x - ray"), ["x -", "ray"]);
        let apart = Phrases::of(&read, &Config { connectors: vec![], ..plain() }).unwrap();
        assert_eq!(segments(&apart, "x - ray"), ["x", "-", "ray"]);
        let strict = Phrases::of(&read, &Config { min_count: 1000, ..plain() }).unwrap();
        assert!(strict.is_empty() && segments(&strict, "x - ray").len() == 3);
        assert!(
            phrases.link("x", "-").unwrap() <= 1.0 && phrases.link("ray", "x").is_none() && phrases.len() > 3
        );
        assert!(segments(&phrases, "").len() == 1, "the empty word");
    }

    #[test]
    fn pairs_that_are_neighbours_in_order_are_as_good() {
        let near = |window, weight, order| Counting::Distance(Distance { window, weight, order });
        let (_dir, read) = counts(Adjacent::Count);
        let expected = Phrases::of(&read, &plain()).unwrap();
        for weight in [Weight::Equal, Weight::Inverse] {
            let (_dir, read) = counted(near(1, weight, Order::Directed), Adjacent::Leave);
            let phrases = Phrases::of(&read, &plain()).unwrap();
            assert_eq!(phrases.len(), expected.len());
            assert_eq!(phrases.link("heart", "failure"), expected.link("heart", "failure"));
        }
        for other in [near(2, Weight::Equal, Order::Directed), near(1, Weight::Equal, Order::Symmetric)] {
            let (_dir, read) = counted(other, Adjacent::Leave);
            assert!(Phrases::of(&read, &plain()).is_err());
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let (_dir, read) = counts(Adjacent::Leave);
        assert!(Phrases::of(&read, &plain()).unwrap_err().to_string().contains("adjacent is leave"));
        let refused = |config: Config| config.check().unwrap_err().to_string();
        assert!(refused(Config { threshold: 1.5, ..plain() }).contains("-1 to 1"));
        assert!(refused(Config { max_words: 1, ..plain() }).contains("at least 2"));
    }
}
