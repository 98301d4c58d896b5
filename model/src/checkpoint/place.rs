//! Where a tensor lies in a file, and the bytes there.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use safetensors::Dtype;

use crate::Error;

/// Where a tensor lies and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of its file.
    pub(super) file: usize,
    /// Its first byte there.
    pub(super) start: u64,
    /// What its numbers are.
    pub(super) dtype: Dtype,
    /// Sizes of its axes.
    pub(super) shape: Vec<usize>,
    /// The axes from the one whose numbers lie farthest apart to the one whose numbers lie side by side, where that is not their own order.
    pub(super) order: Option<Vec<usize>>,
}

/// Some bytes of a file.
pub(super) fn bytes_of(path: &Path, start: u64, count: usize) -> Result<Vec<u8>, Error> {
    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = vec![0; count];
        file.read_exact(&mut bytes).map(|()| bytes)
    };
    read().map_err(Error::file(path))
}
