//! Rich Release Format: fields that each end with `|`, no header, no quoting. Knows no file of UMLS.

use std::io::BufRead;
use std::path::Path;

use super::line::{self, Line, Lines, Place};

/// Why there is no next record.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no line to be had.
    #[error(transparent)]
    Line(#[from] line::Error),
    /// The line has another number of fields.
    #[error(
        "{place}: {found} columns, expected {expected} with a | after each; the line is cut or the file is of another kind: fetch the file again"
    )]
    Columns {
        /// The line.
        place: Place,
        /// Fields found.
        found: usize,
        /// Fields of this kind of file.
        expected: usize,
    },
    /// The last field has no end.
    #[error(
        "{place}: the line does not end with |, found {found:?} after the last one; the line is cut: fetch the file again"
    )]
    Unfinished {
        /// The line.
        place: Place,
        /// What follows the last `|`.
        found: String,
    },
    /// A field is not what its column holds.
    #[error("{place}: found {found:?}, expected {expected}; the line is damaged, fetch the file again")]
    Field {
        /// Line and column.
        place: Place,
        /// What stands there.
        found: String,
        /// What should.
        expected: &'static str,
    },
}

/// Reads records of `N` fields into one buffer.
#[derive(Debug)]
pub struct Reader<'f, R, const N: usize> {
    lines: Lines<'f, R>,
    ends: [usize; N],
}

/// One line with the places of its fields.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a, const N: usize> {
    line: Line<'a>,
    ends: &'a [usize; N],
}

impl<'f, R: BufRead, const N: usize> Reader<'f, R, N> {
    /// Records of `reader`; `file` names it in messages.
    pub fn new(reader: R, file: &'f Path) -> Self {
        Self { lines: Lines::new(reader, file), ends: [0; N] }
    }

    /// The next record, or none at the end of the file.
    ///
    /// # Errors
    /// When the line is cut, no UTF-8, or has another number of fields.
    pub fn next_record(&mut self) -> Result<Option<Record<'_, N>>, Error> {
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        let mut found = 0;
        for end in memchr::memchr_iter(b'|', line.text.as_bytes()) {
            if let Some(slot) = self.ends.get_mut(found) {
                *slot = end;
            }
            found += 1;
        }
        if found != N {
            return Err(Error::Columns { place: line.place(None), found, expected: N });
        }
        let after = &line.text[self.ends[N - 1] + 1..];
        if !after.is_empty() {
            return Err(Error::Unfinished {
                place: line.place(None),
                found: after.chars().take(40).collect(),
            });
        }
        Ok(Some(Record { line, ends: &self.ends }))
    }

    /// Lines read so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines.lines()
    }

    /// Bytes read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lines.bytes()
    }
}

impl<'a, const N: usize> Record<'a, N> {
    /// The text of a field; columns count from 0.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn field(&self, column: usize) -> &'a str {
        let start = if column == 0 { 0 } else { self.ends[column - 1] + 1 };
        &self.line.text[start..self.ends[column]]
    }

    /// The error that a field (from 0, called `name` in the documentation) is not as `expected`.
    #[must_use]
    pub fn wrong(&self, column: usize, name: &'static str, expected: &'static str) -> Error {
        let place = self.line.place(Some((column + 1, name)));
        Error::Field { place, found: self.field(column).chars().take(40).collect(), expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<[String; 3]>, String> {
        let mut reader = Reader::<_, 3>::new(bytes, Path::new("META/X.RRF"));
        let mut rows = Vec::new();
        while let Some(record) = reader.next_record().map_err(|e| e.to_string())? {
            rows.push([0, 1, 2].map(|column| record.field(column).to_owned()));
        }
        Ok(rows)
    }

    #[test]
    fn fields_may_be_empty_and_hold_any_letter() {
        let rows = fields("a||c|\n|Ménière's \"x\"||\n".as_bytes()).unwrap();
        assert_eq!(rows, [["a", "", "c"], ["", "Ménière's \"x\"", ""]]);
        assert!(fields(b"").unwrap().is_empty());
    }

    #[test]
    fn damaged_lines_are_refused_with_their_number() {
        let cases: [(&[u8], &str); 6] = [
            (b"a|b|c|\na|b|\n", "META/X.RRF: line 2: 2 columns, expected 3"),
            (b"a|b|c|d|\n", "line 1: 4 columns, expected 3"),
            (b"a|b|c|d\n", "line 1: the line does not end with |, found \"d\""),
            (b"a|b|c|\n\n", "line 2: 0 columns"),
            (b"a|b|c|\na|b|c|", "line 2: the file ends in the middle"),
            (b"a|b|c|\na|\xff|c|\n", "line 2: byte 3 of the line is not valid UTF-8"),
        ];
        for (bytes, expected) in cases {
            let message = fields(bytes).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
    }
}
