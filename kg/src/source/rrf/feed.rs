//! Bytes cut at line ends into pieces, some at a time.

use std::io::{self, Read};
use std::mem;

use base::line::has_returns;

/// What a line may have at most. The longest published ones, of definitions, have some ten thousand bytes.
pub(super) const LONGEST_LINE: usize = 16 << 20;

/// Whole lines; only the last piece of a file may end in the middle of one.
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// Why there is nothing after these bytes, if that is an error.
    pub(super) failure: Option<Failure>,
}

/// Why reading stops, at the line after the piece.
pub(super) enum Failure {
    Read(io::Error),
    TooLong,
    /// There are CRs where line ends should be.
    Returns,
}

/// Reads pieces of about `size` bytes.
pub(super) struct Feed<'f> {
    reader: Box<dyn Read + Send + 'f>,
    size: usize,
    /// The beginning of a line whose end is not read yet.
    begun: Vec<u8>,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
    ended: bool,
}

impl<'f> Feed<'f> {
    pub(super) fn new(reader: Box<dyn Read + Send + 'f>, size: usize) -> Self {
        Self { reader, size: size.max(1), begun: Vec::new(), spare: Vec::new(), ended: false }
    }

    /// The next `count` pieces, fewer at the end of the file.
    pub(super) fn pieces(&mut self, count: usize) -> Vec<Piece> {
        let mut pieces = Vec::with_capacity(count);
        while pieces.len() < count && !self.ended {
            let piece = self.piece();
            if !piece.bytes.is_empty() || piece.failure.is_some() {
                pieces.push(piece);
            }
        }
        pieces
    }

    /// Takes buffers back.
    pub(super) fn reuse(&mut self, buffers: impl IntoIterator<Item = Vec<u8>>) {
        self.spare.extend(buffers);
    }

    fn piece(&mut self) -> Piece {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.append(&mut self.begun);
        loop {
            let before = bytes.len();
            let read = self.reader.by_ref().take(self.size as u64).read_to_end(&mut bytes);
            let end = memchr::memrchr(b'\n', &bytes[before..]).map(|end| before + end + 1);
            let failure = match read {
                Err(error) => Failure::Read(error),
                Ok(0) => {
                    self.ended = true;
                    return Piece { bytes, failure: None };
                }
                Ok(_) => {
                    if let Some(end) = end {
                        self.begun.extend_from_slice(&bytes[end..]);
                        bytes.truncate(end);
                        return Piece { bytes, failure: None };
                    }
                    if bytes.len() <= LONGEST_LINE {
                        continue;
                    }
                    if has_returns(&bytes) { Failure::Returns } else { Failure::TooLong }
                }
            };
            self.ended = true;
            let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |end| end + 1);
            bytes.truncate(whole);
            return Piece { bytes, failure: Some(failure) };
        }
    }
}

/// A buffer given back.
pub(super) fn emptied(piece: &mut Piece) -> Vec<u8> {
    mem::take(&mut piece.bytes)
}
