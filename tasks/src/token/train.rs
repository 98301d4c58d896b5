//! Trains a WordPiece vocabulary that is the same for the same text, whatever the machine.

use std::collections::{BTreeMap, BTreeSet};

use tokenizers::models::wordpiece::{WordPiece, WordPieceTrainer};
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    AddedToken, Model, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizer, Trainer,
};

use super::encode::SPECIAL;
use super::rule::Rule;
use crate::Error;
use text::word::Case;

/// Most entries that a vocabulary is trained to: twice those of the largest that is published for a BERT.
pub const MOST: usize = 1_000_000;

/// How to train a vocabulary.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Entries wanted, special tokens included, at most [`MOST`]. Fewer come out when the text has fewer pieces.
    pub size: usize,
    /// A piece must occur this often to be merged.
    pub min_frequency: u64,
    /// Whether case is kept.
    pub case: Case,
}

impl Config {
    /// Refuses a size that no vocabulary has.
    ///
    /// # Errors
    /// When it is above [`MOST`].
    pub fn check(&self) -> Result<(), Error> {
        if self.size > MOST {
            let problem = format!("expected at most {MOST}");
            return Err(Error::Unfit(format!("vocabulary.train.size = {}: {problem}", self.size)));
        }
        Ok(())
    }
}

/// Words of a text corpus with their counts, split as BERT's basic tokenizer does.
#[derive(Debug, Clone)]
pub struct WordCounts {
    normalizer: BertNormalizer,
    counts: BTreeMap<String, u64>,
}

impl WordCounts {
    /// No words yet.
    #[must_use]
    pub fn new(case: Case) -> Self {
        Self { normalizer: Rule::from(case).normalizer(), counts: BTreeMap::new() }
    }

    /// Adds the words of one text.
    ///
    /// # Errors
    /// When the text cannot be normalised.
    pub fn add(&mut self, text: &str) -> Result<(), Error> {
        let mut normalized = NormalizedString::from(text);
        self.normalizer.normalize(&mut normalized).map_err(|e| trainer_error(&e))?;
        let mut words = PreTokenizedString::from(normalized);
        BertPreTokenizer.pre_tokenize(&mut words).map_err(|e| trainer_error(&e))?;
        for (word, _, _) in words.get_splits(OffsetReferential::Normalized, OffsetType::None) {
            match self.counts.get_mut(word) {
                Some(count) => *count += 1,
                None => {
                    self.counts.insert(word.to_owned(), 1);
                }
            }
        }
        Ok(())
    }

    /// Distinct words so far.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.counts.len()
    }
}

/// How many entries the special tokens and the characters of the words take.
///
/// # Errors
/// When `config.size` has no room for them.
pub fn room(config: &Config, words: &WordCounts) -> Result<usize, Error> {
    let alphabet: BTreeSet<char> = words.counts.keys().flat_map(|word| word.chars()).collect();
    let continuing: BTreeSet<char> = words.counts.keys().flat_map(|word| word.chars().skip(1)).collect();
    let needed = SPECIAL.len() + alphabet.len() + continuing.len();
    if config.size < needed {
        let (size, alphabet) = (config.size, alphabet.len());
        return Err(Error::Unfit(format!(
            "vocabulary.train.size is {size}, but the special tokens and the texts' {alphabet} characters, at the beginning of a word and \
             within it, take {needed} entries: raise it"
        )));
    }
    Ok(needed)
}

/// The tokens of a new vocabulary, in id order: [`SPECIAL`], single characters, then merges.
///
/// # Errors
/// When `config.size` is above [`MOST`] or has no room for the alphabet, or the trainer fails.
pub fn train(config: &Config, words: &WordCounts) -> Result<Vec<String>, Error> {
    config.check()?;
    let needed = room(config, words)?;
    let continuing: BTreeSet<char> = words.counts.keys().flat_map(|word| word.chars().skip(1)).collect();
    // The trainer makes room for the whole size at once. A merge leaves a word one piece shorter, so there are no more than this.
    let merges: usize = words.counts.keys().map(|word| word.chars().count().saturating_sub(1)).sum();
    let size = config.size.min(needed + merges);
    // The trainer numbers `##x` pieces in hash-map order, which differs from run to run and decides ties between merges.
    // Listing them up front, as if they were special, fixes their numbers.
    let first: Vec<AddedToken> = SPECIAL
        .iter()
        .map(|token| AddedToken::from(*token, true))
        .chain(continuing.iter().map(|c| AddedToken::from(format!("##{c}"), true)))
        .collect();
    let mut trainer: WordPieceTrainer = WordPieceTrainer::builder()
        .vocab_size(size)
        .min_frequency(config.min_frequency)
        .show_progress(false)
        .special_tokens(first)
        .build();
    let text =
        words.counts.iter().flat_map(|(word, count)| std::iter::repeat_n(word.as_str(), clamp(*count)));
    trainer.feed(text, |word| Ok(vec![word.to_owned()])).map_err(|e| trainer_error(&e))?;
    let mut model = WordPiece::default();
    trainer.train(&mut model).map_err(|e| trainer_error(&e))?;
    let mut tokens: Vec<(u32, String)> =
        Model::get_vocab(&model).into_iter().map(|(t, id)| (id, t)).collect();
    tokens.sort_unstable();
    Ok(tokens.into_iter().map(|(_, token)| token).collect())
}

fn clamp(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn trainer_error(error: &tokenizers::Error) -> Error {
    Error::Unfit(format!("cannot train a vocabulary: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> WordCounts {
        let mut words = WordCounts::new(Case::Uncased);
        for i in 0..400 {
            let (a, b) = (i % 17, i % 23);
            words.add(&format!("Velorosis{a} of the bradal{b} node, treated with Mexalin-{a}.")).unwrap();
        }
        words
    }

    #[test]
    fn the_same_text_gives_the_same_vocabulary() {
        let config = Config { size: 200, min_frequency: 2, case: Case::Uncased };
        let first = train(&config, &words()).unwrap();
        // Every call draws new hash keys, so order that leaked from a hash map would differ within a few tries.
        for _ in 0..8 {
            assert_eq!(train(&config, &words()).unwrap(), first);
        }
        assert_eq!(first[..5], SPECIAL);
        assert!(first.iter().any(|t| t == "velorosis" || t == "##osis" || t.len() > 4), "{first:?}");
    }

    #[test]
    fn silent_18_a_size_that_no_vocabulary_has_is_refused_and_a_large_one_makes_no_room_for_nothing() {
        let sized = |size| train(&Config { size, min_frequency: 1, case: Case::Uncased }, &words());
        for size in [usize::MAX, usize::MAX / 2, MOST + 1] {
            let error = sized(size).unwrap_err().to_string();
            assert!(error.contains(&format!("vocabulary.train.size = {size}: expected at most")), "{error}");
        }
        // Whatever the room, the pieces are those that the text has.
        assert_eq!(sized(MOST).unwrap(), sized(20_000).unwrap());
    }

    #[test]
    fn too_small_a_size_says_what_is_needed() {
        let error = train(&Config { size: 10, min_frequency: 2, case: Case::Uncased }, &words()).unwrap_err();
        assert!(error.to_string().starts_with("vocabulary.train.size is 10, but"), "{error}");
    }
}
