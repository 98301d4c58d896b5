//! A store in front of a server of our own, for the tests.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engraft_tests::server::Server;
use store::location::Location;
use store::options::Options;
use store::{Store, Whole};

pub(crate) const BLOCK: u64 = 1000;

pub(crate) fn options(cache: &Path) -> Options {
    Options {
        cache_bytes: 1 << 20,
        block_bytes: BLOCK,
        retries: 2,
        patience: Duration::from_secs(20),
        backoff: Duration::from_millis(1),
        ..Options::new(cache)
    }
}

pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) server: Server,
    pub(crate) store: Store,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(&folder.path().join("cache"));
        change(&mut options);
        Self { folder, server: Server::start().unwrap(), store: Store::new(options) }
    }

    pub(crate) fn at(&self, path: &str) -> Location {
        Location::parse(&self.server.url(path)).unwrap()
    }

    pub(crate) fn whole(&self, path: &str) -> Result<Whole, store::Error> {
        self.store.local_file(&self.at(path), &mut |_| ControlFlow::Continue(()))
    }

    /// The ranges of the GET requests since the last look.
    pub(crate) fn ranges(&self) -> Vec<String> {
        let gets = self.server.requests().into_iter().filter(|request| request.method == "GET");
        gets.map(|request| request.range().to_owned()).collect()
    }

    /// Every file of the cache.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let (mut files, mut folders) = (Vec::new(), vec![self.folder.path().join("cache")]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() { folders.push(entry.path()) } else { files.push(entry.path()) }
            }
        }
        files
    }
}

pub(crate) fn numbers(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes).map(|i| u8::try_from((i + i / 251) % 256).unwrap() ^ seed).collect()
}
