//! Rows of a table of MIMIC-III: CSV with texts that span lines, columns by name in whatever case and order.

use std::io::{self, BufRead, Read};
use std::path::Path;

use base::bom::Unmarked;
use base::funnel::Tally;
use base::line::Place;
use base::read::ReadError;
use csv::ByteRecord;

use super::metered::{self, LONGEST, Metered};

/// Bytes on their way to the parser, which does not say whether the last field was closed.
#[derive(Debug)]
struct Quotes<R> {
    inner: R,
    /// Double quotes so far; an even number, one inside a field being written twice.
    count: usize,
    /// How the header ends.
    end: Option<End>,
    last: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Lf,
    CrLf,
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        let bytes = &out[..read];
        self.count += memchr::memchr_iter(b'"', bytes).count();
        if self.end.is_none()
            && let Some(at) = memchr::memchr(b'\n', bytes)
        {
            let before = if at == 0 { self.last } else { bytes[at - 1] };
            self.end = Some(if before == b'\r' { End::CrLf } else { End::Lf });
        }
        self.last = bytes.last().copied().unwrap_or(self.last);
        Ok(read)
    }
}

/// Reads row after row; of each, the `N` columns that are wanted.
#[derive(Debug)]
pub struct Table<'f, R, const N: usize> {
    csv: csv::Reader<Unmarked<Quotes<Metered<'f, R>>>>,
    wanted: [&'static str; N],
    /// Where the wanted columns are, as soon as the header was read.
    columns: Option<[usize; N]>,
    row: ByteRecord,
}

impl<'f, R: BufRead, const N: usize> Table<'f, R, N> {
    /// The columns `wanted`, called by their names in capitals, of `reader`; `file` names it in messages.
    pub fn new(reader: R, file: &'f Path, wanted: [&'static str; N]) -> Self {
        let inner = Quotes { inner: Metered::new(reader, file), count: 0, end: None, last: 0 };
        Self {
            csv: csv::Reader::from_reader(Unmarked::new(inner)),
            wanted,
            columns: None,
            row: ByteRecord::new(),
        }
    }

    /// Reads the next row; `false` after the last.
    pub fn advance(&mut self) -> Result<bool, ReadError> {
        self.csv.get_mut().get_mut().inner.mark();
        if self.columns.is_none() {
            self.columns = Some(self.header()?);
        }
        match self.csv.read_byte_record(&mut self.row) {
            Ok(true) => Ok(true),
            Ok(false) if self.csv.get_ref().get_ref().count.is_multiple_of(2) => Ok(false),
            Ok(false) => {
                let metered = &self.csv.get_ref().get_ref().inner;
                let place = metered.here().of(metered.file());
                let found = "the file ends here inside double quotes";
                Err(ReadError::new(place, found, "their end", "fetch the file again"))
            }
            Err(error) => Err(self.fault(&error)),
        }
    }

    /// The text of a wanted column.
    pub fn text(&self, column: usize) -> Result<&str, ReadError> {
        let field = self.field(column);
        std::str::from_utf8(field).map_err(|error| {
            let from = field.get(error.valid_up_to()..).unwrap_or_default();
            self.wrong_at(column, from, "UTF-8 (convert with iconv -t UTF-8)")
        })
    }

    /// The number of a wanted column.
    pub fn number(&self, column: usize) -> Result<u32, ReadError> {
        let parsed = self.text(column)?.trim().parse();
        parsed.map_err(|_| self.wrong(column, "a whole number below 4,294,967,296"))
    }

    /// Seconds, from some day on, of a moment such as `2151-07-16 14:29:00`; of its day if the time is left out.
    pub fn time(&self, column: usize) -> Result<i64, ReadError> {
        let parsed = seconds(self.text(column)?.trim());
        parsed.ok_or_else(|| self.wrong(column, "a moment such as 2151-07-16 14:29:00"))
    }

    /// The error that a field is not as it should be.
    pub fn wrong(&self, column: usize, expected: &'static str) -> ReadError {
        self.wrong_at(column, self.field(column).trim_ascii(), expected)
    }

    /// `tally` with what was read so far. Bytes are taken ahead, so their number is right after the last row.
    pub fn tally(&self, tally: &Tally) -> Tally {
        self.csv.get_ref().get_ref().inner.tally(tally)
    }

    fn field(&self, column: usize) -> &[u8] {
        let at = self.columns.map_or(0, |columns| columns[column]);
        self.row.get(at).unwrap_or_default()
    }

    fn wrong_at(&self, column: usize, found: &[u8], expected: &'static str) -> ReadError {
        let line = self.row.position().map_or(0, |position| self.line(position));
        let found: String = String::from_utf8_lossy(found).chars().take(40).collect();
        let at = self.columns.map_or(0, |columns| columns[column]);
        let place = self.place(line, Some((at + 1, self.wanted[column])));
        ReadError::text(place, &found, expected, "fetch the file again, or fix the row")
    }

    /// Finds the columns.
    fn header(&mut self) -> Result<[usize; N], ReadError> {
        let names = match self.csv.byte_headers() {
            Ok(names) => names.clone(),
            Err(error) => return Err(self.fault(&error)),
        };
        let mut columns = [0; N];
        for (column, &missing) in columns.iter_mut().zip(&self.wanted) {
            let same = |name: &[u8]| name.trim_ascii().eq_ignore_ascii_case(missing.as_bytes());
            let mut found = names.iter().enumerate().filter(|(_, name)| same(name));
            let (Some((at, _)), None) = (found.next(), found.next()) else {
                let names: Vec<_> = names.iter().take(64).map(String::from_utf8_lossy).collect();
                let found: String = names.join(", ").chars().take(400).collect();
                let found = format!("column {missing} is missing or there twice, the header has {found}");
                return Err(ReadError::new(self.place(1, None), found, "", "give the table as published"));
            };
            *column = at;
        }
        Ok(columns)
    }

    /// The line on which a row begins. To the parser, the LF of a CRLF belongs to the row behind it.
    fn line(&self, position: &csv::Position) -> u64 {
        let behind = self.csv.get_ref().get_ref().end == Some(End::CrLf) && position.byte() > 0;
        position.line() + u64::from(behind)
    }

    fn place(&self, line: u64, column: Option<(usize, &'static str)>) -> Place {
        Place { file: self.csv.get_ref().get_ref().inner.file().to_owned(), line, column }
    }

    /// What an error of the parser means.
    fn fault(&self, error: &csv::Error) -> ReadError {
        let place = self.place(self.line(error.position().unwrap_or(self.csv.position())), None);
        let metered = &self.csv.get_ref().get_ref().inner;
        match error.kind() {
            // The bytes are counted ahead of the rows.
            csv::ErrorKind::Io(_) if metered.exceeded() => {
                let found = format!("the row that begins here has more than {LONGEST} bytes");
                let remedy = "fetch the file again, or fix the row (a quote may be missing)";
                ReadError::new(place, found, "its end by then", remedy)
            }
            csv::ErrorKind::Io(source) => metered.error(source),
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                let expected = format!("{expected_len} as in the header");
                let remedy = "fix the row (a quote may be missing)";
                ReadError::new(place, format!("{len} fields"), expected, remedy)
            }
            other => metered::unreadable(place, &format!("{other:?}")),
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
        let mut table = Table::new(bytes, Path::new("some.csv"), ["B", "A"]);
        let mut rows = Vec::new();
        while table.advance().map_err(|e| e.to_string())? {
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
    fn a_mark_of_byte_order_is_no_part_of_a_name_however_bytes_come() {
        for text in ["\u{feff}A\n7\n", "\u{feff}\"A\"\r\n7\r\n", "A\n7\n", "\"A\"\n7"] {
            for size in 1..5 {
                let reader = io::BufReader::with_capacity(size, text.as_bytes());
                let mut table = Table::new(reader, Path::new("some.csv"), ["A"]);
                assert!(table.advance().unwrap(), "{text:?}");
                assert_eq!(table.number(0).unwrap(), 7, "{text:?}");
                assert!(!table.advance().unwrap(), "{text:?}");
                assert_eq!(table.tally(&Tally::new(Path::new("some.csv"), &[])).bytes, text.len() as u64);
            }
        }
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
        let message = refused(b"A,B\r\n\"a\r\nb\",1\r\nc,x\r\n");
        assert!(message.starts_with("some.csv: line 4, column 2 (B): found \"x\""), "{message}");
        let message = refused(b"A,B\nc\n");
        assert!(message.starts_with("some.csv: line 2: 1 fields, expected 2"), "{message}");
        assert!(refused(b"A,B\nc,1\n\"d,1\n").contains("fields"));
        assert!(refused(b"A,B\nc,1\nd,\"1\n").contains("inside double quotes"));
        assert!(refused(b"A,B\n\xff,1\n").contains("expected UTF-8"));
    }

    #[test]
    fn a_quote_that_is_never_closed_does_not_fill_the_memory() {
        let endless = Read::chain(&b"A,B\n\""[..], io::repeat(b'x'));
        let mut table = Table::new(io::BufReader::new(endless), Path::new("some.csv"), ["A"]);
        let message = table.advance().unwrap_err().to_string();
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
