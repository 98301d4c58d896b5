//! Whole objects in the cache: a folder with the file under its own name and a label, which is locked while the file is in use.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::{Cache, is_absent, touch};
use crate::error::Error;
use crate::meta::Meta;

/// The label's file name. No object is called so: see [`file_name`].
pub(super) const LABEL: &str = ".label.json";
const CHUNK: usize = 1 << 18;
/// What the label and the folder take, more or less.
const BESIDE: u64 = 512;

/// What is known of a whole object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    /// What the server said.
    meta: Meta,
    /// The file's length.
    bytes: u64,
    /// BLAKE3 of the file.
    blake3: String,
    /// Seconds and nanoseconds of modification and change, and the inode: while they stay, the file is not read again.
    stamp: [i64; 4],
    inode: u64,
}

/// A whole object that nobody throws away while this lives.
#[derive(Debug)]
pub(crate) struct Whole {
    path: PathBuf,
    /// Holds a shared lock.
    label: File,
    /// BLAKE3 of the file, in hexadecimal digits.
    blake3: String,
    /// Whether the entity tag that it came with promises equal bytes.
    is_certain: bool,
}

impl Whole {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The BLAKE3 of the file, in hexadecimal digits.
    pub(crate) fn blake3(&self) -> &str {
        &self.blake3
    }

    pub(crate) fn is_certain(&self) -> bool {
        self.is_certain
    }
}

/// A whole object in the making. Dropped unfinished, it leaves nothing.
#[derive(Debug)]
pub(crate) struct Making {
    folder: TempDir,
    place: PathBuf,
    object: String,
    name: String,
    label: File,
    file: File,
    hasher: blake3::Hasher,
    written: u64,
    /// Bytes that room was made for.
    room: u64,
}

/// Removes a folder of the cache, its label last: what a kill leaves of it can still be found and thrown away.
pub(super) fn remove_folder(folder: &Path) -> io::Result<()> {
    for file in fs::read_dir(folder)? {
        let file = file?;
        if file.file_name() != LABEL {
            gone(fs::remove_file(file.path()))?;
        }
    }
    gone(fs::remove_file(folder.join(LABEL)))?;
    match fs::remove_dir(folder) {
        // Without its label it was free for the next one, which has just come.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => gone(removed),
    }
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Whether `path` still leads to the open file. A lock on one that was thrown away meanwhile keeps nobody from what came after it.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// An object's file name in the cache: its own, unless that is the label's.
fn file_name(name: &str) -> &str {
    if name == LABEL { "object" } else { name }
}

impl Cache {
    /// The whole object `name`, whose file is called `file`; nothing if it is not there or damaged.
    pub(crate) fn whole(&self, name: &str, file: &str) -> Result<Option<Whole>, Error> {
        let folder = self.wholes().join(name);
        let (path, label_path) = (folder.join(file_name(file)), folder.join(LABEL));
        let label = match File::open(&label_path) {
            Err(error) if is_absent(&error) => return Ok(None),
            opened => opened.map_err(Error::unread(&label_path))?,
        };
        // Only who throws it away has a lock that keeps us out.
        if label.try_lock_shared().is_err() || !is_at(&label, &label_path) {
            return Ok(None);
        }
        let mut whole = Whole { path, label, blake3: String::new(), is_certain: false };
        if let Some(label) = whole.sound(&label_path)? {
            touch(&label_path)?;
            (whole.blake3, whole.is_certain) = (label.blake3, label.meta.strong().is_some());
            return Ok(Some(whole));
        }
        // While others use it, it stays, and so it does if the system refuses: the one made next then gets another place.
        if whole.label.try_lock().is_ok() && is_at(&whole.label, &label_path) {
            let _ = remove_folder(&folder);
        }
        Ok(None)
    }
}

impl Whole {
    /// The label, if the file is what it says.
    fn sound(&self, label_path: &Path) -> Result<Option<Label>, Error> {
        let Some(label) =
            fs::read(label_path).ok().and_then(|bytes| serde_json::from_slice::<Label>(&bytes).ok())
        else {
            return Ok(None);
        };
        let data = match fs::metadata(&self.path) {
            Err(error) if is_absent(&error) => return Ok(None),
            data => data.map_err(Error::unread(&self.path))?,
        };
        if data.len() != label.bytes {
            return Ok(None);
        }
        let is_sound = (label.stamp, label.inode) == stamp(&data)
            || digest(&self.path).map_err(Error::unread(&self.path))? == label.blake3;
        Ok(is_sound.then_some(label))
    }
}

fn stamp(data: &fs::Metadata) -> ([i64; 4], u64) {
    ([data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()], data.ino())
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finalize().to_hex().to_string()),
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
    }
}

/// A folder among the parts with a locked label, which nobody else throws away.
fn labelled(parts: &Path) -> io::Result<(TempDir, File)> {
    super::make_private(parts)?;
    loop {
        let folder = tempfile::Builder::new().prefix(".tmp").tempdir_in(parts)?;
        let path = folder.path().join(LABEL);
        let label = match File::create_new(&path) {
            // Who makes room takes one that is not yet locked for a dead process's.
            Err(error) if is_absent(&error) => continue,
            made => made?,
        };
        label.lock()?;
        if is_at(&label, &path) {
            return Ok((folder, label));
        }
    }
}

impl Making {
    /// Begins the object `name`, whose file is to be called `file` and has `bytes`, if that is known.
    pub(crate) fn begin(cache: &Cache, name: &str, file: &str, bytes: Option<u64>) -> Result<Self, Error> {
        let parts = cache.parts();
        let room = bytes.unwrap_or_else(|| cache.step()).saturating_add(BESIDE);
        cache.make_room(room)?;
        let begin = || -> io::Result<Self> {
            let (folder, label) = labelled(&parts)?;
            let made = File::create_new(folder.path().join(file_name(file)))?;
            Ok(Self {
                folder,
                place: cache.wholes().join(name),
                object: name.to_owned(),
                name: file.to_owned(),
                label,
                file: made,
                hasher: blake3::Hasher::new(),
                written: 0,
                room,
            })
        };
        begin().map_err(Error::unwritten(&parts))
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, cache: &Cache, bytes: &[u8]) -> Result<(), Error> {
        self.written += bytes.len() as u64;
        if self.written + BESIDE > self.room {
            let more = cache.step().max(bytes.len() as u64);
            cache.make_room(more)?;
            self.room += more;
        }
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(Error::unwritten(self.folder.path()))
    }

    /// Puts it into its place, for use.
    pub(crate) fn finish(mut self, cache: &Cache, meta: &Meta) -> Result<Whole, Error> {
        self.label(meta).map_err(Error::unwritten(&self.place))?;
        if !meta.is_telling() {
            // Another state has the same name: what lies there may be of that one.
            self.name_by_contents(cache);
        }
        let theirs = match self.settle(cache) {
            // What lies there is damaged, but in use.
            Err(_) => {
                self.name_by_contents(cache);
                self.settle(cache)?
            }
            Ok(theirs) => theirs,
        };
        let path = self.place.join(file_name(&self.name));
        let blake3 = self.hasher.finalize().to_hex().to_string();
        let is_certain = meta.strong().is_some();
        Ok(theirs.unwrap_or(Whole { path, label: self.label, blake3, is_certain }))
    }

    /// Moves it into its place, unless the same object is there, which is then returned.
    fn settle(&self, cache: &Cache) -> Result<Option<Whole>, Error> {
        if fs::rename(self.folder.path(), &self.place).is_ok() {
            return Ok(None);
        }
        // Somebody else made the same object meanwhile and may be using it. Or what lies there is damaged and now gone.
        if let Some(theirs) = cache.whole(&self.object, &self.name)? {
            return Ok(Some(theirs));
        }
        if !self.place.join(LABEL).exists() {
            // What an interrupted removal left. If it cannot be removed, the next line says so.
            let _ = remove_folder(&self.place);
        }
        fs::rename(self.folder.path(), &self.place).map_err(Error::unwritten(&self.place))?;
        Ok(None)
    }

    /// Takes a name that tells of the bytes beside what the server says. Each time another one.
    fn name_by_contents(&mut self, cache: &Cache) {
        self.object = super::name(&self.object, &self.hasher.finalize().to_hex(), 0);
        self.place = cache.wholes().join(&self.object);
    }

    /// Completes the files, and changes the writer's lock into a user's.
    fn label(&mut self, meta: &Meta) -> io::Result<()> {
        self.file.sync_all()?;
        let (stamp, inode) = stamp(&self.file.metadata()?);
        let label = Label {
            meta: meta.clone(),
            bytes: self.written,
            blake3: self.hasher.finalize().to_hex().to_string(),
            stamp,
            inode,
        };
        self.label.write_all(&serde_json::to_vec(&label)?)?;
        self.label.sync_all()?;
        if let Some(parent) = self.place.parent() {
            super::make_private(parent)?;
        }
        self.label.lock_shared()
    }

    /// Leaves everything behind as a kill would.
    #[cfg(test)]
    pub(super) fn abandon(mut self) {
        self.folder.disable_cleanup(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use tempfile::tempdir;

    fn meta() -> Meta {
        Meta { bytes: Some(5), etag: Some("a".to_owned()), modified: None }
    }

    fn make(cache: &Cache) -> Whole {
        let mut making = Making::begin(cache, "k", "x.tsv", Some(5)).unwrap();
        making.write(cache, b"hel").unwrap();
        making.write(cache, b"lo").unwrap();
        making.finish(cache, &meta()).unwrap()
    }

    #[test]
    fn a_whole_object_has_its_own_name_and_is_found_again() {
        let dir = tempdir().unwrap();
        let cache = Cache::new(dir.path(), 1 << 20);
        assert!(cache.whole("k", "x.tsv").unwrap().is_none());
        let path = make(&cache).path().to_owned();
        assert_eq!(path.file_name().unwrap(), "x.tsv");
        let found = cache.whole("k", "x.tsv").unwrap().unwrap();
        assert_eq!(fs::read(found.path()).unwrap(), b"hello");
        drop(make(&cache));
        assert_eq!(fs::read_dir(cache.parts()).unwrap().count(), 0);
    }

    #[test]
    fn one_that_is_touched_is_read_again_and_a_damaged_one_is_gone() {
        let dir = tempdir().unwrap();
        let cache = Cache::new(dir.path(), 1 << 20);
        let path = make(&cache).path().to_owned();
        touch(&path).unwrap();
        assert!(cache.whole("k", "x.tsv").unwrap().is_some(), "the same bytes");
        File::options().write(true).open(&path).unwrap().write_all_at(b"j", 0).unwrap();
        assert!(cache.whole("k", "x.tsv").unwrap().is_none());
        assert!(!path.exists());
    }

    #[test]
    fn without_a_state_the_bytes_name_it() {
        let dir = tempdir().unwrap();
        let cache = Cache::new(dir.path(), 1 << 20);
        let untold = Meta { bytes: Some(3), etag: None, modified: None };
        let make = |bytes: &[u8]| {
            let mut making = Making::begin(&cache, "k", "x.tsv", Some(3)).unwrap();
            making.write(&cache, bytes).unwrap();
            making.finish(&cache, &untold).unwrap()
        };
        let (old, new, same) = (make(b"old"), make(b"new"), make(b"old"));
        assert_eq!(fs::read(old.path()).unwrap(), b"old");
        assert_eq!(fs::read(new.path()).unwrap(), b"new");
        assert_eq!(same.path(), old.path());
    }

    #[test]
    fn what_an_interrupted_removal_left_gives_way() {
        let dir = tempdir().unwrap();
        let cache = Cache::new(dir.path(), 1 << 20);
        let path = make(&cache).path().to_owned();
        fs::remove_file(path.with_file_name(LABEL)).unwrap();
        assert!(cache.whole("k", "x.tsv").unwrap().is_none());
        assert_eq!(make(&cache).path(), path);
        assert!(cache.whole("k", "x.tsv").unwrap().is_some());
        remove_folder(path.parent().unwrap()).unwrap();
        assert!(!path.parent().unwrap().exists());
    }

    #[test]
    fn a_damaged_one_in_use_stays_and_the_next_lies_elsewhere() {
        let dir = tempdir().unwrap();
        let cache = Cache::new(dir.path(), 1 << 20);
        let used = make(&cache);
        File::options().write(true).open(used.path()).unwrap().set_len(1).unwrap();
        assert!(cache.whole("k", "x.tsv").unwrap().is_none());
        assert!(used.path().exists());
        let next = make(&cache);
        assert_ne!(next.path(), used.path());
        assert_eq!(fs::read(next.path()).unwrap(), b"hello");
        let path = used.path().to_owned();
        drop(used);
        assert!(cache.whole("k", "x.tsv").unwrap().is_none());
        assert!(!path.exists(), "nobody uses it any more");
    }

    #[test]
    fn a_lock_on_what_was_thrown_away_is_no_lock() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("x");
        let open = File::create(&path).unwrap();
        assert!(is_at(&open, &path));
        fs::remove_file(&path).unwrap();
        assert!(!is_at(&open, &path));
        let _other = File::create(&path).unwrap();
        assert!(!is_at(&open, &path));
    }

    #[test]
    fn what_is_not_finished_leaves_nothing() {
        let dir = tempdir().unwrap();
        let cache = Cache::new(dir.path(), 1 << 20);
        let mut making = Making::begin(&cache, "k", "x.tsv", None).unwrap();
        making.write(&cache, b"hel").unwrap();
        drop(making);
        assert_eq!(fs::read_dir(cache.parts()).unwrap().count(), 0);
        assert!(cache.whole("k", "x.tsv").unwrap().is_none());
    }
}
