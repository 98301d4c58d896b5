//! Shards that lie in another place, read by ranges through a bounded cache.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use store::Store;
use store::location::Location;
use store::object::Object;

use super::source::Open;
use super::steps::Shards;
use crate::Error;
use crate::shard::index::{self, FileIndex, Index};
use crate::shard::read::{Blob, Of, Shard, unopened};

/// A shard folder in any place that the store knows.
#[derive(Debug, Clone)]
pub struct Remote {
    store: Store,
    folder: Location,
}

impl Remote {
    /// The shard folder at `folder`.
    #[must_use]
    pub fn new(store: Store, folder: Location) -> Self {
        Self { store, folder }
    }

    /// Its index, which is small and read whole.
    ///
    /// # Errors
    /// When it is missing, damaged or of another version.
    pub fn index(&self) -> Result<Index, Error> {
        let location = self.folder.child(index::FILE);
        let unread = |error: store::Error| match error.is_missing() {
            true => io::Error::other(format!("{error}; a shard folder without its index is not finished")),
            false => io::Error::other(error),
        };
        let object = self.store.open(&location).map_err(unread)?;
        let bytes = object.range(0..object.len()).map_err(unread)?;
        Index::parse(bytes.to_vec(), &PathBuf::from(location.to_string()))
    }

    /// The shards of `index`, with the negatives that they hold.
    #[must_use]
    pub fn shards(self, index: &Index) -> Shards<'_> {
        Shards { index, place: Arc::new(self), redraw: None }
    }
}

/// An object as a shard's reader reads it.
#[derive(Debug)]
struct Ranges(Object);

impl Blob for Ranges {
    fn read_at(&self, start: u64, length: usize) -> io::Result<Bytes> {
        self.0.range(start..start.saturating_add(length as u64)).map_err(io::Error::other)
    }
}

impl Open for Remote {
    fn open(&self, index: &FileIndex, of: Of) -> Result<Shard, Error> {
        let location = index.path.split('/').fold(self.folder.clone(), |folder, name| folder.child(name));
        let path = PathBuf::from(location.to_string());
        let object = self.store.open(&location).map_err(|error| unopened(&path, &error))?;
        if object.len() != index.bytes {
            let problem = format!("{} bytes, but the index says {}", object.len(), index.bytes);
            return Err(unopened(&path, &problem));
        }
        Shard::over(Box::new(Ranges(object)), path, index, of)
    }
}
