//! Words with tags as rows of tokens: which token speaks for which word.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tasks::Error;
use unicode_categories::UnicodeCategories;

use super::encode::{Framed, Texts};
use tasks::token::encode::Vocabulary;

/// Which subwords of a word are labelled with its tag, and which one predicts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subwords {
    /// The first subword is labelled, and its prediction is used (Devlin et al. 2019).
    #[default]
    First,
    /// The last subword is labelled, and its prediction is used.
    Last,
    /// All subwords are labelled, and the last one's prediction is used (MT-Clinical BERT's code).
    All,
}

/// Sentences whose words are encoded, each by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordTexts {
    /// The different words.
    texts: Texts,
    /// The word's number in `texts`, sentence after sentence.
    words: Vec<usize>,
    /// Where each sentence's words begin, and the number of all words.
    starts: Vec<usize>,
}

/// Which tokens of a row are labelled, and which predict the tags of its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The word that each token of the row is asked for the tag of, from 0; none of `[CLS]`, `[SEP]` and tokens that are not asked.
    pub asked: Vec<Option<usize>>,
    /// The token of the row that predicts the tag of each of its words.
    pub heard: Vec<usize>,
}

impl WordTexts {
    /// Encodes the words of sentences with all threads, each up to `limit` subwords (more than a row has, so that cuts are counted), at least one:
    /// `[UNK]` where a word has none.
    ///
    /// # Errors
    /// When the tokenizer refuses a word.
    pub fn new(vocabulary: &Vocabulary, sentences: &[&[String]], limit: usize) -> Result<Self, Error> {
        let (mut numbers, mut different) = (HashMap::<&str, usize>::new(), vec![]);
        let (mut words, mut starts) = (vec![], vec![0]);
        for sentence in sentences {
            for word in *sentence {
                let number = *numbers.entry(word.as_str()).or_insert_with(|| {
                    different.push(word.as_str());
                    different.len() - 1
                });
                words.push(number);
            }
            starts.push(words.len());
        }
        let different: Vec<_> = different.into_iter().map(|word| vocabulary.within(word)).collect();
        let different: Vec<&str> = different.iter().map(AsRef::as_ref).collect();
        Ok(Self { texts: Texts::new(vocabulary, &different, limit)?, words, starts })
    }

    fn sentence(&self, sentence: usize) -> &[usize] {
        &self.words[self.starts[sentence]..self.starts[sentence + 1]]
    }

    /// The words of each row of a sentence, as many as a row has room for: one row, unless it is long. Of a row as of a sentence every word
    /// is there; a word that fills more than a row has its first subwords.
    ///
    /// # Panics
    /// When there is no such sentence.
    #[must_use]
    pub fn rows(&self, sentence: usize, most: usize) -> Vec<Range<usize>> {
        self.rows_of(sentence, 0..self.sentence(sentence).len(), most, |_, _| false)
    }

    /// As [`WordTexts::rows`], of some words of a sentence, and with rows that end before they are full where `ends` says so of a word, by its number
    /// in the sentence, and the subwords up to its end.
    ///
    /// # Panics
    /// When there is no such sentence or word.
    #[must_use]
    pub fn rows_of(
        &self,
        sentence: usize,
        of: Range<usize>,
        most: usize,
        ends: impl Fn(usize, usize) -> bool,
    ) -> Vec<Range<usize>> {
        let room = most - 2;
        let (mut rows, mut from, mut filled) = (vec![], of.start, 0);
        let words = self.sentence(sentence);
        for (at, &word) in words.iter().enumerate().take(of.end).skip(of.start) {
            let length = self.texts.get(word).len().min(room);
            if filled + length > room {
                rows.push(from..at);
                (from, filled) = (at, 0);
            }
            filled += length;
            if at + 1 < of.end && ends(at, filled) {
                rows.push(from..at + 1);
                (from, filled) = (at + 1, 0);
            }
        }
        rows.push(from..of.end);
        rows
    }

    /// How many tokens a row of these words of a sentence has, `[CLS]` and `[SEP]` included and each word counted up to `most`.
    ///
    /// # Panics
    /// When there is no such sentence or word, or `most` is below 2.
    #[must_use]
    pub fn tokens(&self, sentence: usize, words: &Range<usize>, most: usize) -> usize {
        let of_word = |number: &usize| self.texts.get(*number).len().min(most - 2);
        2 + self.sentence(sentence)[words.clone()].iter().map(of_word).sum::<usize>()
    }

    /// Adds a row with some words of a sentence, one of [`WordTexts::rows`], and says which of its tokens are labelled and which predict.
    ///
    /// # Panics
    /// When there is no such sentence or word.
    pub fn push(
        &self,
        sentence: usize,
        words: &Range<usize>,
        subwords: Subwords,
        framed: &mut Framed,
    ) -> Places {
        let room = framed.most() - 2;
        let mut places = Places { asked: vec![None], heard: vec![] };
        let (mut ids, mut cut) = (vec![], 0);
        for (word, &number) in self.sentence(sentence)[words.clone()].iter().enumerate() {
            let of_word = self.texts.get(number);
            cut += of_word.len().saturating_sub(room);
            let of_word = &of_word[..of_word.len().min(room)];
            let last = of_word.len() - 1;
            ids.extend_from_slice(of_word);
            places.heard.push(places.asked.len() + if subwords == Subwords::First { 0 } else { last });
            places.asked.extend((0..=last).map(|at| {
                let is_asked = match subwords {
                    Subwords::First => at == 0,
                    Subwords::Last => at == last,
                    Subwords::All => true,
                };
                is_asked.then_some(word)
            }));
        }
        places.asked.push(None);
        framed.single_without(&ids, cut);
        places
    }
}

/// Words as a text that a vocabulary spells as it spells each of them.
#[must_use]
pub fn joined(vocabulary: &Vocabulary, words: &[String]) -> String {
    if vocabulary.special().family.is_bert() {
        return words.join(" ");
    }
    words.iter().map(|word| vocabulary.within(word)).collect()
}

/// The words of a text of which no file says what they are, in bytes: runs of letters, digits and marks, and every other character by itself.
#[must_use]
pub fn split(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = vec![];
    let mut open = false;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let grows = c.is_alphanumeric() || c.is_mark() || c.is_other();
        match words.last_mut() {
            _ if c.is_whitespace() => open = false,
            Some(word) if grows && open => word.end = end,
            _ => {
                words.push(at..end);
                open = grows;
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use tasks::token::encode::Case;

    use super::super::encode::{Cut, Frame};
    use super::*;

    fn vocabulary() -> Vocabulary {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        let entries = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nback\n##ache\n##s\nof\n,\n";
        base::whole::write_whole(&path, entries).unwrap();
        Vocabulary::load(&path, Case::Uncased).unwrap()
    }

    fn framed(vocabulary: &Vocabulary, most: usize) -> Framed {
        Framed::new(Frame { special: vocabulary.special(), most, cut: Cut::Second }).unwrap()
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn one_subword_speaks_for_its_word() {
        let vocabulary = vocabulary();
        let sentences = [words("of"), words("Backaches of back \u{ad}")];
        let each: Vec<&[String]> = sentences.iter().map(Vec::as_slice).collect();
        let texts = WordTexts::new(&vocabulary, &each, 9).unwrap();
        assert_eq!((texts.rows(1, 8).len(), texts.rows(1, 8)[0].clone()), (1, 0..4));
        let of = |subwords| {
            let mut framed = framed(&vocabulary, 8);
            let places = texts.push(1, &(0..4), subwords, &mut framed);
            (framed, places)
        };
        let (framed, first) = of(Subwords::First);
        assert_eq!(framed.rows.ids, [2, 5, 6, 7, 8, 5, 1, 3]);
        assert_eq!(first.heard, [1, 4, 5, 6]);
        assert_eq!(first.asked, [None, Some(0), None, None, Some(1), Some(2), Some(3), None]);
        let (_, last) = of(Subwords::Last);
        assert_eq!((last.heard, last.asked[1], last.asked[3]), (vec![3, 4, 5, 6], None, Some(0)));
        let (_, all) = of(Subwords::All);
        assert_eq!((all.heard[0], &all.asked[..4]), (3, &[None, Some(0), Some(0), Some(0)][..]));
    }

    #[test]
    fn a_word_longer_than_a_row_is_cut_and_counted() {
        let vocabulary = vocabulary();
        let sentence = words("of backachesss");
        let texts = WordTexts::new(&vocabulary, &[&sentence], 100).unwrap();
        let mut framed = framed(&vocabulary, 5);
        assert_eq!(texts.rows(0, 5), [0..1, 1..2]);
        let places = texts.push(0, &(1..2), Subwords::First, &mut framed);
        assert_eq!((framed.rows.lengths[0], places.heard[0]), (5, 1));
        assert_eq!((framed.cuts.rows, framed.cuts.cut, framed.cuts.tokens), (1, 1, 2));
    }

    #[test]
    fn long_sentences_have_several_rows_and_lose_no_word() {
        let vocabulary = vocabulary();
        let sentence = words("of backaches of backaches backaches of of of of");
        let texts = WordTexts::new(&vocabulary, &[&sentence], 9).unwrap();
        let rows = texts.rows(0, 7);
        assert_eq!(rows, [0..3, 3..4, 4..7, 7..9]);
        for most in 5..20 {
            let rows = texts.rows(0, most);
            let mut at = 0;
            for row in &rows {
                assert!(row.start == at && !row.is_empty());
                let mut framed = framed(&vocabulary, most);
                let places = texts.push(0, row, Subwords::All, &mut framed);
                assert_eq!((framed.cuts.tokens, places.heard.len()), (0, row.len()));
                assert_eq!(places.asked.len(), framed.rows.lengths[0]);
                at = row.end;
            }
            assert_eq!(at, sentence.len());
        }
        // Rows that end early: behind a word of one subword, once there are more than 3.
        let early = texts.rows_of(0, 0..9, 9, |at, filled| sentence[at] == "of" && filled > 3);
        assert_eq!(early, [0..3, 3..6, 6..9]);
    }

    #[test]
    fn words_are_runs_of_letters_or_single_marks() {
        let text = "A\u{301}b2, (5.5)\u{ad}x\u{200d}y";
        let words: Vec<&str> = split(text).into_iter().map(|word| &text[word]).collect();
        assert_eq!(words, ["A\u{301}b2", ",", "(", "5", ".", "5", ")", "\u{ad}x\u{200d}y"]);
        assert!(split(" \n").is_empty());
    }
}
