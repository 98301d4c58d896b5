//! One object, read by range: from its file, or from blocks of the cache, for which missing neighbours are fetched together.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

use crate::cache;
use crate::error::Error;
use crate::location::{Address, Location};
use crate::meta::Meta;
use crate::store::Store;

/// Blocks that a sequential reader asks for at once.
const AHEAD: u64 = 4;
/// Blocks that are asked for in one request at most.
const RUN: u64 = 256;

/// An object that was there when it was opened. Clones read the same; all methods may be called by several threads.
#[derive(Clone, Debug)]
pub struct Object {
    store: Store,
    location: Location,
    kind: Kind,
    meta: Meta,
    bytes: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Local(Arc<File>),
    Remote,
}

impl Object {
    pub(crate) fn new(store: Store, location: Location, kind: Kind, meta: Meta, bytes: u64) -> Self {
        Self { store, location, kind, meta, bytes }
    }

    /// Where it is.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether it has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// What it was when it was opened.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The bytes of `range`.
    ///
    /// # Errors
    /// When the object does not have them, cannot be read, or has changed since it was opened.
    pub fn range(&self, range: Range<u64>) -> Result<Bytes, Error> {
        let (start, end) = (range.start, range.end);
        if start > end || end > self.bytes {
            let (location, bytes) = (&self.location, self.bytes);
            let what = format!("{location}: bytes {start} to {end} were asked for, but it has {bytes}");
            return Err(Error::Other(what));
        }
        if start == end {
            return Ok(Bytes::new());
        }
        match (&self.kind, &self.location) {
            (Kind::Local(file), Location::Local(path)) => {
                let mut bytes = vec![0; index(end - start)];
                file.read_exact_at(&mut bytes, start).map_err(Error::local(path))?;
                Ok(bytes.into())
            }
            _ => self.remote(range),
        }
    }

    /// Reads it from `start` to the end, some blocks ahead.
    #[must_use]
    pub fn reader(&self, start: u64) -> Reader {
        Reader { object: self.clone(), at: start, ahead: Bytes::new() }
    }

    fn remote(&self, range: Range<u64>) -> Result<Bytes, Error> {
        let Location::Remote(address) = &self.location else { return Ok(Bytes::new()) };
        let size = self.store.block_bytes();
        let name = cache::name(&address.identity(), &self.meta.state(), size);
        let (first, last) = (range.start / size, (range.end - 1) / size);
        // Grows as blocks come: how many there are is what the server claims.
        let mut blocks = Vec::new();
        let mut at = first;
        while at <= last {
            let (mut until, mut known) = (at, None);
            while until <= last && until - at < RUN {
                known = self.known(&name, until)?;
                if known.is_some() {
                    break;
                }
                until += 1;
            }
            if at < until {
                blocks.extend(self.missing(address, &name, at..until)?);
            }
            at = until + u64::from(known.is_some());
            blocks.extend(known);
        }
        Ok(joined(blocks.into_iter(), first * size, range))
    }

    /// A block, if the cache has it. What nobody could tell from another state is not taken from there.
    fn known(&self, name: &str, number: u64) -> Result<Option<Bytes>, Error> {
        if !self.meta.is_telling() {
            return Ok(None);
        }
        self.store.cache().block(name, number, self.length(number))
    }

    /// Blocks that the cache does not have, by one request.
    fn missing(&self, address: &Address, name: &str, numbers: Range<u64>) -> Result<Vec<Bytes>, Error> {
        let size = self.store.block_bytes();
        let (start, end) = (numbers.start * size, numbers.end.saturating_mul(size).min(self.bytes));
        let fetched = Bytes::from(self.store.fetch(address, &self.meta, start..end)?);
        let mut blocks = Vec::new();
        for number in numbers {
            let from = index(number * size - start);
            let block = fetched.slice(from..fetched.len().min(from.saturating_add(index(size))));
            if self.meta.is_telling() {
                match self.store.cache().put_block(name, number, &block) {
                    // All that lies there is in use; the bytes are here all the same.
                    Ok(()) | Err(Error::CacheFull { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            blocks.push(block);
        }
        Ok(blocks)
    }

    /// The length of a block.
    fn length(&self, number: u64) -> u64 {
        let size = self.store.block_bytes();
        size.min(self.bytes.saturating_sub(number * size))
    }
}

/// A length in memory. Ranges are of what fits there.
fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Cuts `range` out of neighbouring blocks, the first of which begins at `start`.
fn joined(blocks: impl Iterator<Item = Bytes>, start: u64, range: Range<u64>) -> Bytes {
    let mut joined = Vec::new();
    let mut at = start;
    for block in blocks {
        let end = at + block.len() as u64;
        let from = index(range.start.max(at) - at).min(block.len());
        let until = index(range.end.min(end).saturating_sub(at));
        let piece = block.slice(from..until.max(from));
        if at <= range.start && range.end <= end {
            return piece;
        }
        joined.extend_from_slice(&piece);
        at = end;
    }
    joined.into()
}

/// Reads an object in order.
#[derive(Debug)]
pub struct Reader {
    object: Object,
    at: u64,
    ahead: Bytes,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ahead.is_empty() && self.at < self.object.bytes && !buffer.is_empty() {
            let size = self.object.store.block_bytes();
            let end = (self.at / size + AHEAD).saturating_mul(size).min(self.object.bytes);
            self.ahead = self.object.range(self.at..end).map_err(io::Error::other)?;
            self.at = end;
        }
        let given = buffer.len().min(self.ahead.len());
        buffer[..given].copy_from_slice(&self.ahead.split_to(given));
        Ok(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_out_of_blocks() {
        let blocks = || [&b"0123"[..], b"4567", b"89"].into_iter().map(Bytes::from_static);
        for start in 0..10 {
            for end in start + 1..=10 {
                // As the caller does: only the blocks that the range touches.
                let (first, last) = (start / 4, (end - 1) / 4);
                let some = blocks().skip(index(first)).take(index(last - first) + 1);
                let expected = &b"0123456789"[index(start)..index(end)];
                assert_eq!(joined(some, first * 4, start..end), expected, "{start}..{end}");
            }
        }
    }
}
