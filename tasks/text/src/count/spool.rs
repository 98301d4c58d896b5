//! Segments of words as numbers, kept in a temporary file until all words are known.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

/// Writes segments.
#[derive(Debug)]
pub(super) struct Spool {
    file: BufWriter<File>,
}

/// Reads them in the same order.
#[derive(Debug)]
pub(super) struct Unwinding {
    file: BufReader<File>,
}

impl Spool {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::with_capacity(1 << 18, tempfile::tempfile_in(folder)?) })
    }

    /// Adds a segment, the numbers of its words in order.
    pub(super) fn push(&mut self, words: &[u32]) -> io::Result<()> {
        let length =
            u32::try_from(words.len()).map_err(|_| io::Error::other("a segment of over 2^32 words"))?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(bytemuck::cast_slice(words))
    }

    pub(super) fn unwind(self) -> io::Result<Unwinding> {
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(Unwinding { file: BufReader::with_capacity(1 << 18, file) })
    }
}

impl Unwinding {
    /// Fills `words` with the next segment; `None` behind the last.
    pub(super) fn next(&mut self, words: &mut Vec<u32>) -> io::Result<Option<()>> {
        let mut length = [0; 4];
        match self.file.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        words.resize(u32::from_le_bytes(length) as usize, 0);
        self.file.read_exact(bytemuck::cast_slice_mut(words))?;
        Ok(Some(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_come_back_in_order() {
        let mut spool = Spool::new(&std::env::temp_dir()).unwrap();
        for segment in [&[1, 2, 3][..], &[], &[u32::MAX]] {
            spool.push(segment).unwrap();
        }
        let (mut back, mut words) = (spool.unwind().unwrap(), vec![9; 9]);
        for segment in [&[1, 2, 3][..], &[], &[u32::MAX]] {
            assert!(back.next(&mut words).unwrap().is_some());
            assert_eq!(words, segment);
        }
        assert!(back.next(&mut words).unwrap().is_none());
    }
}
