//! Tables of text whose columns are separated by tabs, commas, semicolons or pipes.
//!
//! Between tabs and pipes nothing is quoted, between commas and semicolons a field may stand in double quotes and hold separators, doubled
//! quotes and line breaks; a layout may say otherwise. A BOM is skipped; LF and CRLF end a line (where fields are quoted, a bare CR
//! too), and the last line may lack its end. Every row has as many columns as the first. Lines without any content and lines that repeat the
//! names of the columns are no rows: they are counted.

mod records;

use std::fmt;

use base::line::{self, Place};
use serde::{Deserialize, Serialize};

pub(super) use self::records::{Record, Records};

/// Lines that repeat the names of the columns.
pub(super) const REPEATED_HEADER: &str = "repeated_header";

/// What stands between two columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Separator {
    /// A tab; nothing is quoted unless the layout says so.
    Tab,
    /// A comma; fields may be quoted.
    Comma,
    /// A semicolon; fields may be quoted.
    Semicolon,
    /// A pipe; nothing is quoted unless the layout says so.
    Pipe,
}

impl Separator {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Tab, "tab"), (Self::Comma, "comma"), (Self::Semicolon, "semicolon"), (Self::Pipe, "pipe")];

    fn byte(self) -> u8 {
        match self {
            Self::Tab => b'\t',
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Pipe => b'|',
        }
    }
}

/// What double quotes around a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quotes {
    /// No part of it: it may hold separators, line breaks and, doubled, quotes.
    Double,
    /// Letters like all others.
    None,
}

/// What the first line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstLine {
    /// The names of the columns.
    Names,
    /// A row like all others.
    Row,
}

/// Which column is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Column {
    /// By its place, from 1.
    Position(usize),
    /// By its name in the first line.
    Name(String),
}

/// How lines become columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) separator: Separator,
    /// What quotes are, if that is said.
    pub(super) quotes: Option<Quotes>,
    pub(super) first_line: FirstLine,
}

impl Shape {
    /// Tabs, the names of the columns, nothing said of quotes.
    pub(super) const TABS: Self =
        Self { separator: Separator::Tab, quotes: None, first_line: FirstLine::Names };

    fn quotes(self) -> Quotes {
        self.quotes.unwrap_or(match self.separator {
            Separator::Tab | Separator::Pipe => Quotes::None,
            Separator::Comma | Separator::Semicolon => Quotes::Double,
        })
    }
}

/// What else may separate the columns of a line that has too few, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint(Option<Separator>);

impl Hint {
    /// No other.
    const NONE: Self = Self(None);

    /// Looks for another separator that `line` has `columns` - 1 of at least.
    fn of<'t>(line: &(impl Iterator<Item = &'t str> + Clone), columns: usize, separator: Separator) -> Self {
        let count = |byte: u8| -> usize {
            line.clone().map(|text| memchr::memchr_iter(byte, text.as_bytes()).count()).sum()
        };
        let others = Separator::ALL.into_iter().map(|(other, _)| other).filter(|other| *other != separator);
        let counted = others.map(|other| (count(other.byte()), other));
        let most =
            counted.filter(|(found, _)| *found > 0 && found + 1 >= columns).max_by_key(|(found, _)| *found);
        Self(most.map(|(_, other)| other))
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(separator) = self.0 else { return Ok(()) };
        let name = Separator::ALL.into_iter().find_map(|(other, name)| (other == separator).then_some(name));
        write!(
            f,
            " (if it is {:?}: separator = {:?})",
            char::from(separator.byte()),
            name.unwrap_or_default()
        )
    }
}

/// Why there is no next row.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no line to be had.
    #[error(transparent)]
    Line(#[from] line::Error),
    /// A row has too few or too many columns.
    #[error(
        "{place}: {found} columns, expected {expected} as in the first line; mend the line, or say in the config what separates the columns{hint}"
    )]
    Width {
        /// The row.
        place: Place,
        /// Columns found.
        found: usize,
        /// Columns of the first line, or as many as are read.
        expected: usize,
        /// What else may separate them.
        hint: Hint,
    },
    /// The first line does not name a column that is read.
    #[error(
        "{place}: found {found:?}, expected a column named {name:?}; say in the config which column has the {role}{hint}"
    )]
    NoName {
        /// The first line.
        place: Place,
        /// What stands there.
        found: Box<str>,
        /// The name that is missing.
        name: String,
        /// What the column is read as.
        role: &'static str,
        /// What else may separate columns.
        hint: Hint,
    },
    /// The config asks for a column in a way that the file cannot have.
    #[error("{place}: the {role} is asked for as column {asked}, expected {expected}; mend the config")]
    Asked {
        /// The first line.
        place: Place,
        /// What the column is read as.
        role: &'static str,
        /// How the config says it.
        asked: String,
        /// How it may.
        expected: &'static str,
    },
}

#[cfg(test)]
mod tests;
