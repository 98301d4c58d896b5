//! The cache on disk: blocks of objects and whole objects, kept under a bound by throwing the least recently used away.
//!
//! Losing any of it costs a request, never a result: an entry is named by what the object was (its identity and state), appears
//! whole, and is checked when it is read. What a process is using is locked (`flock`, which a kill releases); nobody waits for a lock.

mod room;
mod whole;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;
use rustix::fs::{CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use tempfile::NamedTempFile;

pub(crate) use whole::{Making, Whole};

use crate::error::Error;

/// The version of the layout, and the name of the folder that has it.
pub const VERSION: &str = "1";
const HASH: usize = blake3::OUT_LEN;
const PRIVATE: u32 = 0o700;

/// The cache in one folder.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    bound: u64,
    room: Mutex<room::Tally>,
}

/// The name of an object's entries: of its identity and its state, and of how it is cut.
pub(crate) fn name(identity: &str, state: &str, cut: u64) -> String {
    let hash = blake3::hash(format!("{identity}\n{state}\n{cut}").as_bytes());
    hash.to_hex()[..32].to_owned()
}

impl Cache {
    /// The cache in `folder`, which is made when something is put there.
    pub(crate) fn new(folder: &Path, bound: u64) -> Self {
        Self { folder: folder.join(VERSION), bound, room: Mutex::new(room::Tally::unknown()) }
    }

    /// The block `number` of the object `name`, `length` bytes; nothing if it is not there or damaged.
    pub(crate) fn block(&self, name: &str, number: u64, length: u64) -> Result<Option<Bytes>, Error> {
        let path = self.block_path(name, number);
        let mut found = Vec::new();
        match File::open(&path).and_then(|mut file| file.read_to_end(&mut found)) {
            Ok(_) => {}
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(Error::unread(&path)(error)),
        }
        let found = Bytes::from(found);
        let sound = found.split_at_checked(HASH).is_some_and(|(hash, bytes)| {
            bytes.len() as u64 == length && blake3::hash(bytes).as_bytes().as_slice() == hash
        });
        if !sound {
            remove(&path)?;
            return Ok(None);
        }
        touch(&path)?;
        Ok(Some(found.slice(HASH..)))
    }

    /// Puts a block there. One that is larger than the whole cache may be is left out.
    pub(crate) fn put_block(&self, name: &str, number: u64, bytes: &[u8]) -> Result<(), Error> {
        let size = (bytes.len() + HASH) as u64;
        if size > self.bound {
            return Ok(());
        }
        self.make_room(size)?;
        // The folder is flat and stays: none that another empties and removes can go between making it and moving a block there.
        let path = self.block_path(name, number);
        let write = || -> io::Result<()> {
            make_private(&self.blocks())?;
            let mut part = self.part()?;
            part.write_all(blake3::hash(bytes).as_bytes())?;
            part.write_all(bytes)?;
            part.persist(&path).map_err(|e| e.error)?;
            Ok(())
        };
        write().map_err(Error::unwritten(&path))
    }

    /// A file among the parts that nobody else throws away.
    fn part(&self) -> io::Result<NamedTempFile> {
        let parts = self.parts();
        make_private(&parts)?;
        loop {
            let part = tempfile::Builder::new().prefix(".tmp").tempfile_in(&parts)?;
            part.as_file().lock_shared()?;
            // Who makes room takes one that is not yet locked for a dead process's.
            if whole::is_at(part.as_file(), part.path()) {
                return Ok(part);
            }
        }
    }

    fn block_path(&self, name: &str, number: u64) -> PathBuf {
        self.blocks().join(format!("{name}-{number}"))
    }

    fn blocks(&self) -> PathBuf {
        self.folder.join("blocks")
    }

    fn wholes(&self) -> PathBuf {
        self.folder.join("whole")
    }

    fn parts(&self) -> PathBuf {
        self.folder.join("parts")
    }
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Makes one of the cache's folders, for this user alone: what was fetched with somebody's credentials is nobody else's to read.
fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(folder)?;
    let Some(above) = folder.parent() else { return Ok(()) };
    // One that was made under another rule.
    if fs::metadata(above)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(above, fs::Permissions::from_mode(PRIVATE))?;
    }
    Ok(())
}

/// Removes a file that may be gone already.
fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if !is_absent(&error) => Err(Error::unwritten(path)(error)),
        _ => Ok(()),
    }
}

/// Marks a file as used just now. The system sets the time; nothing but what is thrown away first depends on it.
fn touch(path: &Path) -> Result<(), Error> {
    let now = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
    };
    match rustix::fs::utimensat(CWD, path, &now, rustix::fs::AtFlags::empty()).map_err(io::Error::from) {
        Err(error) if !is_absent(&error) => Err(Error::unwritten(path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use tempfile::tempdir;

    #[test]
    fn a_block_comes_back_and_a_damaged_cut_or_foreign_one_does_not() {
        let dir = tempdir().unwrap();
        let cache = Cache::new(dir.path(), 1 << 20);
        assert_eq!(cache.block("a", 3, 5).unwrap(), None);
        cache.put_block("a", 3, b"hello").unwrap();
        assert_eq!(cache.block("a", 3, 5).unwrap().unwrap(), "hello");
        assert_eq!(cache.block("a", 3, 4).unwrap(), None, "of another length");
        cache.put_block("a", 3, b"hello").unwrap();
        let path = cache.block_path("a", 3);
        File::options().write(true).open(&path).unwrap().write_all_at(b"j", HASH as u64).unwrap();
        assert_eq!(cache.block("a", 3, 5).unwrap(), None, "a damaged one");
        assert!(!path.exists());
        cache.put_block("a", 3, b"hello").unwrap();
        File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
        assert_eq!(cache.block("a", 3, 5).unwrap(), None, "one that is cut");
    }

    #[test]
    fn silent_24_nobody_else_may_read_the_cache_even_one_that_was_open() {
        let dir = tempdir().unwrap();
        let folder = dir.path().join("user/engraft");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let cache = Cache::new(&folder, 1 << 20);
        cache.put_block("a", 3, b"hello").unwrap();
        assert_eq!((mode(&folder), mode(&folder.join(VERSION))), (PRIVATE, PRIVATE));
        fs::set_permissions(folder.join(VERSION), fs::Permissions::from_mode(0o755)).unwrap();
        cache.put_block("a", 4, b"hello").unwrap();
        assert_eq!(mode(&folder.join(VERSION)), PRIVATE);
        fs::set_permissions(folder.join(VERSION), fs::Permissions::from_mode(0o755)).unwrap();
        Making::begin(&cache, "k", "x.tsv", Some(5)).unwrap();
        assert_eq!(mode(&folder.join(VERSION)), PRIVATE, "whole files too");
    }

    #[test]
    fn threads_that_throw_each_others_blocks_away_never_fail_for_it() {
        let dir = tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let cache = Cache::new(dir.path(), 3 * (5 + HASH as u64));
                scope.spawn(move || {
                    for number in 0..300 {
                        match cache.put_block(&format!("{}", thread % 2), number % 2, b"hello") {
                            // What the others are writing is in use.
                            Ok(()) | Err(Error::CacheFull { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named_with_the_remedy() {
        let dir = tempdir().unwrap();
        let file = dir.path().join("file");
        File::create(&file).unwrap();
        let error = Cache::new(&file, 1 << 20).put_block("a", 0, b"x").unwrap_err().to_string();
        assert!(error.contains("file") && error.contains("choose another folder"), "{error}");
    }

    #[test]
    fn names_differ_by_identity_state_and_cut() {
        let one = name("s3://b/k", "etag a", 4);
        assert_eq!(one, name("s3://b/k", "etag a", 4));
        for other in
            [name("s3://b/l", "etag a", 4), name("s3://b/k", "etag b", 4), name("s3://b/k", "etag a", 8)]
        {
            assert_ne!(one, other);
        }
    }
}
