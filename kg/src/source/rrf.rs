//! Rich Release Format: fields that each end with `|`, no header, no quoting.

mod feed;
pub mod scan;

use std::path::Path;

use base::line::{self, Place, has_returns};
use base::read::ReadError;

/// Whole lines of a file in memory, read record by record without copying.
#[derive(Debug)]
pub struct Rows<'a, const N: usize> {
    /// What is valid UTF-8 and not yet read.
    rest: &'a str,
    after: After,
    file: &'a Path,
    /// Lines read.
    number: u64,
    ends: [usize; N],
}

/// What comes after the valid text.
#[derive(Debug, Clone, Copy)]
enum After {
    Nothing,
    /// A line whose byte (from 1) is no UTF-8.
    NoText(usize),
}

/// One line with the places of its fields.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a, const N: usize> {
    line: &'a str,
    number: u64,
    file: &'a Path,
    ends: &'a [usize; N],
}

impl<'a, const N: usize> Rows<'a, N> {
    /// Records of `bytes`; `file` names it in messages, in which lines count from the beginning of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8], file: &'a Path) -> Self {
        let (rest, after) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, After::Nothing),
            Err(e) => {
                let valid = &bytes[..e.valid_up_to()];
                let lines = memchr::memrchr(b'\n', valid).map_or(0, |end| end + 1);
                let text = std::str::from_utf8(&valid[..lines]).unwrap_or_default();
                (text, After::NoText(valid.len() - lines + 1))
            }
        };
        Self { rest, after, file, number: 0, ends: [0; N] }
    }

    /// The next record, or none at the end.
    ///
    /// # Errors
    /// When the line is cut, no UTF-8, or has another number of fields.
    pub fn next_record(&mut self) -> Result<Option<Record<'_, N>>, ReadError> {
        let (line, rest) = match memchr::memchr(b'\n', self.rest.as_bytes()) {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None if self.is_last_line() => (self.rest, ""),
            None => return self.end(),
        };
        self.rest = rest;
        self.number += 1;
        let line = line.strip_suffix('\r').unwrap_or(line);
        let found = split(line.as_bytes(), &mut self.ends);
        if found != N {
            if has_returns(line.as_bytes()) {
                return Err(line::bare_cr(self.place()));
            }
            let expected = format!("{N} with a | after each");
            let remedy = "the line is cut or the file is of another kind: fetch the file again";
            return Err(ReadError::new(self.place(), format!("{found} columns"), expected, remedy));
        }
        let after = self.ends[N - 1] + 1;
        if after != line.len() {
            let found: String = line[after..].chars().take(40).collect();
            let found = format!("the line does not end with |, found {found:?} after the last one");
            return Err(ReadError::new(self.place(), found, "", "the line is cut: fetch the file again"));
        }
        Ok(Some(Record { line, number: self.number, file: self.file, ends: &self.ends }))
    }

    /// Whether what is left is the file's last line without its end: the `|` after its last field tells that it is whole.
    fn is_last_line(&self) -> bool {
        !self.rest.is_empty() && matches!(self.after, After::Nothing)
    }

    fn end(&mut self) -> Result<Option<Record<'_, N>>, ReadError> {
        let place = Place { file: self.file.to_owned(), line: self.number + 1, column: None };
        match self.after {
            After::NoText(byte) => Err(line::not_utf8(place, byte)),
            After::Nothing => Ok(None),
        }
    }

    /// Lines read so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.number
    }

    fn place(&self) -> Place {
        Place { file: self.file.to_owned(), line: self.number, column: None }
    }
}

const PIPES: u64 = u64::from_le_bytes([b'|'; 8]);
const LOW_BITS: u64 = u64::from_le_bytes([0x7f; 8]);

/// Puts the places of the first `N` pipes of a line into `ends` and returns how many there are. Eight bytes are looked at in one
/// step, for fields are short: a search from pipe to pipe would start anew every few bytes.
fn split<const N: usize>(line: &[u8], ends: &mut [usize; N]) -> usize {
    let mut found = 0;
    let (words, tail) = line.as_chunks::<8>();
    let mut note = |start: usize, word: u64| {
        let other = word ^ PIPES;
        // The high bit of each byte that is zero in `other`, and of no other byte.
        let mut marks = !(((other & LOW_BITS) + LOW_BITS) | other | LOW_BITS);
        while marks != 0 {
            if let Some(end) = ends.get_mut(found) {
                *end = start + marks.trailing_zeros() as usize / 8;
            }
            found += 1;
            marks &= marks - 1;
        }
    };
    for (place, word) in words.iter().enumerate() {
        note(place * 8, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    note(words.len() * 8, u64::from_le_bytes(last));
    found
}

impl<'a, const N: usize> Record<'a, N> {
    /// The text of a field; columns count from 0.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn field(&self, column: usize) -> &'a str {
        let start = if column == 0 { 0 } else { self.ends[column - 1] + 1 };
        &self.line[start..self.ends[column]]
    }

    /// The error that a field (from 0, called `name` in the documentation) is not as `expected`.
    #[must_use]
    pub fn wrong(&self, column: usize, name: &'static str, expected: &'static str) -> ReadError {
        let place = Place { file: self.file.to_owned(), line: self.number, column: Some((column + 1, name)) };
        ReadError::text(place, self.field(column), expected, "the line is damaged, fetch the file again")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<[String; 3]>, String> {
        let mut reader = Rows::<3>::new(bytes, Path::new("META/X.RRF"));
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
        assert_eq!(fields(b"a|b|c|\r\n").unwrap(), [["a", "b", "c"]]);
        assert!(fields(b"").unwrap().is_empty());
    }

    #[test]
    fn fields_of_every_length_end_where_the_pipes_are() {
        for (a, b, c) in (0..20).flat_map(|a| (0..20).map(move |b| (a, b, (a * 7 + b) % 19))) {
            // `}` and `{` differ from `|` by one bit.
            let wanted = ["}".repeat(a), "é".repeat(b), "{".repeat(c)];
            let line = format!("{}|\n", wanted.join("|"));
            assert_eq!(fields(line.as_bytes()).unwrap(), [wanted]);
        }
    }

    #[test]
    fn silent_17_a_last_record_may_lack_its_line_end() {
        for text in [&b"a|b|c|\nd|e|f|"[..], b"a|b|c|\nd|e|f|\r"] {
            assert_eq!(fields(text).unwrap(), [["a", "b", "c"], ["d", "e", "f"]]);
        }
        let message = fields(b"a|b|c|\rd|e|f|\r").unwrap_err();
        assert!(message.contains("line 1: the lines of the file end with a bare CR"), "{message}");
    }

    #[test]
    fn damaged_lines_are_refused_with_their_number() {
        let cases: [(&[u8], &str); 8] = [
            (b"a|b|c|\na|b|\n", "META/X.RRF: line 2: 2 columns, expected 3"),
            (b"a|b|c|d|\n", "line 1: 4 columns, expected 3"),
            (b"a|b|c|d\n", "line 1: the line does not end with |, found \"d\""),
            (b"a|b|c|\n\n", "line 2: 0 columns"),
            (b"a|b|c|\na|b|c", "line 2: 2 columns"),
            (b"a|b|c|\na|\xff|c|\n", "line 2: byte 3 of the line is not valid UTF-8"),
            (b"\xff", "line 1: byte 1 of the line is not valid UTF-8"),
            (b"a|b|\na|\xff|c|\n", "line 1: 2 columns"),
        ];
        for (bytes, expected) in cases {
            let message = fields(bytes).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
    }
}
