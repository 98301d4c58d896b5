//! A reader of tables with quoted fields in which CR and CRLF read as LF, so that line numbers count in old Mac files too, and the last line has an end.

use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::Path;

use super::bom::BOM;
use super::line::{self, LONGEST, Place};
use super::read::ReadError;

/// Where in a field the last byte stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// Before it, blanks aside.
    Start,
    /// In one without quotes around it.
    Bare,
    /// Within its quotes.
    Quoted,
    /// At a quote that ends it, or is the first of a doubled one.
    Closed,
    /// Behind such a quote.
    Behind,
}

/// The quotes of what was read so far.
#[derive(Debug)]
struct Quotes {
    separator: u8,
    field: Field,
    /// Whether the field begins with blanks.
    blanks: bool,
    /// The first line with a quote out of place.
    misplaced: Option<u64>,
}

/// Turns every line end of `inner` into LF, and finds what a parser of CSV reads without a word: ends within quotes, quotes that do not delimit a field.
#[derive(Debug)]
pub struct Newlines<R> {
    inner: R,
    after_return: bool,
    bytes: u64,
    quotes: Quotes,
    ends_in_line: bool,
    lines: u64,
    ended: bool,
    record: usize,
    /// Whether the line under way has anything but a BOM.
    filled: bool,
    blank: u64,
}

impl<R> Newlines<R> {
    /// One over `inner`, of which nothing was read; `separator` stands between fields.
    pub fn new(inner: R, separator: u8) -> Self {
        Self {
            inner,
            after_return: false,
            bytes: 0,
            quotes: Quotes { separator, field: Field::Start, blanks: false, misplaced: None },
            ends_in_line: false,
            lines: 0,
            ended: false,
            record: 0,
            filled: false,
            blank: 0,
        }
    }

    /// Lines outside quotes that have nothing, so far.
    pub fn blank_lines(&self) -> u64 {
        self.blank
    }

    /// Bytes of `inner` read so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes
    }

    /// Lines begun so far.
    pub fn lines_read(&self) -> u64 {
        self.lines + u64::from(self.ends_in_line)
    }

    /// Whether the end has come inside a quoted field.
    fn is_cut(&self) -> bool {
        self.ended && self.quotes.field == Field::Quoted
    }

    /// Refuses a record of `file` that stands in `lines` (from 1, the last one left out) and that a parser has read otherwise than its quotes say.
    ///
    /// # Errors
    /// When something stands between a field's quotes and the separators, or the file ends within quotes.
    pub fn check(&self, file: &Path, lines: Range<u64>) -> Result<(), ReadError> {
        let place = |line| Place { file: file.to_owned(), line, column: None };
        match self.quotes.misplaced {
            Some(line) if line < lines.end => Err(line::misplaced_quote(place(line))),
            _ if self.is_cut() => Err(line::cut(place(lines.start))),
            _ => Ok(()),
        }
    }
}

impl Quotes {
    /// Goes on by a byte of a field, a separator, or a line's end, in `line`.
    fn step(&mut self, byte: u8, line: u64) {
        let delimits = byte == self.separator || byte == b'\n';
        let next = match (self.field, byte) {
            (Field::Quoted, b'"') => Field::Closed,
            (Field::Quoted, _) | (Field::Closed, b'"') => Field::Quoted,
            (Field::Start | Field::Bare | Field::Closed | Field::Behind, _) if delimits => Field::Start,
            (Field::Start, b'"') if !self.blanks => Field::Quoted,
            (Field::Closed, _) | (Field::Start, b'"') => {
                self.misplaced.get_or_insert(line);
                if self.field == Field::Start { Field::Bare } else { Field::Behind }
            }
            (Field::Start, b' ' | b'\t') => Field::Start,
            (Field::Start | Field::Bare, _) => Field::Bare,
            (Field::Behind, _) => Field::Behind,
        };
        self.blanks = next == Field::Start && !delimits;
        self.field = next;
    }
}

impl<R: BufRead> Read for Newlines<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut written = 0;
        while written == 0 && !out.is_empty() {
            let bytes = self.inner.fill_buf()?;
            if bytes.is_empty() {
                if let Some(last) = out.first_mut().filter(|_| self.ends_in_line && !self.ended) {
                    *last = b'\n';
                    written = 1;
                }
                self.ended = true;
                break;
            }
            let taken = bytes.len().min(out.len());
            for (place, &byte) in (self.bytes..).zip(&bytes[..taken]) {
                let rest_of_crlf = self.after_return && byte == b'\n';
                self.after_return = byte == b'\r';
                if rest_of_crlf {
                    continue;
                }
                let byte = if byte == b'\r' { b'\n' } else { byte };
                let of_bom = usize::try_from(place).is_ok_and(|place| BOM.get(place) == Some(&byte));
                if !of_bom {
                    self.quotes.step(byte, self.lines + 1);
                }
                self.lines += u64::from(byte == b'\n');
                let in_quotes = self.quotes.field == Field::Quoted;
                self.blank += u64::from(byte == b'\n' && !self.filled && !in_quotes);
                self.filled = byte != b'\n' && (self.filled || !of_bom);
                self.ends_in_line = byte != b'\n';
                self.record = if self.ends_in_line || in_quotes { self.record + 1 } else { 0 };
                out[written] = byte;
                written += 1;
            }
            self.inner.consume(taken);
            self.bytes += taken as u64;
            if self.record > LONGEST {
                let what = format!("a record has more than {LONGEST} bytes (a quote may be missing)");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_without_end_does_not_fill_the_memory() {
        let endless = io::BufReader::new((&b"a,\""[..]).chain(io::repeat(b'\n')));
        let mut text = Vec::new();
        let error = Newlines::new(endless, b',').read_to_end(&mut text).unwrap_err().to_string();
        assert!(error.contains("a quote may be missing"), "{error}");
        let lines = (&b"a\n"[..]).chain(io::repeat(b'\n').take(20 << 20));
        let mut rows = Newlines::new(io::BufReader::new(lines), b',');
        assert_eq!(rows.read_to_end(&mut text).unwrap(), (20 << 20) + 2, "empty lines are not one record");
    }

    #[test]
    fn all_line_ends_become_line_feeds_whatever_the_buffer() {
        for size in 1..9 {
            let input = b"a\rb\r\nc\n\r\r\n\"d";
            let mut newlines = Newlines::new(io::BufReader::with_capacity(size, &input[..]), b',');
            let mut text = String::new();
            newlines.read_to_string(&mut text).unwrap();
            assert_eq!(text, "a\nb\nc\n\n\n\"d\n", "buffer of {size}");
            assert_eq!((newlines.bytes_read(), newlines.lines_read()), (12, 6));
            assert!(newlines.is_cut());
            assert_eq!(newlines.blank_lines(), 2);
        }
    }

    #[test]
    fn quotes_that_do_not_delimit_a_field_are_found() {
        let read = |input: &str| {
            let mut newlines = Newlines::new(input.as_bytes(), b',');
            newlines.read_to_end(&mut Vec::new()).unwrap();
            (newlines.quotes.misplaced, newlines.is_cut())
        };
        for fine in [
            "\u{feff}\"a\",b\n",
            "\"a \"\"b\"\"\",\"\"\n",
            "6\" nail,c\n",
            "\"a\nb\",c\n",
            "x, y ,\"z\"",
            "\"\"\"\"\r\n",
        ] {
            assert_eq!(read(fine), (None, false), "{fine}");
        }
        for (wrong, line) in
            [("a,b\n\"c\"d,e\n", 2), ("\"a\" ,b\n", 1), ("a, \"b, c\"\n", 1), ("\"a\n\"b\n\"c\"d\n", 2)]
        {
            assert_eq!(read(wrong).0, Some(line), "{wrong}");
        }
        assert_eq!(read("a,\"b\n"), (None, true));
    }
}
