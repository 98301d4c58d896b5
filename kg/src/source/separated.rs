//! Tables of text whose columns are separated by tabs, commas, semicolons or pipes.
//!
//! Between tabs and pipes nothing is quoted, between commas and semicolons a field may stand in double quotes and hold separators, doubled
//! quotes and line breaks; a layout may say otherwise. A BOM is skipped; LF and CRLF end a line (where fields are quoted, a bare CR
//! too), and the last line may lack its end. Every row has as many columns as the first. Lines without any content and lines that repeat the
//! names of the columns are no rows: they are counted.

mod records;

use base::read::ReadError;
use serde::{Deserialize, Serialize};

pub(super) use self::records::{Record, Records};

/// Lines that repeat the names of the columns.
pub(super) const REPEATED_HEADER: &str = "repeated_header";

/// What to do about a row that does not fit its columns.
pub(super) const OTHER_COLUMN: &str = "fix the line, or say in the config which column is meant";
/// What to do about a file that is not laid out as the config says, or as nothing says how it is.
pub(super) const OTHER_LAYOUT: &str = "say in the config how the file is laid out (docs/config.md)";

/// What stands between two columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Separator {
    /// A tab; a quoted field is an error unless `quotes` is set.
    #[default]
    Tab,
    /// A comma; fields may be quoted.
    Comma,
    /// A semicolon; fields may be quoted.
    Semicolon,
    /// A pipe; a quoted field is an error unless `quotes` is set.
    Pipe,
}

impl Separator {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Tab, "tab"), (Self::Comma, "comma"), (Self::Semicolon, "semicolon"), (Self::Pipe, "pipe")];

    /// The character.
    pub(super) fn character(self) -> char {
        char::from(self.byte())
    }

    fn byte(self) -> u8 {
        match self {
            Self::Tab => b'\t',
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Pipe => b'|',
        }
    }
}

/// What double quotes around a field mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quotes {
    /// They delimit the field, which may then contain separators, line breaks and doubled quotes.
    Double,
    /// They are part of the field, like any other character.
    None,
}

/// What the first line of a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FirstLine {
    /// The names of the columns.
    Names,
    /// A row of data; columns are then given by position.
    Row,
    /// The config does not say: it is read as names, and who asks for columns by position alone is warned. Described as `names`, for it comes to the same.
    #[default]
    #[serde(rename(serialize = "names"), skip_deserializing)]
    #[schemars(skip)]
    Unsaid,
}

impl FirstLine {
    /// Whether it has the names of the columns.
    pub(super) fn has_names(self) -> bool {
        self != Self::Row
    }
}

/// A column, by name or position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Column {
    /// By its position, from 1.
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

/// What else may separate the columns of a line that has too few, for messages: a separator that `line` has `columns` - 1 of at least.
fn hint<'t>(line: &(impl Iterator<Item = &'t str> + Clone), columns: usize, separator: Separator) -> String {
    let count = |byte: u8| -> usize {
        line.clone().map(|text| memchr::memchr_iter(byte, text.as_bytes()).count()).sum()
    };
    let others = Separator::ALL.into_iter().filter(|(other, _)| *other != separator);
    let counted = others.map(|(other, name)| (count(other.byte()), other, name));
    let fitting = counted.filter(|(found, ..)| *found > 0 && found + 1 >= columns);
    fitting.max_by_key(|(found, ..)| *found).map_or_else(String::new, |(_, other, name)| {
        format!(" (if it is {:?}: separator = {name:?})", char::from(other.byte()))
    })
}

/// Why there is no row.
#[derive(Debug)]
pub(super) enum NoRow {
    /// It is not as its columns ask; the file can be read on behind it.
    Unfit(ReadError),
    /// The file cannot be read on.
    End(ReadError),
}

impl From<ReadError> for NoRow {
    fn from(error: ReadError) -> Self {
        Self::End(error)
    }
}

impl From<NoRow> for ReadError {
    fn from(no: NoRow) -> Self {
        match no {
            NoRow::Unfit(error) | NoRow::End(error) => error,
        }
    }
}

#[cfg(test)]
mod tests;
