//! Bytes of a file with the place of each, at most so many for one document.

use std::io::{self, BufRead, Read};
use std::path::Path;

use base::funnel::Tally;
use base::line::Place;
use base::read::ReadError;

/// Bytes that a document may have in its file, with all that stands around its text: some hundred times as many as the longest that
/// is published.
pub(super) const LONGEST: u64 = 32 << 20;

/// Bytes that cannot be had, or not be unpacked.
pub(super) fn unreadable(place: Place, source: &dyn std::fmt::Display) -> ReadError {
    ReadError::new(place, format!("cannot read on: {source}"), "", "fetch the file again")
}

/// A place in a file: line, and byte of the line, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub(super) line: u64,
    pub(super) byte: u64,
}

impl At {
    /// The place behind `bytes`, which begin here.
    pub(super) fn after(self, bytes: &[u8]) -> Self {
        match memchr::memrchr(b'\n', bytes) {
            None => Self { line: self.line, byte: self.byte + bytes.len() as u64 },
            Some(last) => {
                let lines = memchr::memchr_iter(b'\n', bytes).count() as u64;
                Self { line: self.line + lines, byte: (bytes.len() - last) as u64 }
            }
        }
    }

    /// The same for messages.
    pub(super) fn of(self, file: &Path) -> Place {
        let byte = usize::try_from(self.byte).unwrap_or(usize::MAX);
        Place { file: file.to_owned(), line: self.line, column: Some((byte, "byte of the line")) }
    }
}

/// The bytes of a file, of which a document may have [`LONGEST`] from the mark on.
#[derive(Debug)]
pub(super) struct Metered<'f, R> {
    inner: R,
    file: &'f Path,
    here: At,
    bytes: u64,
    /// Where the document begins, and the byte of the file at which that is.
    mark: (At, u64),
    exceeded: Exceeded,
}

/// Whether more was asked for than a document may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exceeded {
    Yes,
    No,
}

impl<'f, R: BufRead> Metered<'f, R> {
    /// The bytes of `inner`; `file` names it in messages.
    pub(super) fn new(inner: R, file: &'f Path) -> Self {
        let here = At { line: 1, byte: 1 };
        Self { inner, file, here, bytes: 0, mark: (here, 0), exceeded: Exceeded::No }
    }

    pub(super) fn file(&self) -> &'f Path {
        self.file
    }

    /// Where the next byte stands.
    pub(super) fn here(&self) -> At {
        self.here
    }

    /// A document may begin here: all that it may have is allowed anew.
    pub(super) fn mark(&mut self) {
        self.mark = (self.here, self.bytes);
    }

    /// What an error of reading means.
    pub(super) fn error(&self, source: &io::Error) -> ReadError {
        if self.exceeded() {
            let found = format!("the document that begins here has more than {LONGEST} bytes");
            let remedy = "fetch the file again, or split the document";
            return ReadError::new(self.mark.0.of(self.file), found, "its end by then", remedy);
        }
        unreadable(self.here.of(self.file), source)
    }

    /// Whether more was asked for than a document may have.
    pub(super) fn exceeded(&self) -> bool {
        self.exceeded == Exceeded::Yes
    }

    /// The next byte, which stays the next one.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            match self.fill_buf() {
                Ok(bytes) => return Ok(bytes.first().copied()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.error(&e)),
            }
        }
    }

    /// `tally` with what was read so far.
    pub(super) fn tally(&self, tally: &Tally) -> Tally {
        let lines = self.here.line - 1 + u64::from(self.here.byte > 1);
        Tally { bytes: self.bytes, lines, ..tally.clone() }
    }
}

impl<R: BufRead> Read for Metered<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let taken = bytes.len().min(out.len());
        out[..taken].copy_from_slice(&bytes[..taken]);
        self.consume(taken);
        Ok(taken)
    }
}

impl<R: BufRead> BufRead for Metered<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let bytes = self.inner.fill_buf()?;
        let left = LONGEST.saturating_sub(self.bytes - self.mark.1);
        if left == 0 && !bytes.is_empty() {
            self.exceeded = Exceeded::Yes;
            return Err(io::Error::other("more bytes than a document may have"));
        }
        let given = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        Ok(&bytes[..given])
    }

    fn consume(&mut self, amount: usize) {
        // What was filled is still there, so that nothing is read for this.
        if amount > 0
            && let Ok(bytes) = self.inner.fill_buf()
        {
            self.here = self.here.after(&bytes[..amount.min(bytes.len())]);
        }
        self.bytes += amount as u64;
        self.inner.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_place() {
        let text = b"ab\n\nc\nde";
        for size in 1..10 {
            let mut metered =
                Metered::new(io::BufReader::with_capacity(size, &text[..]), Path::new("some.file"));
            for (at, &byte) in text.iter().enumerate() {
                assert_eq!(metered.here(), At { line: 1, byte: 1 }.after(&text[..at]));
                assert_eq!(metered.peek().unwrap(), Some(byte));
                metered.consume(1);
            }
            assert_eq!(metered.here(), At { line: 4, byte: 3 });
            assert_eq!(metered.peek().unwrap(), None);
            let tally = metered.tally(&Tally::new(Path::new("some.file"), &[]));
            assert_eq!((tally.bytes, tally.lines), (8, 4));
        }
    }

    #[test]
    fn a_document_without_end_does_not_fill_the_memory() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        let mut metered = Metered::new(endless, Path::new("some.file"));
        io::copy(&mut metered.by_ref().take(5), &mut io::sink()).unwrap();
        metered.mark();
        io::copy(&mut metered.by_ref().take(LONGEST), &mut io::sink()).unwrap();
        let stopped = metered.read(&mut [0]).unwrap_err();
        let message = metered.error(&stopped).to_string();
        let place = "some.file: line 1, column 6 (byte of the line): the document that begins here has more";
        assert!(message.starts_with(place), "{message}");
        metered.mark();
        assert_eq!(metered.peek().unwrap(), Some(b'x'));
        let message = metered.error(&io::Error::other("pulled out")).to_string();
        assert!(!message.is_empty());
    }
}
