//! A reader in which CR and CRLF read as LF, so that line numbers count in old Mac files too, and the last line has an end.

use std::io::{self, BufRead, Read};

use super::bom::BOM;
use super::line::LONGEST;

/// Turns every line end of `inner` into LF, and counts what a check for cut files needs.
#[derive(Debug)]
pub struct Newlines<R> {
    inner: R,
    after_return: bool,
    bytes: u64,
    quotes: u64,
    ends_in_line: bool,
    lines: u64,
    ended: bool,
    record: usize,
    /// Whether the line under way has anything but a BOM.
    filled: bool,
    blank: u64,
}

impl<R> Newlines<R> {
    /// One over `inner`, of which nothing was read.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            after_return: false,
            bytes: 0,
            quotes: 0,
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

    /// Whether the end has come inside a quoted field: in CSV, quotes come in pairs.
    pub fn is_cut(&self) -> bool {
        self.ended && self.quotes % 2 == 1
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
                self.quotes += u64::from(byte == b'"');
                self.lines += u64::from(byte == b'\n');
                self.blank += u64::from(byte == b'\n' && !self.filled && self.quotes.is_multiple_of(2));
                let of_bom = usize::try_from(place).is_ok_and(|place| BOM.get(place) == Some(&byte));
                self.filled = byte != b'\n' && (self.filled || !of_bom);
                self.ends_in_line = byte != b'\n';
                self.record = if self.ends_in_line || self.quotes % 2 == 1 { self.record + 1 } else { 0 };
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
        let error = Newlines::new(endless).read_to_end(&mut text).unwrap_err().to_string();
        assert!(error.contains("a quote may be missing"), "{error}");
        let mut rows =
            Newlines::new(io::BufReader::new((&b"a\n"[..]).chain(io::repeat(b'\n').take(20 << 20))));
        assert_eq!(rows.read_to_end(&mut text).unwrap(), (20 << 20) + 2, "empty lines are not one record");
    }

    #[test]
    fn all_line_ends_become_line_feeds_whatever_the_buffer() {
        for size in 1..9 {
            let input = b"a\rb\r\nc\n\r\r\n\"d";
            let mut newlines = Newlines::new(io::BufReader::with_capacity(size, &input[..]));
            let mut text = String::new();
            newlines.read_to_string(&mut text).unwrap();
            assert_eq!(text, "a\nb\nc\n\n\n\"d\n", "buffer of {size}");
            assert_eq!((newlines.bytes_read(), newlines.lines_read()), (12, 6));
            assert!(newlines.is_cut());
            assert_eq!(newlines.blank_lines(), 2);
        }
    }
}
