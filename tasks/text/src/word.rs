//! Words as BERT's basic tokenizer splits them, with the place of each in the text as written.
//!
//! Own code beside that of `tokenizers`, since counting a corpus wants a hundred megabytes a second and the place of a word in the
//! original text. The tests hold both to the same words, over every character of Unicode.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::UnicodeNormalization;
use unicode_normalization_alignments::char::canonical_combining_class;

/// Whether upper and lower case are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// As in BERT cased: text is kept as it is.
    Cased,
    /// As in BERT uncased: lower case, accents stripped.
    #[default]
    Uncased,
}

/// Splits texts into words, one text after the other.
#[derive(Debug, Clone)]
pub struct Words {
    case: Case,
    /// The words' letters, one word behind the other.
    letters: String,
    found: Vec<Found>,
    /// Whether the last word found may grow.
    open: Open,
    /// A character and the marks on it, which are taken apart together.
    cluster: String,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    /// Where its letters end; they begin where those of the word before end.
    letters: usize,
    bytes: (usize, usize),
}

/// Whether the last word found may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Yes,
    No,
}

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'a> {
    /// Its letters as the tokenizer has them: cleaned, and for [`Case::Uncased`] in lower case and without accents.
    pub letters: &'a str,
    /// Where it stands in the text as written, in bytes, with the marks behind its letters.
    pub bytes: Range<usize>,
}

/// What the tokenizer makes of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It stands between words.
    Space,
    /// It is left out, and parts nothing.
    Nothing,
    /// A word by itself.
    Alone,
    /// A letter of a word.
    Letter,
}

impl Words {
    /// Ready to split texts.
    #[must_use]
    pub fn new(case: Case) -> Self {
        Self { case, letters: String::new(), found: Vec::new(), open: Open::No, cluster: String::new() }
    }

    /// Whether upper and lower case are told apart.
    #[must_use]
    pub fn case(&self) -> Case {
        self.case
    }

    /// Splits `text`; the words of the text before are forgotten.
    pub fn split(&mut self, text: &str) {
        self.letters.clear();
        self.found.clear();
        self.open = Open::No;
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if is_letter(byte) {
                let end = at + bytes[at..].iter().take_while(|&&byte| is_letter(byte)).count();
                self.letters(&text[at..end], at..end);
                at = end;
            } else if byte.is_ascii() {
                self.take(char::from(byte), KINDS[usize::from(byte)], at..at + 1);
                at += 1;
            } else {
                at = self.beyond_ascii(text, at);
            }
        }
    }

    /// Takes the character at `at`, which is not ASCII, with the marks on it; returns where the next one begins.
    fn beyond_ascii(&mut self, text: &str, at: usize) -> usize {
        let mut rest = text[at..].char_indices();
        let Some((_, first)) = rest.next() else { return text.len() };
        let mut end = at + first.len_utf8();
        let kind = kind(first);
        if kind != Kind::Letter && kind != Kind::Alone || self.case == Case::Cased || is_ideograph(first) {
            if is_ideograph(first) && self.case == Case::Uncased {
                // A compatibility ideograph is the character that it is compatible with.
                let plain = std::iter::once(first).nfd().next().map_or(first, |(plain, _)| plain);
                self.take(plain, Kind::Alone, at..end);
            } else {
                let kind = if is_ideograph(first) { Kind::Alone } else { kind };
                self.take(first, kind, at..end);
            }
            return end;
        }
        let mut cluster = std::mem::take(&mut self.cluster);
        cluster.clear();
        cluster.push(first);
        for (place, next) in rest {
            // Three vowel signs of Tibetan are of class 0 but made of marks.
            let attached =
                canonical_combining_class(next) != 0 || matches!(next, '\u{f73}' | '\u{f75}' | '\u{f81}');
            if !attached && self::kind(next) != Kind::Nothing {
                break;
            }
            if attached {
                cluster.push(next);
                end = at + place + next.len_utf8();
            }
        }
        for letter in plain_letters(&cluster) {
            let kind = self::kind(letter);
            self.take(letter, kind, at..end);
        }
        self.extend(end);
        self.cluster = cluster;
        end
    }

    fn take(&mut self, letter: char, kind: Kind, bytes: Range<usize>) {
        match kind {
            Kind::Space => self.open = Open::No,
            Kind::Nothing => self.extend(bytes.end),
            Kind::Alone => {
                self.begin(letter, bytes);
                self.open = Open::No;
            }
            Kind::Letter => match self.found.last_mut().filter(|_| self.open == Open::Yes) {
                Some(word) => {
                    self.letters.push(letter);
                    word.letters = self.letters.len();
                    word.bytes.1 = bytes.end;
                }
                None => self.begin(letter, bytes),
            },
        }
    }

    /// Takes letters that are ASCII.
    fn letters(&mut self, letters: &str, bytes: Range<usize>) {
        let first = self.letters.len();
        self.letters.push_str(letters);
        if self.case == Case::Uncased {
            self.letters[first..].make_ascii_lowercase();
        }
        let end = self.letters.len();
        match self.found.last_mut().filter(|_| self.open == Open::Yes) {
            Some(word) => {
                word.letters = end;
                word.bytes.1 = bytes.end;
            }
            None => {
                self.found.push(Found { letters: end, bytes: (bytes.start, bytes.end) });
                self.open = Open::Yes;
            }
        }
    }

    fn begin(&mut self, letter: char, bytes: Range<usize>) {
        self.letters.push(letter);
        self.found.push(Found { letters: self.letters.len(), bytes: (bytes.start, bytes.end) });
        self.open = Open::Yes;
    }

    /// What leaves no letter belongs to the word in front of it.
    fn extend(&mut self, end: usize) {
        if self.open == Open::Yes
            && let Some(word) = self.found.last_mut()
        {
            word.bytes.1 = end;
        }
    }

    /// Makes one word of each word, by its number, that goes on the one before and that one.
    pub fn join(&mut self, goes_on: impl Fn(usize) -> bool) {
        let mut kept: usize = 0;
        for at in 0..self.found.len() {
            let found = self.found[at];
            if kept > 0 && goes_on(at) {
                let word = &mut self.found[kept - 1];
                (word.letters, word.bytes.1) = (found.letters, found.bytes.1);
            } else {
                self.found[kept] = found;
                kept += 1;
            }
        }
        self.found.truncate(kept);
    }

    /// Number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The word number `word`.
    #[must_use]
    pub fn get(&self, word: usize) -> Option<Word<'_>> {
        let found = self.found.get(word)?;
        let start = word.checked_sub(1).and_then(|before| self.found.get(before)).map_or(0, |f| f.letters);
        Some(Word { letters: &self.letters[start..found.letters], bytes: found.bytes.0..found.bytes.1 })
    }

    /// The words in order.
    pub fn iter(&self) -> impl Iterator<Item = Word<'_>> + '_ {
        let mut start = 0;
        self.found.iter().map(move |found| {
            let letters = &self.letters[std::mem::replace(&mut start, found.letters)..found.letters];
            Word { letters, bytes: found.bytes.0..found.bytes.1 }
        })
    }
}

/// The kinds of ASCII.
const KINDS: [Kind; 128] = {
    let mut kinds = [Kind::Letter; 128];
    let mut at = 0;
    while at < 128 {
        #[allow(clippy::cast_possible_truncation, reason = "below 128")]
        let byte = at as u8;
        kinds[at] = match byte {
            b'\t' | b'\n' | b'\r' | b' ' => Kind::Space,
            0..32 | 127 => Kind::Nothing,
            _ if byte.is_ascii_punctuation() => Kind::Alone,
            _ => Kind::Letter,
        };
        at += 1;
    }
    kinds
};

/// Whether a byte is a letter of ASCII.
#[inline]
fn is_letter(byte: u8) -> bool {
    matches!(KINDS.get(usize::from(byte)), Some(Kind::Letter))
}

fn kind(c: char) -> Kind {
    if c.is_ascii() {
        return KINDS[c as usize];
    }
    if c == '\u{fffd}' || c.is_other() {
        Kind::Nothing
    } else if c.is_whitespace() {
        Kind::Space
    } else if c.is_punctuation() {
        Kind::Alone
    } else {
        Kind::Letter
    }
}

/// Taken apart as `tokenizers` does it, whose tables are older than those of `unicode-normalization`; without accents; in lower case.
fn plain_letters(cluster: &str) -> impl Iterator<Item = char> + '_ {
    cluster.nfd().map(|(c, _)| c).filter(|c| !c.is_mark_nonspacing()).flat_map(char::to_lowercase)
}

/// The ideographs that BERT puts spaces around.
fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F | 0x2B740..=0x2B81F
        | 0x2B920..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::normalizers::BertNormalizer;
    use tokenizers::tokenizer::{NormalizedString, Normalizer, PreTokenizedString, PreTokenizer};
    use tokenizers::{OffsetReferential, OffsetType, pre_tokenizers::bert::BertPreTokenizer};

    /// The words that `tokenizers` finds.
    fn reference(text: &str, case: Case) -> Vec<String> {
        let mut normal = NormalizedString::from(text);
        let lowercase = case == Case::Uncased;
        BertNormalizer::new(true, true, Some(lowercase), lowercase).normalize(&mut normal).unwrap();
        let mut split = PreTokenizedString::from(normal);
        BertPreTokenizer.pre_tokenize(&mut split).unwrap();
        let splits = split.get_splits(OffsetReferential::Original, OffsetType::Byte);
        splits.into_iter().map(|(word, ..)| word.to_owned()).collect()
    }

    fn words(text: &str, case: Case) -> Vec<(String, &str)> {
        let mut words = Words::new(case);
        words.split(text);
        words.iter().map(|word| (word.letters.to_owned(), &text[word.bytes])).collect()
    }

    fn assert_same(text: &str) {
        for case in [Case::Cased, Case::Uncased] {
            let ours: Vec<String> = words(text, case).into_iter().map(|(letters, _)| letters).collect();
            assert_eq!(ours, reference(text, case), "{text:?} {case:?}");
        }
    }

    #[test]
    fn every_character_makes_the_words_that_the_tokenizer_makes_of_it() {
        // Of what is all of one kind a part: ideographs, Hangul, what is private or not assigned yet.
        let alike = [
            '\u{3400}'..'\u{9fe0}',
            '\u{ac00}'..'\u{d7a0}',
            '\u{e000}'..'\u{f8f0}',
            '\u{17000}'..'\u{18cf0}',
            '\u{20000}'..'\u{e0000}',
            '\u{e0200}'..char::MAX,
        ];
        let is_one =
            |c: char| u32::from(c).is_multiple_of(61) || !alike.iter().any(|block| block.contains(&c));
        for c in ('\0'..=char::MAX).filter(|&c| is_one(c)) {
            assert_same(&format!("a{c}b {c}{c}é{c}\u{301}."));
        }
    }

    #[test]
    fn characters_side_by_side_make_the_words_that_the_tokenizer_makes_of_them() {
        let odd: Vec<char> = "aÉ. \u{301}\u{327}\u{200b}\u{0}\u{fffd}中豈İßſ\u{85}\u{2028}\u{1d165}\u{1d16d}\u{302e}\u{f73}\u{37e}\u{3000}-–"
            .chars()
            .collect();
        let mut state = 7u64;
        for _ in 0..60_000 {
            let text: String = (0..8)
                .map(|_| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    odd[usize::try_from(state >> 33).unwrap() % odd.len()]
                })
                .collect();
            assert_same(&text);
        }
    }

    #[test]
    fn a_word_stands_where_it_was_written() {
        let text = "Sjo\u{308}gren's\u{200b} Café 5.2mg 中文\u{301}x";
        let expected = [
            ("sjogren", "Sjo\u{308}gren"),
            ("'", "'"),
            ("s", "s\u{200b}"),
            ("cafe", "Café"),
            ("5", "5"),
            (".", "."),
            ("2mg", "2mg"),
            ("中", "中"),
            ("文", "文"),
            ("x", "x"),
        ];
        let expected: Vec<_> =
            expected.iter().map(|(letters, there)| ((*letters).to_owned(), *there)).collect();
        assert_eq!(words(text, Case::Uncased), expected);
        let mut all = Words::new(Case::Uncased);
        all.split(text);
        let got: Vec<_> = (0..all.len()).map(|i| all.get(i).unwrap()).collect();
        assert!(got.into_iter().eq(all.iter()) && all.get(10).is_none() && !all.is_empty());
        all.split(" \n");
        assert!(all.is_empty() && all.get(0).is_none());
    }
}
