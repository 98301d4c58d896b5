//! Remembered digests, so that an unchanged file is not read again. Only saves work: losing the memo changes no result.
//!
//! A file counts as unchanged while its size, modification time, change time (which no program can set back) and inode
//! stay the same. A rewrite within one tick of the file system's clock (about 4 ms) that also keeps the size goes unseen.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::cancel::CancelToken;
use base::whole::write_with_folder;
use serde::{Deserialize, Serialize};

use super::digest::{Digest, each};

/// What tells one state of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
}

impl Stamp {
    /// The stamp of the file at `path`.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|data| Self::from(&data))
    }
}

impl From<&Metadata> for Stamp {
    fn from(data: &Metadata) -> Self {
        Self {
            bytes: data.len(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
            inode: data.ino(),
        }
    }
}

/// A file whose contents are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// The digest of its contents.
    pub digest: Digest,
    /// Its stamp when it was read.
    pub stamp: Stamp,
    /// Whether it had to be read again only to find the contents that were known before.
    #[serde(skip)]
    pub touched: bool,
    /// The digest that was known before under this very stamp, if it is another: a disk's decay looks so.
    #[serde(skip)]
    pub was: Option<Digest>,
    /// Whether this process has read it, so that its digest is no memory.
    #[serde(skip)]
    read: bool,
}

impl Known {
    /// A file that this process has read.
    pub(crate) fn read(digest: Digest, stamp: Stamp) -> Self {
        Self { digest, stamp, touched: false, was: None, read: true }
    }
}

/// What is believed of a file whose stamp is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belief {
    /// That its contents are.
    Stamps,
    /// Nothing, unless this process has read it.
    Reading,
}

/// The remembered digests of one output folder.
#[derive(Debug)]
pub(crate) struct Memo {
    file: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    known: BTreeMap<String, Known>,
    dirty: bool,
}

impl Memo {
    /// Reads the memo at `file`. One that is missing or cannot be read is an empty one.
    pub(crate) fn load(file: &Path) -> Self {
        let known = fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let state = State { known: known.unwrap_or_default(), dirty: false };
        Self { file: file.to_owned(), state: Mutex::new(state) }
    }

    /// The contents of each file in `paths`, in their order, reading on up to `jobs` threads only what is not known.
    pub(crate) fn look(
        &self,
        paths: &[PathBuf],
        belief: Belief,
        jobs: NonZeroUsize,
        cancel: &CancelToken,
    ) -> Vec<io::Result<Known>> {
        let mut found: Vec<_> = paths.iter().map(|path| self.recall(path, belief)).collect();
        let unknown: Vec<usize> = (0..paths.len()).filter(|i| matches!(found[*i], Ok(None))).collect();
        let read = each(&unknown, jobs, |i| self.read(&paths[*i], cancel));
        for (i, known) in unknown.into_iter().zip(read) {
            found[i] = known.map(Some);
        }
        found
            .into_iter()
            .map(|known| known.and_then(|k| k.ok_or_else(|| io::ErrorKind::NotFound.into())))
            .collect()
    }

    /// Remembers what was found out elsewhere about the file at `path`.
    pub(crate) fn learn(&self, path: &Path, known: Known) {
        let mut state = self.state();
        state.known.insert(key(path), known);
        state.dirty = true;
    }

    /// Forgets the file at `path`, so that it is read at the next look.
    pub(crate) fn forget(&self, path: &Path) {
        let mut state = self.state();
        state.dirty |= state.known.remove(&key(path)).is_some();
    }

    /// Remembers again what was known of the file at `path` before it was found with other contents under the same stamp, so that
    /// they are not taken for a change that somebody made.
    pub(crate) fn keep_former(&self, path: &Path, found: &Known) {
        if let Some(digest) = found.was {
            self.learn(path, Known { digest, read: false, ..Known::read(digest, found.stamp) });
        }
    }

    /// Writes the memo down if it has learnt something, without files that are gone.
    ///
    /// # Errors
    /// What writing gives.
    pub(crate) fn save(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.dirty {
            state.known.retain(|path, _| Path::new(path).exists());
            write_with_folder(&self.file, &serde_json::to_vec(&state.known)?)?;
            state.dirty = false;
        }
        Ok(())
    }

    fn recall(&self, path: &Path, belief: Belief) -> io::Result<Option<Known>> {
        let stamp = Stamp::of(path)?;
        let believed = |known: &&Known| known.stamp == stamp && (known.read || belief == Belief::Stamps);
        Ok(self.state().known.get(&key(path)).filter(believed).copied())
    }

    fn read(&self, path: &Path, cancel: &CancelToken) -> io::Result<Known> {
        // The stamp is taken first: if the file changes while it is read, the next look sees another stamp.
        let stamp = Stamp::of(path)?;
        let digest = Digest::of_file(path, cancel)?;
        let before = self.state().known.get(&key(path)).copied();
        let known = Known {
            touched: before.is_some_and(|before| before.digest == digest && before.stamp != stamp),
            was: before.filter(|b| b.stamp == stamp && b.digest != digest).map(|before| before.digest),
            ..Known::read(digest, stamp)
        };
        self.learn(path, known);
        Ok(known)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::tempdir;

    fn look(memo: &Memo, path: &Path) -> io::Result<Known> {
        memo.look(&[path.to_owned()], Belief::Stamps, NonZeroUsize::MIN, &CancelToken::NEVER).remove(0)
    }

    #[test]
    fn a_known_file_is_not_read_again_and_a_changed_one_is() {
        let dir = tempdir().unwrap();
        let (file, save) = (dir.path().join("f"), dir.path().join("memo.json"));
        write_with_folder(&file, b"one").unwrap();
        let memo = Memo::load(&save);
        assert_eq!(look(&memo, &file).unwrap().digest, Digest::of(b"one"));
        // A false digest shows whether the memo is asked or the file.
        memo.learn(&file, Known { digest: Digest::of(b"lie"), ..look(&memo, &file).unwrap() });
        memo.save().unwrap();
        let memo = Memo::load(&save);
        assert_eq!(look(&memo, &file).unwrap().digest, Digest::of(b"lie"));
        write_with_folder(&file, b"two").unwrap();
        assert_eq!(look(&memo, &file).unwrap().digest, Digest::of(b"two"));
    }

    #[test]
    fn the_results_stand_in_the_order_asked_for_and_a_missing_file_is_an_error_of_its_own() {
        let dir = tempdir().unwrap();
        let memo = Memo::load(&dir.path().join("memo.json"));
        let paths: Vec<_> = (0..20).map(|i| dir.path().join(i.to_string())).collect();
        for (i, path) in paths.iter().enumerate().filter(|(i, _)| *i != 7) {
            write_with_folder(path, i.to_string().as_bytes()).unwrap();
        }
        let found = memo.look(&paths, Belief::Stamps, NonZeroUsize::new(3).unwrap(), &CancelToken::NEVER);
        for (i, known) in found.into_iter().enumerate() {
            assert_eq!(
                known.ok().map(|known| known.digest),
                (i != 7).then(|| Digest::of(i.to_string().as_bytes()))
            );
        }
    }

    #[test]
    fn a_memo_that_cannot_be_read_is_an_empty_one() {
        let dir = tempdir().unwrap();
        let (file, save) = (dir.path().join("f"), dir.path().join("memo.json"));
        write_with_folder(&file, b"one").unwrap();
        write_with_folder(&save, b"{\"half").unwrap();
        assert_eq!(look(&Memo::load(&save), &file).unwrap().digest, Digest::of(b"one"));
    }
}
