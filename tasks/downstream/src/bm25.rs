//! BM25 (Robertson and others 1994) as Lucene's `BM25Similarity` has it, over texts in memory.
//!
//! score = sum over the query's words of idf * tf / (tf + k1 * (1 - b + b * length / mean length)), idf = ln(1 + (N - n + 0.5) / (n + 0.5)),
//! with k1 = 1.2 and b = 0.75. A word that a query says twice counts twice. Lucene keeps lengths in a byte each; here they are exact.
//!
//! Words are those of BERT's basic tokenizer in lower case and without accents, of which those without a letter or digit are left out; no
//! stop words, no stemming. Lucene's ICU analyser, which the published lists come from, keeps some punctuation inside words (`don't`).

use std::collections::HashMap;

use base::exact;

use tasks::Error;
use tasks::token::encode::Case;
use text::word::Words;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Texts with the words that are in them.
#[derive(Debug)]
pub struct Index {
    words: HashMap<String, usize>,
    /// For each word, the texts that have it and how often, by number.
    postings: Vec<Vec<(u32, u32)>>,
    /// For each text, k1 * (1 - b + b * length / mean length).
    norms: Vec<f64>,
    /// Texts with a word.
    filled: usize,
}

/// A text that shares a word with the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its number.
    pub text: u32,
    /// Its score, above 0.
    pub score: f64,
}

/// What searches one query after the other, in the memory of one.
#[derive(Debug)]
pub struct Searcher<'a> {
    index: &'a Index,
    splitter: Words,
    scores: Vec<f64>,
    touched: Vec<u32>,
}

/// The words of a text that are searched for.
fn searched<'a>(splitter: &'a mut Words, text: &str) -> impl Iterator<Item = String> + use<'a> {
    splitter.split(text);
    let words = splitter.iter().filter(|word| word.letters.chars().any(char::is_alphanumeric));
    words.map(|word| word.letters.to_owned())
}

impl Index {
    /// Indexes texts; they are called by their place.
    ///
    /// # Errors
    /// When there are more than 2^32 - 1.
    pub fn new<S: AsRef<str>>(texts: &[S]) -> Result<Self, Error> {
        let mut words: HashMap<String, usize> = HashMap::new();
        let mut postings: Vec<Vec<(u32, u32)>> = Vec::new();
        let (mut splitter, mut lengths) = (Words::new(Case::Uncased), Vec::with_capacity(texts.len()));
        for (text, number) in texts.iter().zip(0_usize..) {
            let too_many = |_| {
                let found = texts.len();
                Error::Unfit(format!("{found} texts, expected at most 4,294,967,295: index parts of them"))
            };
            let number = u32::try_from(number).map_err(too_many)?;
            let mut length = 0_u64;
            for word in searched(&mut splitter, text.as_ref()) {
                let id = *words.entry(word).or_insert_with(|| {
                    postings.push(Vec::new());
                    postings.len() - 1
                });
                match postings[id].last_mut().filter(|(text, _)| *text == number) {
                    Some((_, times)) => *times += 1,
                    None => postings[id].push((number, 1)),
                }
                length += 1;
            }
            lengths.push(length);
        }
        // Texts without a word are as if they were not there.
        let filled = lengths.iter().filter(|&&length| length > 0).count();
        let mean = lengths.iter().sum::<u64>().max(1) as f64 / filled.max(1) as f64;
        let norms = lengths.iter().map(|&length| K1 * (1.0 - B + B * length as f64 / mean)).collect();
        Ok(Self { words, postings, norms, filled })
    }

    /// Ready to search.
    #[must_use]
    pub fn searcher(&self) -> Searcher<'_> {
        let splitter = Words::new(Case::Uncased);
        Searcher { index: self, splitter, scores: vec![0.0; self.norms.len()], touched: Vec::new() }
    }
}

impl Searcher<'_> {
    /// The texts that share a word with `query`, the best first, equally good ones by number.
    pub fn search(&mut self, query: &str) -> Vec<Hit> {
        for word in searched(&mut self.splitter, query) {
            let Some(&id) = self.index.words.get(&word) else { continue };
            let postings = &self.index.postings[id];
            let (all, with) = (self.index.filled as f64, postings.len() as f64);
            let idf = exact::ln(1.0 + (all - with + 0.5) / (with + 0.5));
            for &(text, times) in postings {
                let (score, times) = (&mut self.scores[text as usize], f64::from(times));
                if *score == 0.0 {
                    self.touched.push(text);
                }
                *score += idf * times / (times + self.index.norms[text as usize]);
            }
        }
        let score = |text: u32| Hit { text, score: std::mem::take(&mut self.scores[text as usize]) };
        let mut hits: Vec<Hit> = self.touched.drain(..).map(score).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.text.cmp(&b.text)));
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_by_hand() {
        let index = Index::new(&["Fever, fever!", "A fever, pain in the knee", "pain"]).unwrap();
        let hits = index.searcher().search("FEVER ?");
        // N 3, n 2, lengths 2, 6, 1: mean 3.
        let idf = (1.0_f64 + 1.5 / 2.5).ln();
        let first = idf * 2.0 / (2.0 + 1.2 * (0.25 + 0.75 * 2.0 / 3.0));
        let second = idf * 1.0 / (1.0 + 1.2 * (0.25 + 0.75 * 6.0 / 3.0));
        assert_eq!(hits.iter().map(|hit| hit.text).collect::<Vec<_>>(), [0, 1]);
        assert!((hits[0].score - first).abs() < 1e-12 && (hits[1].score - second).abs() < 1e-12, "{hits:?}");
    }

    #[test]
    fn words_said_twice_count_twice_and_searches_do_not_touch() {
        let index = Index::new(&["fever", "pain fever", "Ménière's"]).unwrap();
        let mut searcher = index.searcher();
        let once = searcher.search("pain");
        let twice = searcher.search("pain, pain");
        assert_eq!((once.len(), twice.len()), (1, 1));
        assert!((twice[0].score - 2.0 * once[0].score).abs() < 1e-12);
        assert_eq!(searcher.search("pain"), once);
        assert_eq!(searcher.search("meniere")[0].text, 2);
        assert_eq!(searcher.search("? nothing of that").len(), 0);
    }

    #[test]
    fn equal_scores_go_by_number_and_empty_indexes_find_nothing() {
        let index = Index::new(&["a b", "b a", "c"]).unwrap();
        let hits = index.searcher().search("b");
        assert_eq!(hits.iter().map(|hit| hit.text).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(Index::new::<&str>(&[]).unwrap().searcher().search("a"), []);
        assert_eq!(Index::new(&["", "..."]).unwrap().searcher().search("a"), []);
        let [with, without] = [&["", "a b", "a"][..], &["a b", "a"]]
            .map(|texts| Index::new(texts).unwrap().searcher().search("b")[0].score);
        assert_eq!(with, without, "what has no word is not there");
    }
}
