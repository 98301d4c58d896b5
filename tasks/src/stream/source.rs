//! The row groups of one task, by number over all its files.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use batch::task::Task;

use crate::Error;
use crate::shard::index::{FileIndex, PartIndex};
use crate::shard::read::{Group, Of, Shard};

/// Files that are kept open; more would run into the system's limit for many tasks and ranks.
const OPEN: usize = 32;

/// Opens a shard, wherever it lies.
pub trait Open: Send + Sync + std::fmt::Debug {
    /// Opens the shard that `index` lists.
    ///
    /// # Errors
    /// When it cannot be opened or is not as the index says.
    fn open(&self, index: &FileIndex, of: Of) -> Result<Shard, Error>;
}

/// Shards in a folder on this machine.
#[derive(Debug, Clone)]
pub struct Folder(pub PathBuf);

impl Open for Folder {
    fn open(&self, index: &FileIndex, of: Of) -> Result<Shard, Error> {
        Shard::open(&self.0, index, of)
    }
}

/// The row groups of one task and part.
#[derive(Debug)]
pub struct Source {
    of: Of,
    place: Arc<dyn Open>,
    files: Vec<FileIndex>,
    /// File and row group within it, by number.
    groups: Vec<(usize, usize)>,
    /// Shards opened last, the latest in front.
    open: Mutex<VecDeque<(usize, Arc<Shard>)>>,
}

impl Source {
    /// The row groups that `index` lists.
    #[must_use]
    pub fn new(place: Arc<dyn Open>, of: Of, index: &PartIndex) -> Self {
        let files = index.files.clone();
        let groups = files.iter().enumerate();
        let groups = groups.flat_map(|(file, index)| (0..index.groups.len()).map(move |group| (file, group)));
        Self { of, place, groups: groups.collect(), files, open: Mutex::new(VecDeque::new()) }
    }

    /// The task whose rows these are.
    #[must_use]
    pub fn task(&self) -> Task {
        self.of.task
    }

    /// Items of each row group.
    pub fn items(&self) -> impl Iterator<Item = u32> {
        self.files.iter().flat_map(|file| file.groups.iter().map(|group| group.items))
    }

    /// Reads row group `number`.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn group(&self, number: u32) -> Result<Group, Error> {
        let (file, group) = self.groups[number as usize];
        self.shard(file)?.group(group)
    }

    fn shard(&self, file: usize) -> Result<Arc<Shard>, Error> {
        let locked = || self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shard)) = locked().iter().find(|(of, _)| *of == file) {
            return Ok(Arc::clone(shard));
        }
        let shard = Arc::new(self.place.open(&self.files[file], self.of)?);
        let mut open = locked();
        open.push_front((file, Arc::clone(&shard)));
        open.truncate(OPEN);
        Ok(shard)
    }
}
