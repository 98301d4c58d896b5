//! Samples of texts in which words are hidden: maps and auxiliary terms are those of the text without them, so that neither they nor what they leave behind tells which they were.

use batch::maps::sample::Sample;
use text::word::Words;

use super::config::Config;
use super::folders::Folders;
use super::generators::{From, Generator, Limits};
use super::reader::Reader;
use super::spelt::{Hidden, Spelt, cover};
use super::tools::Tools;
use crate::Error;
use crate::token::encode::{Case, Vocabulary};

/// The mask token as texts of benchmarks have it, in place of a word.
pub const MASK: &str = "[MASK]";
/// What stands for a hidden word of letters or digits while a text is looked through: a letter that no lexicon has.
const WORD: &str = "\u{a66e}";
/// The same for any other word: a punctuation mark that none has.
const SIGN: &str = "\u{203d}";

/// The words that are hidden of a text, by its number, given its words.
pub type Hide<'a> = &'a mut dyn FnMut(usize, &Spelt, &Words) -> Vec<Hidden>;

impl Tools {
    /// Tools that make samples of which nothing is known.
    ///
    /// # Errors
    /// When the tokenizer refuses it.
    pub fn plain(vocabulary: Vocabulary, case: Case) -> Result<Self, Error> {
        let config = Config::nothing(Limits { tokens: 4, terms: 0, auxiliary: 0 });
        Self::load(&config, vocabulary, case, &Folders::default())
    }

    /// The sample of each text with [`MASK`]s within `limits`, of which nothing is known.
    ///
    /// # Errors
    /// As [`Tools::samples`], with the number of the text.
    pub fn with_masks(&self, limits: Limits, texts: &[&str]) -> Result<Vec<Sample>, (usize, Error)> {
        let (mut written, mut masks) = (vec![], vec![]);
        for text in texts {
            let (mut whole, mut of_text) = (String::new(), vec![]);
            for (place, piece) in text.split(MASK).enumerate() {
                if place > 0 {
                    of_text.push(whole.len()..whole.len() + WORD.len());
                    whole.push_str(WORD);
                }
                whole.push_str(piece);
            }
            written.push(whole);
            masks.push(of_text);
        }
        let written: Vec<&str> = written.iter().map(String::as_str).collect();
        let blank = self.vocabulary().special().blank;
        let mut hide = |text: usize, _: &Spelt, words: &Words| {
            let of_text = masks[text].iter().flat_map(|mask| cover(words, mask));
            of_text.map(|word| Hidden { word, shown: vec![blank] }).collect()
        };
        self.hiding(limits, &written, &mut hide)
    }

    /// The sample of each text within `limits`, in which the words that `hide` says are hidden.
    ///
    /// # Errors
    /// As [`Tools::samples`], with the number of the text.
    pub fn hiding(
        &self,
        limits: Limits,
        texts: &[&str],
        hide: Hide<'_>,
    ) -> Result<Vec<Sample>, (usize, Error)> {
        let spell = |word: &str| self.vocabulary().encode(&self.vocabulary().within(word));
        let from = From { limits, ..self.from(&spell) };
        let mut generator = Generator::new(from).map_err(|error| (0, error.into()))?;
        let mut reader = Reader::new(self);
        let mut made = Vec::with_capacity(texts.len());
        for (number, text) in texts.iter().enumerate() {
            let wrong = |error| (number, error);
            reader.read_unmarked(text).map_err(wrong)?;
            let hidden = hide(number, reader.spelt(), reader.words());
            if !hidden.is_empty() {
                let shown = without(text, reader.words(), &hidden);
                reader.hide(&hidden, &shown).map_err(wrong)?;
            }
            made.push(generator.build(reader.text(), None).map_err(wrong)?);
        }
        Ok(made)
    }
}

/// A text in which what is hidden has given way to what stands for it.
fn without(text: &str, words: &Words, hidden: &[Hidden]) -> String {
    let (mut shown, mut end) = (String::with_capacity(text.len()), 0);
    for (number, word) in words.iter().enumerate() {
        if hidden.iter().any(|of| of.word == number) {
            let is_word = text[word.bytes.clone()].chars().any(char::is_alphanumeric);
            shown.push_str(&text[end..word.bytes.start]);
            shown.push_str(if is_word { WORD } else { SIGN });
            end = word.bytes.end;
        }
    }
    shown + &text[end..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_some_words_has_as_many_words_and_none_of_these() {
        let text = "Née chest-pain, 38.5 °C (fever)";
        let mut words = Words::new(Case::Uncased);
        words.split(text);
        let all: Vec<String> = words.iter().map(|word| word.letters.to_owned()).collect();
        for hidden in 0..all.len() {
            let shown = without(text, &words, &[Hidden { word: hidden, shown: vec![4] }]);
            let mut left = Words::new(Case::Uncased);
            left.split(&shown);
            let left: Vec<String> = left.iter().map(|word| word.letters.to_owned()).collect();
            assert_eq!(left.len(), all.len(), "{shown}");
            for (number, (was, is)) in all.iter().zip(&left).enumerate() {
                assert_eq!(was == is, number != hidden, "{shown}: {was} {is}");
            }
        }
    }
}
