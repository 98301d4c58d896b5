//! Lines of a text file, with their numbers.
//!
//! A line ends with LF or CRLF, the last one as it likes: published files lack its end as often as not. A file whose lines end with
//! a bare CR is named as such.

use std::fmt;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use super::read::ReadError;

/// Where something stands, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as the caller named it.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: u64,
    /// Column from 1 and its name in the publisher's documentation, if one is meant.
    pub column: Option<(usize, &'static str)>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: line {}", self.file.display(), self.line)?;
        match self.column {
            Some((number, name)) => write!(f, ", column {number} ({name})"),
            None => Ok(()),
        }
    }
}

/// Bytes that a line may have, its end included: some hundred times as many as the longest that is published.
pub const LONGEST: usize = 16 << 20;

/// Bytes that cannot be had: reading stopped at `place`.
pub fn unreadable(place: Place, source: &io::Error) -> ReadError {
    ReadError::new(place, format!("cannot read on: {source}"), "", "")
}

/// Bytes that are no text: byte `byte` of the line, from 1.
pub fn not_utf8(place: Place, byte: usize) -> ReadError {
    let found = format!("byte {byte} of the line is not valid UTF-8");
    ReadError::new(place, found, "UTF-8 as published", "fetch the file again, or convert it (iconv -t UTF-8)")
}

/// A line longer than any that is published; a small packed file could otherwise fill the memory.
pub fn too_long(place: Place) -> ReadError {
    let found = format!("the line has more than {LONGEST} bytes");
    ReadError::new(place, found, "line ends", "fetch the file again, or convert it")
}

/// A file that ends inside what must have an end; `place` is its last line.
pub fn cut(place: Place) -> ReadError {
    let found = "the file ends in the middle of this line";
    ReadError::new(place, found, "its end", "fetch the file again, or close what is open (a quote)")
}

/// A record with something between a field's quotes and the separators: a parser would leave the quotes out and go on.
pub fn misplaced_quote(place: Place) -> ReadError {
    let found = "a field's quotes are not all around it";
    let expected = "the separator or the line's end right behind a quoted field, and none but it before";
    ReadError::new(
        place,
        found,
        expected,
        "double the quotes that belong to the text, and take out what stands around it",
    )
}

/// A file whose lines end as no others do: read as one line, its rows would be one.
pub fn bare_cr(place: Place) -> ReadError {
    let found = "the lines of the file end with a bare CR (\\r, as on old Macs)";
    ReadError::new(place, found, "LF or CRLF", "convert it (tr '\\r' '\\n')")
}

/// What [`Lines`] fail with.
pub type Error = ReadError;

/// Reads line after line into one buffer. Lines end with LF or CRLF.
#[derive(Debug)]
pub struct Lines<'f, R> {
    reader: R,
    file: &'f Path,
    buffer: String,
    number: u64,
    bytes: u64,
    blank: u64,
}

/// One line without its end.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The line's text.
    pub text: &'a str,
    number: u64,
    file: &'a Path,
}

impl Line<'_> {
    /// This line, or a column of it (from 1).
    #[must_use]
    pub fn place(&self, column: Option<(usize, &'static str)>) -> Place {
        Place { file: self.file.to_owned(), line: self.number, column }
    }
}

impl<'f, R: BufRead> Lines<'f, R> {
    /// Lines of `reader`; `file` names it in messages.
    pub fn new(reader: R, file: &'f Path) -> Self {
        Self { reader, file, buffer: String::new(), number: 0, bytes: 0, blank: 0 }
    }

    /// The next line, or none at the end of the file.
    ///
    /// # Errors
    /// When the bytes cannot be had or are no text, a line is too long, or lines end with a bare CR.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        Ok(if self.advance()? { Some(self.line()) } else { None })
    }

    /// The next line that has more than white space. The others are counted.
    ///
    /// # Errors
    /// When the bytes cannot be had or are no text, a line is too long, or lines end with a bare CR.
    pub fn next_filled(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        while self.advance()? {
            if !self.buffer.trim().is_empty() {
                return Ok(Some(self.line()));
            }
            self.blank += 1;
        }
        Ok(None)
    }

    /// The line that was read last.
    pub fn line(&self) -> Line<'_> {
        Line { text: &self.buffer, number: self.number, file: self.file }
    }

    /// Reads the next line, if there is one.
    pub fn advance(&mut self) -> Result<bool, ReadError> {
        let mut bytes = std::mem::take(&mut self.buffer).into_bytes();
        bytes.clear();
        let place = || Place { file: self.file.to_owned(), line: self.number + 1, column: None };
        let length = fill(&mut self.reader, &mut bytes).map_err(|source| unreadable(place(), &source))?;
        if length == 0 {
            return Ok(false);
        }
        let is_whole = bytes.ends_with(b"\n");
        let end = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let end = end.strip_suffix(b"\r").unwrap_or(end).len();
        bytes.truncate(end);
        // The first line is the whole file, or more of it than a line may have.
        if self.number == 0 && (length > LONGEST || !is_whole) && has_returns(&bytes) {
            return Err(bare_cr(place()));
        }
        if length > LONGEST {
            return Err(too_long(place()));
        }
        match String::from_utf8(bytes) {
            Ok(text) => self.buffer = text,
            Err(e) => return Err(not_utf8(place(), e.utf8_error().valid_up_to() + 1)),
        }
        self.number += 1;
        self.bytes += length as u64;
        Ok(true)
    }

    /// Lines passed by [`Lines::next_filled`] so far.
    #[must_use]
    pub fn blank(&self) -> u64 {
        self.blank
    }

    /// Lines read so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.number
    }

    /// Bytes read so far, line ends included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Whether a line without its end has CRs, as the one line of a file has whose lines end with these.
pub fn has_returns(line: &[u8]) -> bool {
    memchr::memchr(b'\r', line).is_some()
}

/// Appends the bytes up to and with the next line feed, as `read_until` does, but with the faster search of `memchr`. Stops where
/// the line is too long.
fn fill<R: BufRead>(reader: &mut R, buffer: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        let bytes = match reader.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        let end = memchr::memchr(b'\n', bytes).map(|end| end + 1);
        let taken = end.unwrap_or(bytes.len());
        buffer.extend_from_slice(&bytes[..taken]);
        reader.consume(taken);
        if end.is_some() || taken == 0 || buffer.len() > LONGEST {
            return Ok(buffer.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bytes: &[u8]) -> Result<Vec<String>, String> {
        let mut lines = Lines::new(bytes, Path::new("some.file"));
        let mut texts = Vec::new();
        while let Some(line) = lines.next_line().map_err(|e| e.to_string())? {
            texts.push(line.text.to_owned());
        }
        assert_eq!((lines.lines(), lines.bytes()), (texts.len() as u64, bytes.len() as u64));
        Ok(texts)
    }

    #[test]
    fn both_line_ends_are_read() {
        assert_eq!(texts(b"one\r\n\ntwo \n").unwrap(), ["one", "", "two "]);
        assert!(texts(b"").unwrap().is_empty());
    }

    #[test]
    fn a_line_may_be_longer_than_the_readers_buffer() {
        for size in 1..9 {
            let reader = io::BufReader::with_capacity(size, &b"four words in all\n\nend\n"[..]);
            let mut lines = Lines::new(reader, Path::new("some.file"));
            for expected in ["four words in all", "", "end"] {
                assert_eq!(lines.next_line().unwrap().unwrap().text, expected);
            }
            assert!(lines.next_line().unwrap().is_none());
        }
    }

    #[test]
    fn silent_17_bare_carriage_returns_are_named() {
        let first = |bytes: &[u8]| {
            let mut lines = Lines::new(bytes, Path::new("some.file"));
            lines.next_line().map(|line| line.unwrap().text.to_owned()).map_err(|error| error.to_string())
        };
        let endless = b"row\r".repeat(LONGEST / 4 + 1);
        for bytes in [&b"one\rtwo"[..], b"one\rtwo\r", b"\rone", &endless] {
            let message = first(bytes).unwrap_err();
            assert!(
                message.starts_with("some.file: line 1: the lines of the file end with a bare CR (\\r"),
                "{message}"
            );
            assert!(message.ends_with("convert it (tr '\\r' '\\n')"), "{message}");
        }
        // A stray one in a line, and a file that ends in the middle of CRLF.
        assert_eq!(first(b"one\rtwo\nthree\n").unwrap(), "one\rtwo");
        assert_eq!(first(b"one\r").unwrap(), "one");
    }

    #[test]
    fn silent_17_a_last_line_may_lack_its_end() {
        for text in [&b"one\r\ntw"[..], b"one\ntw\r"] {
            assert_eq!(texts(text).unwrap(), ["one", "tw"]);
        }
    }

    #[test]
    fn blank_lines_are_counted_where_they_are_passed() {
        let mut lines = Lines::new(&b"\n one\n \t\r\n\ntwo"[..], Path::new("some.file"));
        let mut filled = Vec::new();
        while let Some(line) = lines.next_filled().unwrap() {
            filled.push((line.text.to_owned(), line.place(None).line));
        }
        assert_eq!(filled, [(" one".to_owned(), 2), ("two".to_owned(), 5)]);
        assert_eq!((lines.blank(), lines.lines()), (3, 5));
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        let mut lines = Lines::new(endless, Path::new("some.file"));
        let message = lines.next_line().unwrap_err().to_string();
        assert!(message.starts_with("some.file: line 1: the line has more than 16777216 bytes"), "{message}");
    }

    #[test]
    fn bytes_that_are_no_text_are_located() {
        let message = texts(b"one\nab\xe9c\n").unwrap_err();
        assert!(message.starts_with("some.file: line 2: byte 3 of the line is not valid UTF-8"), "{message}");
    }
}
