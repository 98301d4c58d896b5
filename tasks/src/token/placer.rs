//! Texts to subwords with their places, word by word: each word is looked up in the vocabulary once.
//!
//! `tokenizers` carries an alignment of every byte through normalisation, which costs more than looking words up. Where a word is written as the
//! vocabulary spells it but for the case of ASCII letters, the places of its subwords are the sums of their lengths; other texts go the
//! long way ([`Aligned`]), with the same result.

use text::lexicon::Lexicon;
use text::word::{Case, Words};

use super::align::{Aligned, Subword};
use super::encode::Vocabulary;
use crate::Error;

/// Bytes of words and subwords that are remembered; with more, all are forgotten and begun anew.
const REMEMBERED: usize = 32 << 20;

/// Encodes one text after the other. What it makes of one does not depend on those before, so that each thread may have its own.
#[derive(Debug)]
pub struct Placer<'v> {
    vocabulary: &'v Vocabulary,
    /// None where it is not known how the vocabulary splits texts.
    words: Option<Words>,
    known: Known,
}

/// Words with their subwords.
#[derive(Debug, Default)]
struct Known {
    words: Lexicon,
    /// Where the subwords of each word end.
    ends: Vec<usize>,
    pieces: Vec<Piece>,
}

/// A subword of a word, and where it ends in the word's letters.
#[derive(Debug, Clone, Copy)]
struct Piece {
    id: u32,
    end: usize,
}

impl<'v> Placer<'v> {
    /// Ready to encode.
    #[must_use]
    pub fn new(vocabulary: &'v Vocabulary) -> Self {
        Self { vocabulary, words: vocabulary.splits().map(Words::new), known: Known::default() }
    }

    /// Puts the subwords of `text` into `subwords`, which is emptied before: those of [`Aligned::new`] where it is given no words.
    ///
    /// # Errors
    /// When the tokenizer refuses the text.
    pub fn place(&mut self, text: &str, subwords: &mut Vec<Subword>) -> Result<(), Error> {
        subwords.clear();
        if let Some(words) = &mut self.words {
            words.split(text);
            if is_plain(text, words) && self.known.sum(self.vocabulary, words, subwords)? {
                return Ok(());
            }
            subwords.clear();
        }
        subwords.extend_from_slice(Aligned::new(self.vocabulary, text, &[])?.subwords());
        Ok(())
    }

    /// Puts the ids of the subwords of `text` into `ids`, which is emptied before: those of [`Vocabulary::encode`].
    ///
    /// # Errors
    /// When the tokenizer refuses the text.
    pub fn ids(&mut self, text: &str, ids: &mut Vec<u32>) -> Result<(), Error> {
        ids.clear();
        let Some(words) = &mut self.words else {
            ids.extend(self.vocabulary.encode(text)?);
            return Ok(());
        };
        words.split(text);
        for word in words.iter() {
            ids.extend(self.known.word(self.vocabulary, word.letters)?.iter().map(|piece| piece.id));
        }
        Ok(())
    }
}

impl Known {
    /// Places by the lengths of subwords; false where those of a word do not add up to it.
    fn sum(
        &mut self,
        vocabulary: &Vocabulary,
        words: &Words,
        subwords: &mut Vec<Subword>,
    ) -> Result<bool, Error> {
        for (number, word) in words.iter().enumerate() {
            let pieces = self.word(vocabulary, word.letters)?;
            if pieces.last().is_none_or(|last| last.end != word.letters.len()) {
                return Ok(false);
            }
            let (first, mut start) = (word.bytes.start, 0);
            for &Piece { id, end } in pieces {
                subwords.push(Subword { id, word: number, bytes: first + start..first + end });
                start = end;
            }
        }
        Ok(true)
    }

    /// The subwords of one of BERT's words.
    fn word(&mut self, vocabulary: &Vocabulary, letters: &str) -> Result<&[Piece], Error> {
        let taken = self.words.bytes() + 8 * self.ends.len() + size_of::<Piece>() * self.pieces.len();
        if taken > REMEMBERED {
            *self = Self::default();
        }
        let known = match self.words.find(letters) {
            Some(known) => known as usize,
            None => {
                let mut ids = Vec::new();
                vocabulary.spell(letters, &mut ids)?;
                self.pieces.extend(pieces(vocabulary, letters, &ids));
                self.words.add(letters, 1);
                self.ends.push(self.pieces.len());
                self.ends.len() - 1
            }
        };
        let start = known.checked_sub(1).map_or(0, |before| self.ends[before]);
        Ok(&self.pieces[start..self.ends[known]])
    }
}

fn pieces(vocabulary: &Vocabulary, letters: &str, ids: &[u32]) -> Vec<Piece> {
    if let [id] = ids {
        // It may be [UNK], which stands for the whole word.
        return vec![Piece { id: *id, end: letters.len() }];
    }
    let mut end = 0;
    let piece = |&id: &u32| {
        end += vocabulary.written(id).map_or(0, |written| written.len());
        Piece { id, end }
    };
    ids.iter().map(piece).collect()
}

/// Whether all words are written as they are spelt, but for the case of ASCII letters, and nothing but white space is between them.
fn is_plain(text: &str, words: &Words) -> bool {
    let is_cased = words.case() == Case::Cased;
    let is_gap = |bytes: Option<&str>| bytes.is_some_and(|gap| gap.chars().all(char::is_whitespace));
    let mut end = 0;
    let are_plain = words.iter().all(|word| {
        let found = text.get(word.bytes.clone()).unwrap_or_default();
        let before = std::mem::replace(&mut end, word.bytes.end);
        let is_spelt_so =
            if is_cased { found == word.letters } else { found.eq_ignore_ascii_case(word.letters) };
        is_spelt_so && is_gap(text.get(before..word.bytes.start))
    });
    are_plain && is_gap(text.get(end..))
}

#[cfg(test)]
mod tests {
    use base::rng::RngKey;
    use base::whole::write_whole;

    use super::*;

    const ENTRIES: &str = "[PAD] [UNK] [CLS] [SEP] [MASK] pain fever ##s ##ful a ##b b c ##c - , . \u{b5} \u{b5}g \u{4e2d} e ##x \u{2013} i s";
    const PARTS: &str = "pains|FEVER|painful|ab|abc|abx|zz|-|,|.| |  |\t|\n|\u{b5}g|\u{2013}|\u{4e2d}|\u{e9}|e\u{301}|\u{200b}|\u{0}|\u{fffd}|\u{a0}|\u{130}|\u{df}|C";

    fn vocabulary(case: Case) -> Vocabulary {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        write_whole(&path, ENTRIES.replace(' ', "\n").as_bytes()).unwrap();
        Vocabulary::load(&path, case).unwrap()
    }

    #[test]
    fn the_short_way_and_the_long_one_give_the_same() {
        let parts: Vec<&str> = PARTS.split('|').collect();
        for case in [Case::Uncased, Case::Cased] {
            let vocabulary = vocabulary(case);
            let mut placer = Placer::new(&vocabulary);
            let (mut subwords, mut ids, mut plain) = (Vec::new(), Vec::new(), 0);
            for number in 0..4000 {
                let draw = RngKey::new(number);
                let part = |at| parts[usize::try_from(draw.at(at).below(parts.len() as u64)).unwrap()];
                let mut text: String = (0..draw.below(8)).map(part).collect();
                if number == 0 {
                    text = format!("{} pain", "a".repeat(120));
                }
                placer.place(&text, &mut subwords).unwrap();
                assert_eq!(subwords, Aligned::new(&vocabulary, &text, &[]).unwrap().subwords(), "{text:?}");
                placer.ids(&text, &mut ids).unwrap();
                assert_eq!(ids, vocabulary.encode(&text).unwrap(), "{text:?}");
                let mut words = Words::new(case);
                words.split(&text);
                plain += usize::from(is_plain(&text, &words));
            }
            assert!((400..3600).contains(&plain), "{plain}");
        }
    }
}
