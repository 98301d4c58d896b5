//! Words that a parser printed, found again in the text that it was given.
//!
//! White space does not count, neither between words nor inside them, where `_` may stand for it (Stanza prints trees so). Between two
//! words of the text nothing else may stand. Quotes,
//! dashes and ellipses are found as well where the parser wrote them the Penn Treebank's way (` `` `, `''`, `--`, `...`).

use std::ops::Range;

use base::read::{Location, ReadError};

/// Why words and text do not belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    found: String,
    expected: String,
}

impl Mismatch {
    /// The error, of the text that stands at `place`.
    #[must_use]
    pub fn at(self, place: impl Into<Location>) -> ReadError {
        ReadError::new(place, self.found, self.expected, "annotate the text again")
    }
}

/// Words as the Penn Treebank writes them, and what a text may have instead.
const SPELT: [(&str, &[&str]); 6] = [
    ("``", &["\"", "\u{201c}", "\u{201e}", "\u{ab}", "''"]),
    ("''", &["\"", "\u{201d}", "\u{201c}", "\u{bb}"]),
    ("`", &["'", "\u{2018}"]),
    ("'", &["\u{2019}", "\u{2018}"]),
    ("--", &["\u{2013}", "\u{2014}"]),
    ("...", &["\u{2026}"]),
];

/// A place in a text up to which its words have been found.
#[derive(Debug, Clone)]
pub struct Cursor<'t> {
    text: &'t str,
    at: usize,
    words: usize,
}

impl<'t> Cursor<'t> {
    /// The beginning of `text`.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0, words: 0 }
    }

    /// Where the next word stands, in bytes.
    ///
    /// # Errors
    /// When the text goes on with something else, or the word is nothing but white space.
    pub fn find(&mut self, word: &str) -> Result<Range<usize>, Mismatch> {
        let rest = self.text[self.at..].trim_start();
        let start = self.text.len() - rest.len();
        let others = SPELT.iter().find(|(spelt, _)| *spelt == word).map_or(&[][..], |(_, others)| others);
        let length = std::iter::once(&word).chain(others).find_map(|spelt| length(rest, spelt));
        let Some(length) = length else {
            let found = excerpt(rest);
            let number = self.words + 1;
            let found =
                format!("word {number} ({word:?}) does not stand at byte {start} of the text, but {found:?}");
            return Err(Mismatch { found, expected: "the words of this text in order".to_owned() });
        };
        self.at = start + length;
        self.words += 1;
        Ok(start..self.at)
    }

    /// Checks that nothing but white space is left.
    ///
    /// # Errors
    /// When something is.
    pub fn finish(self) -> Result<(), Mismatch> {
        let rest = self.text[self.at..].trim_start();
        if rest.is_empty() {
            return Ok(());
        }
        let byte = self.text.len() - rest.len();
        let found = format!("the text goes on at byte {byte} with {:?}", excerpt(rest));
        Err(Mismatch { found, expected: format!("no more than its {} words", self.words) })
    }
}

/// Where all words of a text stand, in bytes.
///
/// # Errors
/// When they are not the words of this text.
pub fn words(text: &str, words: &[impl AsRef<str>]) -> Result<Vec<Range<usize>>, Mismatch> {
    let mut cursor = Cursor::new(text);
    let found = words.iter().map(|word| cursor.find(word.as_ref())).collect::<Result<_, _>>()?;
    cursor.finish()?;
    Ok(found)
}

/// Bytes of `rest` that say `word`; none if it does not begin so.
fn length(rest: &str, word: &str) -> Option<usize> {
    let mut end = None;
    for wanted in word.chars().filter(|c| !c.is_whitespace()) {
        let left = &rest[end.unwrap_or(0)..];
        let letters = left.trim_start();
        match letters.strip_prefix(wanted) {
            Some(after) => end = Some(rest.len() - after.len()),
            // It stands for white space.
            None if wanted == '_' && end.is_some() && letters.len() < left.len() => {}
            None => return None,
        }
    }
    end
}

fn excerpt(rest: &str) -> String {
    if rest.is_empty() { "the end of the text".to_owned() } else { rest.chars().take(20).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, all: &[&str]) -> Result<Vec<Range<usize>>, Mismatch> {
        words(text, all)
    }

    #[test]
    fn words_are_found_in_order_whatever_the_white_space() {
        assert_eq!(find(" née 𝔾,\nx", &["née", "𝔾", ",", "x"]).unwrap(), [1..5, 6..10, 10..11, 12..13]);
        assert_eq!(find("ab c\nd", &["a", "b c d"]).unwrap(), [0..1, 1..6]);
        assert_eq!(find("1\n 000_g", &["1_000_g"]).unwrap(), find("1\n 000_g", &["1000_g"]).unwrap());
        assert!(find("1000", &["1_000"]).is_err() && find(" a", &["_a"]).is_err());
        assert_eq!(find("1 000 g", &["1000", "g"]).unwrap(), [0..5, 6..7]);
        assert!(find(" \n", &[]).unwrap().is_empty());
    }

    #[test]
    fn quotes_and_dashes_may_be_the_treebanks() {
        let text = "\"a\" – ‘b’ …``";
        let all = ["``", "a", "''", "--", "`", "b", "'", "...", "``"];
        let found = find(text, &all).unwrap();
        let found: Vec<&str> = found.into_iter().map(|place| &text[place]).collect();
        assert_eq!(found, ["\"", "a", "\"", "–", "‘", "b", "’", "…", "``"]);
        assert!(find("\"a", &["`", "a"]).is_err());
    }

    #[test]
    fn what_does_not_belong_together_is_said() {
        let message = find("a née", &["a", "nee"]).unwrap_err().at("some.file").to_string();
        assert!(
            message
                .starts_with("some.file: word 2 (\"nee\") does not stand at byte 2 of the text, but \"née\""),
            "{message}"
        );
        assert!(
            find("a", &["a", "b"])
                .unwrap_err()
                .at("some.file")
                .to_string()
                .contains("but \"the end of the text\"")
        );
        let message = find("a b", &["a"]).unwrap_err().at("some.file").to_string();
        assert!(
            message.starts_with(
                "some.file: the text goes on at byte 2 with \"b\", expected no more than its 1 words"
            ),
            "{message}"
        );
        assert!(find("a", &[" "]).is_err(), "no word at all");
    }
}
