//! The rows of a sentence in CoNLL-U: what their columns say.

use std::ops::Range;
use std::path::Path;

use base::line::{Line, Place};
use base::read::ReadError;

use super::Phrases;

/// One row of ten columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Row {
    /// `8.1`: nothing in the text.
    EmptyNode,
    /// `3-4`: the next words are written as one.
    Several { numbers: Range<usize>, token: Token },
    /// `5`.
    Word { number: usize, token: Token, governor: Option<usize> },
}

/// A word as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) line: u64,
    pub(super) form: String,
    /// The first of the words that it stands for, from 0.
    pub(super) first: usize,
    pub(super) space_after: bool,
    /// Where it stands in its document, if the file says so.
    pub(super) characters: Option<Range<usize>>,
    pub(super) tag: Option<String>,
}

/// A word as it is parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) line: u64,
    /// The number of the word on which it depends, from 0; `None` for the root.
    pub(super) governor: Option<usize>,
}

/// A sentence with its comments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sentence {
    /// Line of its first row.
    pub(super) line: u64,
    pub(super) id: Option<String>,
    /// The document that begins with it, empty if it has no name.
    pub(super) newdoc: Option<String>,
    pub(super) text: Option<String>,
    pub(super) tokens: Vec<Token>,
    pub(super) words: Vec<Word>,
    /// Words that the last token of several still has to have.
    inside: Range<usize>,
}

const ID: &str = "ID";
const HEAD: &str = "HEAD";
const MISC: &str = "MISC";

fn value(
    line: Line<'_>,
    column: (usize, &'static str),
    found: &str,
    expected: impl Into<String>,
) -> ReadError {
    ReadError::text(line.place(Some(column)), found, expected, "fix the row")
}

impl Row {
    pub(super) fn parse(line: Line<'_>) -> Result<Self, ReadError> {
        let columns: Vec<&str> = super::unmarked(line.text).split('\t').collect();
        let [id, form, _, _, _, _, head, _, _, misc] = columns[..] else {
            let found = format!("{} columns", columns.len());
            let expected = "ten with tabs between them, or a blank line, or a comment (#)";
            return Err(ReadError::new(line.place(None), found, expected, "fix the row"));
        };
        let wrong = || value(line, (1, ID), id, "a number from 1, a range (3-4) or an empty node (8.1)");
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        if let Some((before, after)) = id.split_once('.') {
            return number(before).and(number(after)).map(|_| Self::EmptyNode);
        }
        if form.trim().is_empty() {
            return Err(value(line, (2, "FORM"), form, "a word"));
        }
        let token = token(line, form.trim(), misc)?;
        if let Some((first, last)) = id.split_once('-') {
            let (first, last) = (number(first)?, number(last)?);
            if first == 0 || last < first || last - first > 1000 {
                return Err(wrong());
            }
            return Ok(Self::Several { numbers: first..last + 1, token });
        }
        let number = number(id)?;
        let governor = match head {
            "_" => None,
            _ => Some(head.parse().map_err(|_| value(line, (7, HEAD), head, "the number of a word, or 0"))?),
        };
        Ok(Self::Word { number, token, governor })
    }
}

fn token(line: Line<'_>, form: &str, misc: &str) -> Result<Token, ReadError> {
    let (mut start, mut end) = (None, None);
    let mut token = Token {
        line: line.place(None).line,
        form: form.to_owned(),
        first: 0,
        space_after: true,
        characters: None,
        tag: None,
    };
    for entry in misc.split('|') {
        let Some((name, text)) = entry.split_once('=') else { continue };
        let number =
            || text.parse::<usize>().map_err(|_| value(line, (10, MISC), entry, "a number of characters"));
        match name {
            "start_char" => start = Some(number()?),
            "end_char" => end = Some(number()?),
            "ner" => token.tag = Some(text.to_owned()),
            "SpaceAfter" => token.space_after = text != "No",
            _ => {}
        }
    }
    token.characters = match (start, end) {
        (None, None) => None,
        (Some(start), Some(end))
            if start.checked_add(form.chars().count()).is_some_and(|least| least <= end) =>
        {
            Some(start..end)
        }
        _ => {
            let expected = "start_char and end_char, both or none, with room for the word between them";
            return Err(value(line, (10, MISC), misc, expected));
        }
    };
    Ok(token)
}

impl Sentence {
    /// What a line behind its `#` says.
    pub(super) fn comment(&mut self, comment: &str) {
        let (name, text) = comment.split_once('=').unwrap_or((comment, ""));
        let text = text.trim().to_owned();
        match name.trim() {
            "text" => self.text = Some(text),
            "sent_id" => self.id = Some(text).filter(|id| !id.is_empty()),
            "newdoc" | "newdoc id" => self.newdoc = Some(text),
            _ => {}
        }
    }

    pub(super) fn commented(&self) -> bool {
        self.id.is_some() || self.text.is_some()
    }

    /// Forgets comments that speak of no sentence; but a document may begin with them.
    pub(super) fn forget(&mut self) {
        (self.id, self.text) = (None, None);
    }

    /// Adds a row, which must be the next.
    pub(super) fn add(&mut self, line: Line<'_>, row: Row, phrases: Phrases) -> Result<(), ReadError> {
        let next = self.words.len() + 1;
        let order = |found: usize| {
            value(line, (1, ID), &found.to_string(), format!("{next}, the next word's number"))
        };
        if self.tokens.is_empty() {
            self.line = line.place(None).line;
        }
        match row {
            Row::EmptyNode => {}
            Row::Several { numbers, token } => {
                if numbers.start != next || self.inside.contains(&next) {
                    return Err(order(numbers.start));
                }
                self.inside = numbers;
                self.tokens.push(Token { first: next - 1, ..token });
            }
            Row::Word { number, token, governor } => {
                if number != next {
                    return Err(order(number));
                }
                if phrases != Phrases::None && governor.is_none() {
                    return Err(value(
                        line,
                        (7, HEAD),
                        "_",
                        "the number of a word, or 0 (or set `phrases` to `none`)",
                    ));
                }
                self.words.push(Word { line: token.line, governor });
                match self.tokens.last_mut().filter(|_| self.inside.contains(&number)) {
                    Some(several) => several.tag = several.tag.take().or(token.tag),
                    None => self.tokens.push(Token { first: number - 1, ..token }),
                }
            }
        }
        Ok(())
    }

    /// Checks what only the whole sentence shows; from then on governors count from 0, without the root.
    pub(super) fn check(&mut self, file: &Path) -> Result<(), ReadError> {
        let count = self.words.len();
        let wrong = |line, column, found: String, expected| {
            let place = Place { file: file.to_owned(), line, column: Some(column) };
            ReadError::text(place, &found, expected, "fix the row")
        };
        if self.inside.end > count + 1 {
            let line = self.tokens.last().map_or(self.line, |token| token.line);
            let found = format!("{}-{}", self.inside.start, self.inside.end - 1);
            return Err(wrong(line, (1, ID), found, format!("a range of the sentence's {count} words")));
        }
        for word in &mut self.words {
            match word.governor {
                Some(head) if head > count => {
                    let expected = format!("the number of one of the sentence's {count} words, or 0");
                    return Err(wrong(word.line, (7, HEAD), head.to_string(), expected));
                }
                head => word.governor = head.and_then(|head| head.checked_sub(1)),
            }
        }
        Ok(())
    }
}
