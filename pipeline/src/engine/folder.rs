//! Files and folders that appear whole: listing, sealing, and swapping a finished folder into place.

use std::fs::{self, File};
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;

use base::cancel::CancelToken;
use base::whole::{Between, exchange, exchange_by_renames};
use serde::{Deserialize, Serialize};

use super::digest::{Digest, each};
use super::error::Error;
use super::fault::{Faults, Point};
use super::memo::{Known, Stamp};

/// One file of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Output {
    /// Where it lies within the artifact, with `/` between the parts.
    pub path: String,
    pub bytes: u64,
    /// The digest of its contents.
    pub blake3: Digest,
}

/// What is said of a file whose contents are not its digest's.
pub(crate) fn altered(path: &Path) -> String {
    format!(
        "{}: its contents are not those that the ledger names: it is damaged, or a run is replacing it just now; \
         `engraft verify` tells what differs, `engraft run` makes it again",
        path.display()
    )
}

/// The files below `folder`, as sorted relative paths with `/` between the parts. Folders that links point to are not
/// entered; links are refused.
///
/// # Errors
/// When the file system refuses, or the folder holds what no artifact may hold.
pub(crate) fn list(folder: &Path) -> Result<Vec<String>, Error> {
    let mut files = Vec::new();
    visit(folder, "", Links::Refuse, &mut files)?;
    files.sort();
    Ok(files)
}

/// As [`list`], for folders of the user's own: links are followed.
///
/// # Errors
/// When the file system refuses, or the folder holds what no artifact may hold.
pub(crate) fn list_following(folder: &Path) -> Result<Vec<String>, Error> {
    let mut files = Vec::new();
    visit(folder, "", Links::Follow, &mut files)?;
    files.sort();
    Ok(files)
}

#[derive(Clone, Copy, PartialEq)]
enum Links {
    Follow,
    Refuse,
}

fn visit(folder: &Path, prefix: &str, links: Links, files: &mut Vec<String>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::at(folder))? {
        let entry = entry.map_err(Error::at(folder))?;
        let path = entry.path();
        let mut kind = entry.file_type().map_err(Error::at(&path))?;
        if kind.is_symlink() && links == Links::Follow {
            kind = fs::metadata(&path).map_err(Error::at(&path))?.file_type();
        }
        let name = entry
            .file_name()
            .into_string()
            .map_err(|_| Error::new(format!("the name of {} is not UTF-8: rename it", path.display())))?;
        if kind.is_dir() {
            visit(&path, &format!("{prefix}{name}/"), links, files)?;
        } else if kind.is_file() {
            files.push(format!("{prefix}{name}"));
        } else {
            return Err(Error::new(format!(
                "{} is neither a file nor a folder: an artifact holds nothing else",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Brings every file and folder below `folder` safely to disk and digests the files, in the order of [`list`].
///
/// # Errors
/// When the file system refuses, or the folder holds what no artifact may hold.
pub(crate) fn seal(
    folder: &Path,
    jobs: NonZeroUsize,
    cancel: &CancelToken,
) -> Result<Vec<(Output, Known)>, Error> {
    let files = list(folder)?;
    let sealed = each(&files, jobs, |file| seal_file(folder, file, cancel));
    sync_tree(folder)?;
    sealed.into_iter().collect()
}

fn seal_file(folder: &Path, file: &str, cancel: &CancelToken) -> Result<(Output, Known), Error> {
    let path = folder.join(file);
    let sealed = || -> io::Result<(Output, Known)> {
        File::open(&path)?.sync_all()?;
        let stamp = Stamp::of(&path)?;
        let digest = Digest::of_file(&path, cancel)?;
        let bytes = fs::metadata(&path)?.len();
        Ok((Output { path: file.to_owned(), bytes, blake3: digest }, Known::read(digest, stamp)))
    };
    sealed().map_err(Error::at(&path))
}

/// Brings every folder below `folder` safely to disk, and itself.
pub(super) fn sync_tree(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::at(folder))? {
        let entry = entry.map_err(Error::at(folder))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            sync_tree(&entry.path())?;
        }
    }
    sync(folder)
}

/// Brings the entries of `folder` itself safely to disk.
///
/// # Errors
/// When the file system refuses, or the folder holds what no artifact may hold.
pub(crate) fn sync(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|opened| opened.sync_all()).map_err(Error::at(folder))
}

/// The digest of a whole artifact: of its files' paths and contents.
pub(crate) fn digest(outputs: &[Output]) -> Digest {
    let mut hasher = blake3::Hasher::new();
    for output in outputs {
        hasher.update(&(output.path.len() as u64).to_le_bytes());
        hasher.update(output.path.as_bytes());
        hasher.update(output.blake3.to_string().as_bytes());
    }
    Digest::from(hasher.finalize())
}

/// Puts the finished folder `new` where `place` is or will be; see [`exchange`].
///
/// # Errors
/// When the file system refuses, or the folder holds what no artifact may hold.
pub(crate) fn swap(new: &Path, place: &Path) -> Result<(), Error> {
    exchange(new, place).map_err(|(path, cause)| Error::at(&path)(cause))
}

/// The same for the artifact of `stage`, dying where `faults` says.
///
/// # Errors
/// As [`swap`].
pub(super) fn swap_in(new: &Path, place: &Path, stage: &str, faults: &Faults) -> Result<(), Error> {
    if !faults.renames(stage) || !place.exists() {
        return swap(new, place);
    }
    let mut at = |between| {
        faults.pass(
            stage,
            match between {
                Between::Aside => Point::Aside,
                Between::Placed => Point::Placed,
            },
        );
    };
    exchange_by_renames(new, place, &mut at).map_err(|(path, cause)| Error::at(&path)(cause))
}

/// Removes the folder and everything in it; one that is not there is no error.
///
/// # Errors
/// When the file system refuses, or the folder holds what no artifact may hold.
pub(crate) fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::at(folder)(error)),
        _ => Ok(()),
    }
}

/// Removes what a kill left of files that were being written whole: `tempfile` names them `.tmp` and some letters.
///
/// # Errors
/// When the file system refuses, or the folder holds what no artifact may hold.
pub(crate) fn drop_temporaries(folder: &Path) -> Result<(), Error> {
    for file in list(folder)? {
        if file.rsplit('/').next().is_some_and(|name| name.starts_with(".tmp")) {
            let path = folder.join(file);
            fs::remove_file(&path).map_err(Error::at(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use base::whole::write_with_folder;
    use tempfile::tempdir;

    use super::*;

    #[test]
    fn a_swap_exchanges_the_folders_whole() {
        let dir = tempdir().unwrap();
        let (new, place) = (dir.path().join("new"), dir.path().join("place"));
        write_with_folder(&new.join("f"), b"1").unwrap();
        swap(&new, &place).unwrap();
        assert!(!new.exists());
        write_with_folder(&new.join("g"), b"2").unwrap();
        swap(&new, &place).unwrap();
        assert_eq!(
            (list(&place).unwrap(), list(&new).unwrap()),
            (vec!["g".to_owned()], vec!["f".to_owned()])
        );
    }

    #[test]
    fn files_are_listed_sorted_with_their_folders() {
        let dir = tempdir().unwrap();
        for file in ["b", "a/z", "a/y", "c/d/e"] {
            write_with_folder(&dir.path().join(file), b"").unwrap();
        }
        assert_eq!(list(dir.path()).unwrap(), ["a/y", "a/z", "b", "c/d/e"]);
    }

    #[test]
    fn the_digest_of_an_artifact_depends_on_names_and_contents() {
        let output = |path: &str, text: &str| Output {
            path: path.to_owned(),
            bytes: 0,
            blake3: Digest::of(text.as_bytes()),
        };
        let base = digest(&[output("a", "1"), output("b", "2")]);
        assert_eq!(base, digest(&[output("a", "1"), output("b", "2")]));
        assert_ne!(base, digest(&[output("a", "2"), output("b", "1")]));
        assert_ne!(base, digest(&[output("a", "1"), output("c", "2")]));
    }
}
