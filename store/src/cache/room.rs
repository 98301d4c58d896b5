//! Room in the cache: what lies there, how old it is, and what is thrown away when more is to come.

use std::fs::{self, DirEntry, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::whole::{LABEL, is_at, remove_folder};
use super::{Cache, is_absent};
use crate::error::Error;

/// The cache is looked through once per this share of its bound that was put there, since others may put things there too.
const SHARE: u64 = 16;
/// How often it is looked through at most while others move what lies there.
const LOOKS: usize = 4;

/// What is known of the cache without looking.
#[derive(Debug)]
pub(super) struct Tally {
    /// Bytes that lay there at the last look, and came since.
    total: u64,
    /// Bytes that came since the last look; nothing before the first.
    fresh: Option<u64>,
}

impl Tally {
    pub(super) fn unknown() -> Self {
        Self { total: 0, fresh: None }
    }
}

/// A thing that can be thrown away as one.
#[derive(Debug)]
struct Entry {
    /// When it was last used, in seconds and nanoseconds.
    used: (i64, i64),
    path: PathBuf,
    kind: Kind,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A block: whoever has it open keeps it.
    Block,
    /// A whole object: not while its label is locked.
    Whole,
    /// What a process is making, or was making when it died: not while it is locked.
    Part,
    /// What an interrupted removal left: a folder that has lost its label.
    Left,
}

impl Kind {
    /// Whether it goes whatever its age, because no object is in it.
    fn is_waste(self) -> bool {
        matches!(self, Self::Part | Self::Left)
    }
}

/// What came of throwing an entry away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Its bytes are gone.
    Gone,
    /// Somebody uses it.
    Used,
    /// Somebody has moved it, or made it anew: its bytes may lie elsewhere.
    Moved,
}

impl Cache {
    /// Throws the least recently used away until `wanted` more bytes fit under the bound, and counts them as there.
    pub(super) fn make_room(&self, wanted: u64) -> Result<(), Error> {
        let refused = |held| Error::CacheFull { path: self.folder.clone(), bound: self.bound, wanted, held };
        if wanted > self.bound {
            return Err(refused(0));
        }
        let mut tally = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let soon = tally.fresh.map(|fresh| fresh.saturating_add(wanted));
        let fits = tally.total.saturating_add(wanted) <= self.bound;
        if let Some(fresh) = soon.filter(|fresh| fits && *fresh <= self.bound / SHARE) {
            *tally = Tally { total: tally.total + wanted, fresh: Some(fresh) };
            return Ok(());
        }
        let mut looks = 1;
        let total = loop {
            let (total, moved) = self.sweep(wanted)?;
            if total.saturating_add(wanted) <= self.bound {
                break total;
            }
            // What another process has just finished or given up counted as in use; another look sees where it is now.
            if !moved || looks == LOOKS {
                return Err(refused(total));
            }
            looks += 1;
        };
        *tally = Tally { total: total + wanted, fresh: Some(0) };
        Ok(())
    }

    /// Looks the cache through and throws away what must go. Returns the bytes that are left, and whether others moved some meanwhile.
    fn sweep(&self, wanted: u64) -> Result<(u64, bool), Error> {
        let mut entries = self.entries()?;
        // What a dead process left behind goes first, whatever its age.
        entries.sort_by(|a, b| {
            (!a.kind.is_waste(), a.used, &a.path).cmp(&(!b.kind.is_waste(), b.used, &b.path))
        });
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let mut moved = false;
        // A little more than needed goes, or else every block to come would look through the folder again.
        let full = total.saturating_add(wanted) > self.bound;
        let aim = if full { self.bound - self.bound / SHARE } else { self.bound };
        for entry in &entries {
            if !entry.kind.is_waste() && total.saturating_add(wanted) <= aim {
                break;
            }
            match discard(entry)? {
                Fate::Gone => total -= entry.bytes,
                Fate::Moved => moved = true,
                Fate::Used => {}
            }
        }
        Ok((total, moved))
    }

    /// How much room is made at once for an object of unknown length.
    pub(super) fn step(&self) -> u64 {
        (self.bound / SHARE).max(1)
    }

    fn entries(&self) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for block in list(&self.blocks())? {
            entries
                .extend(stat(&block.path())?.map(|data| entry(Kind::Block, block.path(), &data, data.len())));
        }
        for whole in list(&self.wholes())? {
            entries.extend(folder(Kind::Whole, whole.path())?);
        }
        for part in list(&self.parts())? {
            match stat(&part.path())? {
                Some(data) if data.is_dir() => entries.extend(folder(Kind::Part, part.path())?),
                Some(data) => entries.push(entry(Kind::Part, part.path(), &data, data.len())),
                None => {}
            }
        }
        Ok(entries)
    }
}

/// A folder with a label; nothing if it is empty, because it has just been begun or is about to go.
fn folder(kind: Kind, path: PathBuf) -> Result<Option<Entry>, Error> {
    // In this order: the label is made first, so what has bytes and no label afterwards has lost it.
    let bytes = below(&path)?;
    if let Some(data) = stat(&path.join(LABEL))? {
        return Ok(Some(entry(kind, path, &data, bytes)));
    }
    let left = stat(&path)?.filter(|_| bytes > 0);
    Ok(left.map(|data| entry(Kind::Left, path, &data, bytes)))
}

fn entry(kind: Kind, path: PathBuf, data: &Metadata, bytes: u64) -> Entry {
    Entry { used: (data.mtime(), data.mtime_nsec()), path, kind, bytes }
}

/// What lies in a folder; nothing if it is gone.
fn list(folder: &Path) -> Result<Vec<DirEntry>, Error> {
    match fs::read_dir(folder).and_then(Iterator::collect) {
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        listed => listed.map_err(Error::unread(folder)),
    }
}

fn stat(path: &Path) -> Result<Option<Metadata>, Error> {
    match fs::symlink_metadata(path) {
        Ok(data) => Ok(Some(data)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(Error::unread(path)(error)),
    }
}

fn below(folder: &Path) -> Result<u64, Error> {
    let mut bytes = 0;
    for file in list(folder)? {
        bytes += stat(&file.path())?.map_or(0, |data| data.len());
    }
    Ok(bytes)
}

/// Throws an entry away unless somebody uses it.
fn discard(entry: &Entry) -> Result<Fate, Error> {
    let label = entry.path.join(LABEL);
    let is_folder = match entry.kind {
        Kind::Whole | Kind::Left => true,
        Kind::Part => entry.path.is_dir(),
        Kind::Block => false,
    };
    let lock = if is_folder { &label } else { &entry.path };
    // Held until the entry is gone.
    let _held = match entry.kind {
        Kind::Block => None,
        // Somebody else has put an object in its place.
        Kind::Left if label.exists() => return Ok(Fate::Moved),
        Kind::Left => None,
        Kind::Whole | Kind::Part => match File::open(lock) {
            Ok(file) if file.try_lock().is_err() => return Ok(Fate::Used),
            Ok(file) if !is_at(&file, lock) => return Ok(Fate::Moved),
            Ok(file) => Some(file),
            // Somebody else threw the object away; a part may also have become an object.
            Err(error) if is_absent(&error) && entry.kind == Kind::Whole => return Ok(Fate::Gone),
            Err(error) if is_absent(&error) => return Ok(Fate::Moved),
            Err(error) => return Err(Error::unread(lock)(error)),
        },
    };
    let removed = if is_folder { remove_folder(&entry.path) } else { fs::remove_file(&entry.path) };
    match removed {
        Err(error) if !is_absent(&error) => return Err(Error::unwritten(&entry.path)(error)),
        _ => {}
    }
    Ok(Fate::Gone)
}

#[cfg(test)]
mod tests {
    use super::super::whole::{Making, Whole};
    use super::*;
    use crate::meta::Meta;
    use tempfile::tempdir;

    const BLOCK: [u8; 68] = [7; 68]; // 100 bytes with its hash

    fn set_used(cache: &Cache, number: u64, seconds: u64) {
        let file = File::open(cache.block_path("a", number)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    }

    fn held(cache: &Cache) -> u64 {
        cache.entries().unwrap().iter().map(|entry| entry.bytes).sum()
    }

    fn whole(cache: &Cache, name: &str, bytes: usize) -> Result<Whole, Error> {
        let meta = Meta { bytes: None, etag: None, modified: Some(1) };
        let mut making = Making::begin(cache, name, "file.tsv", Some(bytes as u64))?;
        making.write(cache, &vec![1; bytes])?;
        making.finish(cache, &meta)
    }

    #[test]
    fn the_least_recently_used_blocks_go_and_the_bound_holds() {
        let dir = tempdir().unwrap();
        let cache = Cache::new(dir.path(), 1600);
        for number in 0..16 {
            cache.put_block("a", number, &BLOCK).unwrap();
            set_used(&cache, number, 100 + (number + 5) % 16);
            assert!(held(&cache) <= 1600);
        }
        cache.put_block("a", 99, &BLOCK).unwrap();
        assert!(held(&cache) <= 1600, "{}", held(&cache));
        assert_eq!(cache.block("a", 11, 68).unwrap(), None, "the oldest");
        assert!(cache.block("a", 10, 68).unwrap().is_some(), "the youngest");
        assert!(cache.block("a", 99, 68).unwrap().is_some());
    }

    #[test]
    fn what_another_process_put_there_counts() {
        let dir = tempdir().unwrap();
        let (one, other) = (Cache::new(dir.path(), 3200), Cache::new(dir.path(), 3200));
        for number in 0..60 {
            one.put_block("a", number, &BLOCK).unwrap();
            other.put_block("b", number, &BLOCK).unwrap();
            assert!(held(&one) <= 3200 + 2 * 200, "{}", held(&one));
        }
    }

    #[test]
    fn a_whole_object_in_use_stays_and_what_does_not_fit_beside_it_is_refused() {
        let dir = tempdir().unwrap();
        let cache = Cache::new(dir.path(), 4000);
        let pinned = whole(&cache, "one", 2500).unwrap();
        let error = whole(&cache, "two", 2000).unwrap_err().to_string();
        assert!(
            error.contains("4000") && error.contains("2512") && error.contains("allow it more"),
            "{error}"
        );
        assert!(pinned.path().exists());
        let path = pinned.path().to_owned();
        drop(pinned);
        whole(&cache, "two", 2000).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_an_interrupted_removal_left_counts_and_is_thrown_away() {
        let dir = tempdir().unwrap();
        let cache = Cache::new(dir.path(), 4000);
        let path = whole(&cache, "one", 2500).unwrap().path().to_owned();
        fs::remove_file(path.with_file_name(LABEL)).unwrap();
        assert_eq!(held(&cache), 2500);
        whole(&cache, "two", 2000).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_others_took_away_meanwhile_is_no_longer_held() {
        let dir = tempdir().unwrap();
        let fate = |kind| {
            let entry = Entry { used: (0, 0), path: dir.path().join("none"), kind, bytes: 9 };
            discard(&entry).unwrap()
        };
        assert_eq!([Kind::Block, Kind::Whole, Kind::Left].map(fate), [Fate::Gone; 3]);
        assert_eq!(fate(Kind::Part), Fate::Moved, "it may have become an object");
    }

    #[test]
    fn what_a_dead_process_was_making_is_thrown_away() {
        let dir = tempdir().unwrap();
        let cache = Cache::new(dir.path(), 4000);
        let mut making = Making::begin(&cache, "one", "f", None).unwrap();
        making.write(&cache, &[1; 3000]).unwrap();
        // As a kill would: the locks go, the files stay.
        making.abandon();
        assert!(held(&cache) >= 3000);
        whole(&cache, "two", 2000).unwrap();
        assert!(held(&cache) < 3000);
    }
}
