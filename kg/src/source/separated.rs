//! Tables of text whose columns are separated by tabs or commas. Knows no column's meaning.
//!
//! Tabs separate without any quoting; with commas, a field may stand in double quotes and hold commas, doubled quotes and line
//! breaks. A byte order mark is skipped; LF and CRLF end a line (with commas, a bare CR too). Every row has as many columns as the
//! first. With tabs the last line must end, or the file counts as cut; with commas it may lack its end.

use std::io::BufRead;
use std::path::Path;

use csv::StringRecord;
use serde::{Deserialize, Serialize};

use super::line::{self, Line, Lines, Place};
use super::mark::Unmarked;
use super::newline::Newlines;

/// What stands between two columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Separator {
    /// A tab; nothing is quoted.
    Tab,
    /// A comma; fields may be quoted.
    Comma,
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

/// Why there is no next row.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no line to be had.
    #[error(transparent)]
    Line(#[from] line::Error),
    /// A row has too few or too many columns.
    #[error(
        "{place}: {found} columns, expected {expected} as in the first line; mend the line, or say in the config what separates the columns"
    )]
    Width {
        /// The row.
        place: Place,
        /// Columns found.
        found: usize,
        /// Columns of the first line, or as many as are read.
        expected: usize,
    },
    /// The first line does not name a column that is read.
    #[error(
        "{place}: found {found:?}, expected a column named {name:?}; say in the config which column has the {role}"
    )]
    NoName {
        /// The first line.
        place: Place,
        /// What stands there.
        found: String,
        /// The name that is missing.
        name: String,
        /// What the column is read as.
        role: &'static str,
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

/// Reads rows into one buffer.
#[derive(Debug)]
pub(super) struct Records<'f, R> {
    rows: Rows<'f, R>,
    file: &'f Path,
    names: Option<Vec<String>>,
    width: Option<usize>,
    least: usize,
}

#[derive(Debug)]
enum Rows<'f, R> {
    Tab(Lines<'f, R>, Vec<usize>),
    Comma(Box<Quoted<R>>),
}

#[derive(Debug)]
struct Quoted<R> {
    csv: csv::Reader<Unmarked<Newlines<R>>>,
    record: StringRecord,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Record<'a> {
    /// A line, its text without byte order mark, and where its fields end.
    Tab(Line<'a>, &'a str, &'a [usize]),
    /// A record, its first line, its file.
    Comma(&'a StringRecord, u64, &'a Path),
}

impl<'a> Record<'a> {
    /// A field, from 0; empty if there is no such column.
    pub(super) fn field(&self, column: usize) -> &'a str {
        match *self {
            Record::Tab(_, text, ends) => field(text, ends, column),
            Record::Comma(record, ..) => record.get(column).unwrap_or_default(),
        }
    }

    /// This row, or a column of it (from 0) by what it is read as.
    pub(super) fn place(&self, column: Option<(usize, &'static str)>) -> Place {
        let column = column.map(|(column, name)| (column + 1, name));
        match *self {
            Record::Tab(line, ..) => line.place(column),
            Record::Comma(_, line, file) => Place { file: file.to_owned(), line, column },
        }
    }

    /// The row as it stands in a table with tabs.
    pub(super) fn line(&self) -> &'a str {
        match *self {
            Record::Tab(_, text, _) => text,
            Record::Comma(..) => "",
        }
    }

    fn width(&self) -> usize {
        match self {
            Record::Tab(_, _, ends) => ends.len(),
            Record::Comma(record, ..) => record.len(),
        }
    }
}

fn field<'a>(text: &'a str, ends: &[usize], column: usize) -> &'a str {
    let start = if column == 0 { Some(0) } else { ends.get(column - 1).map(|end| end + 1) };
    let range = start.zip(ends.get(column).copied());
    range.and_then(|(start, end)| text.get(start..end)).unwrap_or_default()
}

impl<'f, R: BufRead> Records<'f, R> {
    /// Rows of `reader` after the names of its columns, if the first line has such.
    pub(super) fn new(
        (reader, file): (R, &'f Path),
        separator: Separator,
        first: FirstLine,
    ) -> Result<Self, Error> {
        let rows = match separator {
            Separator::Tab => Rows::Tab(Lines::new(reader, file), Vec::new()),
            Separator::Comma => {
                let mut csv = csv::ReaderBuilder::new();
                let csv =
                    csv.has_headers(false).flexible(true).from_reader(Unmarked::new(Newlines::new(reader)));
                Rows::Comma(Box::new(Quoted { csv, record: StringRecord::new() }))
            }
        };
        let mut records = Self { rows, file, names: None, width: None, least: 0 };
        if first == FirstLine::Names {
            let row = records.rows.next_row(file)?;
            let names =
                row.iter().flat_map(|row| (0..row.width()).map(|column| row.field(column).trim().to_owned()));
            let names: Vec<String> = names.collect();
            records.width = Some(names.len());
            records.names = Some(names);
        }
        Ok(records)
    }

    /// The place (from 0) of a column that is read as `role`.
    pub(super) fn column(&mut self, column: &Column, role: &'static str) -> Result<usize, Error> {
        let place = || Place { file: self.file.to_owned(), line: 1, column: None };
        let asked = |expected| {
            let asked = match column {
                Column::Position(position) => position.to_string(),
                Column::Name(name) => format!("{name:?}"),
            };
            Error::Asked { place: place(), role, asked, expected }
        };
        let found = match (column, &self.names) {
            (Column::Position(0), _) => return Err(asked("a number from 1")),
            (Column::Position(position), _) => position - 1,
            (Column::Name(_), None) => return Err(asked("its number, since the first line has no names")),
            (Column::Name(name), Some(names)) => {
                let mut places = (0..names.len()).filter(|&place| names.get(place) == Some(name));
                match (places.next(), places.next()) {
                    (Some(_), Some(_)) => return Err(asked("its number, since the name stands there twice")),
                    (Some(found), None) => found,
                    (None, _) => {
                        let found = names.join(" ").chars().take(80).collect();
                        return Err(Error::NoName { place: place(), found, name: name.clone(), role });
                    }
                }
            }
        };
        if self.width.is_some_and(|width| found >= width) {
            return Err(asked("no more than the first line has"));
        }
        self.least = self.least.max(found + 1);
        Ok(found)
    }

    /// The place (from 0) of the first of `names` that a column has.
    pub(super) fn optional(&self, names: &[&str]) -> Option<usize> {
        let known = self.names.as_deref().unwrap_or_default();
        names.iter().find_map(|name| known.iter().position(|known| known == name))
    }

    /// The next row, or none at the end of the file.
    pub(super) fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        let Some(row) = self.rows.next_row(self.file)? else { return Ok(None) };
        let (found, expected) = (row.width(), self.width.unwrap_or(self.least.max(row.width())));
        if found != expected {
            return Err(Error::Width { place: row.place(None), found, expected });
        }
        self.width = Some(found);
        Ok(Some(row))
    }

    /// Lines read so far.
    pub(super) fn lines(&self) -> u64 {
        match &self.rows {
            Rows::Tab(lines, _) => lines.lines(),
            Rows::Comma(quoted) => quoted.csv.get_ref().get_ref().lines_read(),
        }
    }

    /// Bytes read so far.
    pub(super) fn bytes(&self) -> u64 {
        match &self.rows {
            Rows::Tab(lines, _) => lines.bytes(),
            Rows::Comma(quoted) => quoted.csv.get_ref().get_ref().bytes_read(),
        }
    }
}

impl<R: BufRead> Rows<'_, R> {
    fn next_row<'a>(&'a mut self, file: &'a Path) -> Result<Option<Record<'a>>, line::Error> {
        match self {
            Rows::Tab(lines, ends) => {
                let first = lines.lines() == 0;
                let Some(line) = lines.next_line()? else { return Ok(None) };
                let bare = line.text.strip_prefix('\u{feff}').filter(|_| first).unwrap_or(line.text);
                ends.clear();
                ends.extend(memchr::memchr_iter(b'\t', bare.as_bytes()).chain([bare.len()]));
                Ok(Some(Record::Tab(line, bare, ends)))
            }
            Rows::Comma(quoted) => quoted.next_row(file),
        }
    }
}

impl<R: BufRead> Quoted<R> {
    fn next_row<'a>(&'a mut self, file: &'a Path) -> Result<Option<Record<'a>>, line::Error> {
        let before = self.csv.position().line();
        let place = |line| Place { file: file.to_owned(), line, column: None };
        let more = self.csv.read_record(&mut self.record).map_err(|e| {
            let line = e.position().map_or(before, csv::Position::line);
            match e.kind() {
                csv::ErrorKind::Utf8 { err, .. } => {
                    line::Error::Utf8 { place: place(line), byte: err.valid_up_to() + 1 }
                }
                _ => line::Error::Read { place: place(line), source: std::io::Error::other(e) },
            }
        })?;
        // The position is before blank lines, which csv skips; what follows the record is exact.
        let breaks: usize =
            self.record.iter().map(|field| memchr::memchr_iter(b'\n', field.as_bytes()).count()).sum();
        let after = self.csv.position().line();
        let line = after.saturating_sub(breaks as u64 + 1).max(before);
        if more && self.csv.get_ref().get_ref().is_cut() {
            return Err(line::Error::Cut { place: place(line) });
        }
        Ok(more.then_some(Record::Comma(&self.record, line, file)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: impl AsRef<[u8]>, separator: Separator, first: FirstLine) -> Result<Vec<String>, String> {
        let read = || -> Result<Vec<String>, Error> {
            let mut records = Records::new((text.as_ref(), Path::new("t.txt")), separator, first)?;
            let mut rows = Vec::new();
            while let Some(record) = records.next_record()? {
                let fields: Vec<&str> = (0..record.width()).map(|column| record.field(column)).collect();
                rows.push(format!("{}: {}", record.place(None).line, fields.join("/")));
            }
            assert_eq!(records.bytes(), text.as_ref().len() as u64);
            Ok(rows)
        };
        read().map_err(|e| e.to_string())
    }

    #[test]
    fn tabs_quote_nothing_and_commas_do() {
        let tabs = "\u{feff}a\t\"b\r\n\tc,d\n";
        assert_eq!(rows(tabs, Separator::Tab, FirstLine::Row).unwrap(), ["1: a/\"b", "2: /c,d"]);
        let commas = "\u{feff}\"a,b\",\"c \"\"d\"\"\"\r\n\"e\nf\",g\n\nh,";
        let expected = ["1: a,b/c \"d\"", "2: e\nf/g", "5: h/"];
        assert_eq!(rows(commas, Separator::Comma, FirstLine::Row).unwrap(), expected);
        assert_eq!(rows(commas, Separator::Comma, FirstLine::Names).unwrap(), expected[1..]);
        // As a file is read: its first two bytes come by themselves.
        let pieces = std::io::BufReader::with_capacity(2, commas.as_bytes());
        let mut records =
            Records::new((pieces, Path::new("t.txt")), Separator::Comma, FirstLine::Row).unwrap();
        assert_eq!(records.next_record().unwrap().unwrap().field(0), "a,b");
    }

    #[test]
    fn columns_are_found_by_name_or_number() {
        let open = |first| {
            Records::new((&b"id\tname\tid\nx\ty\tz\n"[..], Path::new("t.txt")), Separator::Tab, first)
        };
        let name = |name: &str| Column::Name(name.to_owned());
        let mut named = open(FirstLine::Names).unwrap();
        assert_eq!(named.column(&name("name"), "text").unwrap(), 1);
        assert_eq!(named.column(&Column::Position(3), "text").unwrap(), 2);
        assert_eq!(named.optional(&["label", "name"]), Some(1));
        let cases = [
            (
                name("nam"),
                "t.txt: line 1: found \"id name id\", expected a column named \"nam\"; say in the config which column has the text",
            ),
            (name("id"), "as column \"id\", expected its number, since the name stands there twice"),
            (Column::Position(0), "as column 0, expected a number from 1"),
            (Column::Position(4), "as column 4, expected no more than"),
        ];
        for (column, expected) in cases {
            let message = named.column(&column, "text").unwrap_err().to_string();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
        let mut plain = open(FirstLine::Row).unwrap();
        let message = plain.column(&name("id"), "text").unwrap_err().to_string();
        assert!(message.contains("expected its number, since the first line has no names"), "{message}");
        plain.column(&Column::Position(4), "text").unwrap();
        let message = plain.next_record().unwrap_err().to_string();
        assert!(message.contains("line 1: 3 columns, expected 4"), "{message}");
    }

    #[test]
    fn damaged_tables_are_refused() {
        let cases: [(&[u8], Separator, &str); 6] = [
            (b"a\tb\nc\n", Separator::Tab, "t.txt: line 2: 1 columns, expected 2"),
            (b"a\tb\nc\td", Separator::Tab, "line 2: the file ends in the middle"),
            (b"a\tb\n\xff\td\n", Separator::Tab, "line 2: byte 1 of the line is not valid UTF-8"),
            (b"a,b\nc,d,e\n", Separator::Comma, "line 2: 3 columns, expected 2"),
            (b"a,b\nc,\"d\n", Separator::Comma, "line 2: the file ends in the middle"),
            (b"a,b\nc,d\xff\n", Separator::Comma, "line 2: byte 2 of the line is not valid UTF-8"),
        ];
        for (text, separator, expected) in cases {
            let message = rows(text, separator, FirstLine::Row).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
    }
}
