//! A stream of XML cut after the closing tags of its records, so that records can be parsed in parallel and a bounded part of the file is in memory.

use std::io::{self, Read};
use std::ops::Range;

use memchr::memmem;

/// Bytes asked of the reader at a time.
const CHUNK: usize = 4 << 20;

/// A record may be this long; the longest published one has less than 1 MiB.
pub(crate) const LONGEST: usize = 32 << 20;

/// Bytes that one thread parses at a time, more or less.
const PIECE: usize = 256 << 10;

/// Why there is no next chunk.
#[derive(Debug)]
pub(crate) enum Stop {
    Read(io::Error),
    /// No record ends within [`LONGEST`] bytes.
    TooLong,
}

#[derive(Debug)]
pub(crate) struct Chunks<R> {
    reader: R,
    /// The beginning of the records' closing tag, `</Record`.
    close: String,
    chunk: usize,
    tail: Vec<u8>,
    ended: bool,
    bytes: u64,
}

impl<R: Read> Chunks<R> {
    /// Chunks of `reader` that end after an element `record`.
    pub(crate) fn new(reader: R, record: &str) -> Self {
        let close = format!("</{record}");
        Self { reader, close, chunk: CHUNK, tail: Vec::new(), ended: false, bytes: 0 }
    }

    /// Puts the next whole records into `out`, whatever stands before them included. Empty after the last.
    pub(crate) fn fill(&mut self, out: &mut Vec<u8>) -> Result<(), Stop> {
        out.clear();
        out.append(&mut self.tail);
        while !self.ended {
            let known = out.len();
            let read = self.reader.by_ref().take(self.chunk as u64).read_to_end(out).map_err(Stop::Read)?;
            self.bytes += read as u64;
            self.ended = read < self.chunk;
            // A closing tag may have begun before what was read now.
            let from = known.saturating_sub(2 * self.close.len());
            if let Some(end) = self.last_end(&out[from..]) {
                self.tail.extend_from_slice(&out[from + end..]);
                out.truncate(from + end);
                return Ok(());
            }
            if out.len() > LONGEST {
                return Err(Stop::TooLong);
            }
        }
        // Only reached with records left if the end of the last chunk was the end of the file.
        let end = self.last_end(out).unwrap_or(0);
        self.tail.extend_from_slice(&out[end..]);
        out.truncate(end);
        Ok(())
    }

    /// What follows the last whole record.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.tail
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Cuts a chunk into pieces that end after a record, in order.
    pub(crate) fn pieces(&self, chunk: &[u8]) -> Vec<Range<usize>> {
        let finder = memmem::Finder::new(&self.close);
        let (mut pieces, mut start) = (Vec::with_capacity(chunk.len() / PIECE + 1), 0);
        while start < chunk.len() {
            let mut end = chunk.len();
            let mut from = start + PIECE;
            while let Some(found) = chunk.get(from..).and_then(|rest| finder.find(rest)) {
                from += found + self.close.len();
                if let Some(length) = end_of_tag(&chunk[from..]) {
                    end = from + length;
                    break;
                }
            }
            pieces.push(start..end);
            start = end;
        }
        pieces
    }

    /// The byte after the last closing tag of a record.
    fn last_end(&self, mut bytes: &[u8]) -> Option<usize> {
        let finder = memmem::FinderRev::new(&self.close);
        while let Some(found) = finder.rfind(bytes) {
            let from = found + self.close.len();
            if let Some(length) = end_of_tag(&bytes[from..]) {
                return Some(from + length);
            }
            bytes = &bytes[..found];
        }
        None
    }
}

/// The length of what is left of a closing tag after its name; none if the name goes on or the tag has no end.
fn end_of_tag(rest: &[u8]) -> Option<usize> {
    let blank = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
    (rest[blank] == b'>').then_some(blank + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All chunks and what is left, with chunks of `size` bytes read.
    fn cut(text: &str, size: usize) -> (Vec<String>, String) {
        let mut chunks = Chunks::new(text.as_bytes(), "R");
        chunks.chunk = size;
        let (mut out, mut all) = (Vec::new(), Vec::new());
        loop {
            chunks.fill(&mut out).unwrap();
            if out.is_empty() {
                break;
            }
            all.push(String::from_utf8(out.clone()).unwrap());
        }
        assert_eq!(chunks.bytes(), text.len() as u64);
        (all, String::from_utf8(chunks.tail().to_owned()).unwrap())
    }

    #[test]
    fn chunks_end_after_records_whatever_is_read_at_a_time() {
        let text = "<RS>\n<R>one</R>\n<R>two</R  >\n<R>three</R>\n</RS>\n";
        for size in 1..text.len() + 5 {
            let (chunks, tail) = cut(text, size);
            assert_eq!(tail, "\n</RS>\n", "{size}");
            assert_eq!(chunks.concat() + &tail, text);
            assert!(chunks.iter().all(|chunk| chunk.ends_with('>') && chunk.contains("<R>")), "{chunks:?}");
        }
        assert_eq!(cut(text, 1).0.len(), 3);
    }

    #[test]
    fn a_file_without_records_is_all_tail() {
        for text in ["", "<RS></RS>", "<R>cut", "</R"] {
            assert_eq!(cut(text, 3), (Vec::new(), text.to_owned()));
        }
    }

    #[test]
    fn pieces_are_whole_records_in_order() {
        let record = format!("<R>{}</R>\n", "x".repeat(100_000));
        let chunk = record.repeat(20);
        let pieces = Chunks::new(&b""[..], "R").pieces(chunk.as_bytes());
        assert!(pieces.len() > 3);
        assert!(pieces.iter().all(|piece| chunk[piece.clone()].trim().ends_with("</R>") || piece.len() == 1));
        assert!(pieces.iter().zip(&pieces[1..]).all(|(one, next)| one.end == next.start));
        assert_eq!((pieces[0].start, pieces.last().unwrap().end), (0, chunk.len()));
    }

    #[test]
    fn a_record_without_end_does_not_fill_the_memory() {
        let mut chunks = Chunks::new(io::repeat(b'x'), "R");
        let stopped = chunks.fill(&mut Vec::new());
        assert!(matches!(stopped, Err(Stop::TooLong)));
        assert!(chunks.bytes() <= (LONGEST + CHUNK) as u64);
    }
}
