//! A folder that takes the place of another as a whole: at any moment, whoever looks sees the old one or the new one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base::whole::{aside, exchange, folder, sync_folder};

use super::digests::DIGESTS_FILE;
use crate::Error;

/// Makes a folder with `fill` and puts it where `dir` is or will be. Files of the old folder come along but for its digests, and lie there for
/// `fill` to replace. Both folders lie side by side meanwhile, so the one around `dir` must be writable.
///
/// The exchange is one step of the kernel. Where the file system lacks it, the old folder is moved away first: a crash just then leaves it
/// beside its place, and the new one too.
///
/// # Errors
/// What `fill` says, or the file that the system refuses; `dir` is then as it was.
pub(crate) fn replace(dir: &Path, fill: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
    let place = resolved(dir);
    let work = beside(&place);
    remove_leftovers(&place)?;
    fs::create_dir_all(&work).map_err(Error::file(&work))?;
    let filled =
        take_along(&place, &work).map_err(Error::file(&place)).and_then(|()| fill(&work)).and_then(|()| {
            // The files are on the disk already; their names must be, before the folder gets the name that others read.
            sync_folder(&work).map_err(Error::file(&work))?;
            exchange(&work, &place).map_err(|(path, source)| Error::File { path, source })
        });
    let cleared = remove_leftovers(&place);
    filled.and(cleared)
}

/// Removes what a crash left beside a folder that was being replaced, if anything. Where the file system has no exchange and the crash came
/// between the two moves, the old folder goes back to its place.
///
/// # Errors
/// Names what cannot be removed.
pub fn remove_leftovers(dir: &Path) -> Result<(), Error> {
    let place = resolved(dir);
    let new = beside(&place);
    let old = aside(&new);
    // Before anything is removed: until it is back, the old folder is the only whole one.
    if !place.exists() && old.exists() {
        fs::rename(&old, &place).map_err(Error::file(&place))?;
    }
    for path in [new, old] {
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(Error::File { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The folder itself where `dir` is a link or has no name of its own, as `.` has none.
fn resolved(dir: &Path) -> PathBuf {
    fs::canonicalize(dir).unwrap_or_else(|_| dir.to_path_buf())
}

/// A name next to the folder's own; such that begin with `.tmp` may be deleted by whoever finds them after a crash.
fn beside(dir: &Path) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    folder(dir).join(format!(".tmp-{name}-new"))
}

/// Gives files of `old` a second name in `new`: writing there makes new ones, and leaves these.
fn take_along(old: &Path, new: &Path) -> io::Result<()> {
    if !old.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(old)? {
        let entry = entry?;
        let target = new.join(entry.file_name());
        // Old digests beside new files would call them damaged; `fill` writes new ones, last of all.
        if entry.file_name() == DIGESTS_FILE {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            take_along(&entry.path(), &target)?;
        } else if fs::symlink_metadata(&target).is_err() {
            fs::hard_link(entry.path(), &target).or_else(|_| fs::copy(entry.path(), &target).map(|_| ()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::whole::write as put;
    use super::*;

    fn write(dir: &Path, text: &str) -> Result<(), Error> {
        put(&dir.join("a"), text.as_bytes())
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_crash_at_any_moment_leaves_the_old_or_the_new_folder_whole() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("model");
        let text = || fs::read_to_string(dir.join("a")).unwrap();
        replace(&dir, |work| write(work, "first")).unwrap();
        assert_eq!((text(), names(root.path())), ("first".to_owned(), vec!["model".to_owned()]));
        // While the new one is being written: a panic stands for the crash, nothing is cleared away.
        let crash = std::panic::catch_unwind(|| {
            replace(&dir, |work| {
                write(work, "half").unwrap();
                panic!("crash")
            })
        });
        assert!(crash.is_err() && text() == "first");
        assert_eq!(names(root.path()), [".tmp-model-new", "model"]);
        // Between the exchange and the removal of the old one.
        put(&root.path().join(".tmp-model-new/stale"), b"").unwrap();
        replace(&dir, |work| write(work, "second")).unwrap();
        assert_eq!((text(), names(root.path())), ("second".to_owned(), vec!["model".to_owned()]));
        assert_eq!(names(&dir), ["a"]);
        // Without an exchange: the old one was moved away and the new one not yet in.
        fs::rename(&dir, root.path().join(".tmp-model-new.old")).unwrap();
        remove_leftovers(&dir).unwrap();
        assert_eq!((text(), names(root.path())), ("second".to_owned(), vec!["model".to_owned()]));
    }

    #[test]
    fn an_error_leaves_everything_and_other_files_come_along() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("model");
        fs::create_dir_all(dir.join("notes")).unwrap();
        put(&dir.join("notes/mine"), b"years").unwrap();
        put(&dir.join("vocab.txt"), b"words").unwrap();
        replace(&dir, |work| write(work, "one")).unwrap();
        let path = dir.join("refused");
        let source = io::Error::other("no room");
        let refused = replace(&dir, |work| {
            write(work, "two")?;
            Err(Error::File { path, source })
        });
        assert!(refused.unwrap_err().to_string().contains("no room"));
        assert_eq!(fs::read(dir.join("notes/mine")).unwrap(), b"years");
        assert_eq!(names(&dir), ["a", "notes", "vocab.txt"]);
        assert_eq!(names(root.path()), ["model"]);
        assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "one");
        // A file in the folder's place is no folder of ours.
        let file = root.path().join("file");
        put(&file, b"mine").unwrap();
        assert!(replace(&file, |work| write(work, "x")).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"mine");
    }
}
