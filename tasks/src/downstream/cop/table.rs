//! Rows of a table of MIMIC-III: CSV with texts that span lines, columns by name. Knows no table.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use csv::ByteRecord;
use kg::source::line::Place;

/// Bytes that a row may have: some hundred times as many as the longest note.
const LONGEST: u64 = 32 << 20;

/// Why there is no next row.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened.
    #[error("{}: cannot open the table: {source}; expected the tables of MIMIC-III as published, NAME.csv or NAME.csv.gz", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The bytes cannot be had, or the parser refuses them.
    #[error("{place}: cannot read on: {source}; fetch the file again")]
    Read {
        /// Where reading stopped.
        place: Place,
        /// What was said.
        source: io::Error,
    },
    /// The header lacks a column.
    #[error(
        "{place}: column {missing} is missing or there twice, the header has {found}; give the table as published"
    )]
    Header {
        /// The header.
        place: Place,
        /// The column.
        missing: &'static str,
        /// The columns that there are.
        found: String,
    },
    /// A row has more or fewer fields than the header.
    #[error(
        "{place}: {found} fields, expected {expected} as in the header; mend the row (a quote may be missing)"
    )]
    Fields {
        /// Where the row begins.
        place: Place,
        /// Fields found.
        found: u64,
        /// Fields of the header.
        expected: u64,
    },
    /// A field is not what its column holds.
    #[error("{place}: found {found:?}, expected {expected}; fetch the file again, or mend the row")]
    Field {
        /// Line on which the row begins, and column.
        place: Place,
        /// What stands there.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// The file ends within a field.
    #[error("{place}: the file ends here inside double quotes; expected their end: fetch the file again")]
    Cut {
        /// Where the last row begins.
        place: Place,
    },
}

/// Bytes on their way to the parser, which neither says whether the last field was closed nor stops at a row without end.
struct Counted<R> {
    inner: R,
    quotes: usize,
    since_row: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.since_row > LONGEST {
            return Err(io::Error::other(format!("the row that begins here has more than {LONGEST} bytes")));
        }
        let read = self.inner.read(out)?;
        self.quotes += memchr::memchr_iter(b'"', &out[..read]).count();
        self.since_row += read as u64;
        Ok(read)
    }
}

/// Reads row after row of `N` columns.
pub(super) struct Table<'f, R, const N: usize> {
    csv: csv::Reader<Counted<R>>,
    file: &'f Path,
    columns: [(usize, &'static str); N],
    row: ByteRecord,
}

impl<'f, R: Read, const N: usize> Table<'f, R, N> {
    /// The columns `wanted` of `reader`; `file` names it in messages.
    pub(super) fn new(reader: R, file: &'f Path, wanted: [&'static str; N]) -> Result<Self, Error> {
        let csv = csv::Reader::from_reader(Counted { inner: reader, quotes: 0, since_row: 0 });
        let mut table = Self { csv, file, columns: wanted.map(|name| (0, name)), row: ByteRecord::new() };
        let names = match table.csv.byte_headers() {
            Ok(names) => names.clone(),
            Err(error) => return Err(table.fault(error)),
        };
        let plain =
            |name: &[u8]| String::from_utf8_lossy(name).trim_start_matches('\u{feff}').trim().to_uppercase();
        let names: Vec<String> = names.iter().map(plain).collect();
        for (place, missing) in &mut table.columns {
            let mut found = names.iter().enumerate().filter(|(_, name)| name.as_str() == *missing);
            match (found.next(), found.next()) {
                (Some((at, _)), None) => *place = at,
                _ => {
                    let found = names.join(", ").chars().take(400).collect();
                    let place = Place { file: file.to_owned(), line: 1, column: None };
                    return Err(Error::Header { place, missing, found });
                }
            }
        }
        Ok(table)
    }

    /// Reads the next row; `false` after the last.
    pub(super) fn next(&mut self) -> Result<bool, Error> {
        self.csv.get_mut().since_row = 0;
        match self.csv.read_byte_record(&mut self.row) {
            Ok(false) if !self.csv.get_ref().quotes.is_multiple_of(2) => {
                Err(Error::Cut { place: self.place(self.csv.position().line(), None) })
            }
            Ok(more) => Ok(more),
            Err(error) => Err(self.fault(error)),
        }
    }

    /// The text of a wanted column.
    pub(super) fn text(&self, column: usize) -> Result<&str, Error> {
        let field = self.row.get(self.columns[column].0).unwrap_or_default();
        std::str::from_utf8(field).map_err(|_| self.wrong(column, "UTF-8 (convert with iconv -t UTF-8)"))
    }

    /// The number of a wanted column.
    pub(super) fn number(&self, column: usize) -> Result<u32, Error> {
        let parsed = self.text(column)?.trim().parse();
        parsed.map_err(|_| self.wrong(column, "a whole number below 4,294,967,296"))
    }

    /// Seconds, from some day on, of a moment such as `2151-07-16 14:29:00`; of its day if the time is left out.
    pub(super) fn time(&self, column: usize) -> Result<i64, Error> {
        let parsed = seconds(self.text(column)?.trim());
        parsed.ok_or_else(|| self.wrong(column, "a moment such as 2151-07-16 14:29:00"))
    }

    /// The error that a field is not as it should be.
    pub(super) fn wrong(&self, column: usize, expected: &'static str) -> Error {
        let (at, name) = self.columns[column];
        let line = self.row.position().map_or(0, csv::Position::line);
        let found = String::from_utf8_lossy(self.row.get(at).unwrap_or_default()).chars().take(40).collect();
        Error::Field { place: self.place(line, Some((at + 1, name))), found, expected }
    }

    fn place(&self, line: u64, column: Option<(usize, &'static str)>) -> Place {
        Place { file: self.file.to_owned(), line, column }
    }

    fn fault(&self, error: csv::Error) -> Error {
        let place = self.place(error.position().unwrap_or(self.csv.position()).line(), None);
        match error.into_kind() {
            csv::ErrorKind::Io(source) => Error::Read { place, source },
            csv::ErrorKind::UnequalLengths { expected_len: expected, len: found, .. } => {
                Error::Fields { place, found, expected }
            }
            other => Error::Read { place, source: io::Error::other(format!("{other:?}")) },
        }
    }
}

/// Seconds since 0000-03-01 of `YYYY-MM-DD`, perhaps with `HH:MM:SS`, in the Gregorian calendar.
fn seconds(moment: &str) -> Option<i64> {
    let (date, time) = moment.split_once(' ').unwrap_or((moment, "00:00:00"));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let fits =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    // The year begins in March, so that the day that is now and then there is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    fits.then_some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// Three numbers with a separator between them.
fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator).map(|part| {
        let digits = !part.is_empty() && part.len() < 7 && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse().ok()).flatten()
    });
    let found = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: &[u8]) -> Result<Vec<(u32, String)>, String> {
        let mut table = Table::new(bytes, Path::new("some.csv"), ["B", "A"]).map_err(|e| e.to_string())?;
        let mut rows = Vec::new();
        while table.next().map_err(|e| e.to_string())? {
            let row = table.number(0).and_then(|number| Ok((number, table.text(1)?.to_owned())));
            rows.push(row.map_err(|e| e.to_string())?);
        }
        Ok(rows)
    }

    #[test]
    fn columns_are_found_by_name_and_texts_span_lines() {
        let found = rows(b"\xef\xbb\xbf\"a\",\"X\",\"b\"\n\"one\n\"\"two\"\"\",,1\n,\"x, y\",22\n").unwrap();
        assert_eq!(found, [(1, "one\n\"two\"".to_owned()), (22, String::new())]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let refused = |bytes: &[u8]| rows(bytes).unwrap_err();
        let message = refused(b"A,C\n1,2\n");
        assert!(
            message.starts_with("some.csv: line 1: column B is missing or there twice, the header has A, C"),
            "{message}"
        );
        assert!(refused(b"A,B,b\n").contains("column B is missing or there twice"));
        let message = refused(b"A,B\n\"a\nb\",1\nc,x\n");
        assert!(
            message.starts_with("some.csv: line 4, column 2 (B): found \"x\", expected a whole number"),
            "{message}"
        );
        let message = refused(b"A,B\nc\n");
        assert!(message.starts_with("some.csv: line 2: 1 fields, expected 2"), "{message}");
        assert!(refused(b"A,B\nc,1\n\"d,1\n").contains("fields"));
        assert!(refused(b"A,B\nc,1\nd,\"1\n").contains("inside double quotes"));
        assert!(refused(b"A,B\n\xff,1\n").contains("expected UTF-8"));
    }

    #[test]
    fn a_quote_that_is_never_closed_does_not_fill_the_memory() {
        let endless = Read::chain(&b"A,B\n\""[..], io::repeat(b'x'));
        let mut table = Table::new(endless, Path::new("some.csv"), ["A"]).unwrap();
        let message = table.next().unwrap_err().to_string();
        assert!(
            message.contains("line 2") && message.contains("the row that begins here has more than"),
            "{message}"
        );
    }

    #[test]
    fn moments_are_seconds_of_the_gregorian_calendar() {
        let between = |a: &str, b: &str| seconds(b).unwrap() - seconds(a).unwrap();
        assert_eq!(between("2151-07-16 14:29:00", "2151-07-17 14:29:01"), 86_401);
        assert_eq!(between("2000-02-28", "2000-03-01"), 2 * 86_400);
        assert_eq!(between("2100-02-28", "2100-03-01"), 86_400);
        assert_eq!(between("2104-01-01", "2105-01-01"), 366 * 86_400);
        for wrong in
            ["", "2151-7", "2151-13-01", "2151-07-16 24:00:00", "2151-07-16T14:29:00", "x-1-1", "1-2-3-4"]
        {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
