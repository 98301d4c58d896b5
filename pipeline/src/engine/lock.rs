//! One runner at a time in an output folder. The lock belongs to the open file, so the system frees it however the process ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Held while a run may write; freed when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

/// The lock cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// Somebody else holds it.
    #[error(
        "another engraft ({holder}) is running in {}: wait for it to end, stop it, or choose another folder with --out",
        .folder.display()
    )]
    Held {
        /// The output folder.
        folder: PathBuf,
        /// What is known of the holder, such as `process 4711`.
        holder: String,
    },
    /// The file system refused.
    #[error("{}: the run lock cannot be taken: {cause}", .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the file system said.
        cause: io::Error,
    },
}

impl Lock {
    /// Takes the lock `path`, whose folder is made if need be, and writes this process's number into it.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn take(path: &Path) -> Result<Self, Refused> {
        let io = |cause| Refused::Io { path: path.to_owned(), cause };
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(io)?;
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(cause)) => return Err(io(cause)),
            Err(TryLockError::WouldBlock) => {
                return Err(Refused::Held { folder: folder.to_owned(), holder: holder(&mut file) });
            }
        }
        // The number only helps a second runner's message, so a full disk must not stop the first one here.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Self { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would not do while a process that is being started still shares the open file.
        let _ = self.file.unlock();
    }
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        _ => "of unknown process number".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::tempdir;

    #[test]
    fn the_second_is_told_who_is_first_and_a_lock_left_behind_does_not_hold() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("out/.lock");
        let first = Lock::take(&path).unwrap();
        let error = Lock::take(&path).unwrap_err().to_string();
        assert!(
            error.contains(&format!("process {}", std::process::id())) && error.contains("--out"),
            "{error}"
        );
        drop(first);
        assert!(path.exists());
        Lock::take(&path).unwrap();
    }
}
