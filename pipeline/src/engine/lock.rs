//! Who works in an output folder. Runs of the same settings share it, stage by stage: one makes a stage, others wait for it or read what it made.
//! Whoever removes or verifies has the folder alone. A lock belongs to the open file, so the system frees it however the process ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use base::cancel::{CancelToken, Cancelled};

use super::digest::Digest;

/// How long it takes until a lock that somebody else holds is tried again.
const AGAIN: Duration = Duration::from_millis(50);
/// How often it is tried before the holder is believed to be none that can be joined: what it writes may take seconds to be seen elsewhere.
const TRIES: u32 = 60;

/// Held while a process may write, or reads what must stay; freed when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    file: File,
}

/// Whether other runs are at work in the same folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    Alone,
    Others,
}

/// What a lock of a stage is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// Its artifact may be replaced.
    Making,
    /// Its artifact must stay as it is.
    Reading,
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
    /// A run of other settings or inputs holds it.
    #[error(
        "another engraft ({holder}) is running in {} with other settings or inputs than these: give both the same, wait for it to end, stop it, or choose another folder with --out",
        .folder.display()
    )]
    Differs {
        /// The output folder.
        folder: PathBuf,
        /// What is known of the holder.
        holder: String,
    },
    /// Somebody asks to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The file system refused.
    #[error("{}: the lock cannot be taken: {cause}", .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the file system said.
        cause: io::Error,
    },
}

impl Lock {
    /// Takes the lock `path`, whose folder is made if need be, for this process alone, and writes its number into it.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn take(path: &Path) -> Result<Self, Refused> {
        let mut lock = Self::open(path)?;
        if !lock.is_ours(For::Making)? {
            return Err(Refused::Held { folder: lock.folder(), holder: lock.holder() });
        }
        lock.sign("");
        Ok(lock)
    }

    /// Takes the lock `path` for a run of these settings: alone, or beside other runs of the same. A run that begins is waited for.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn join(path: &Path, of: &Digest, cancel: &CancelToken) -> Result<(Self, Company), Refused> {
        let (mut lock, settings) = (Self::open(path)?, of.to_string());
        let mut tries = 0;
        loop {
            if lock.is_ours(For::Making)? {
                lock.sign(&settings);
                return Ok((lock, Company::Alone));
            }
            let (folder, holder) = (lock.folder(), lock.holder());
            match lock.read().split_once('\n') {
                Some((_, theirs)) if theirs == settings => {
                    if lock.is_ours(For::Reading)? {
                        lock.sign(&settings);
                        return Ok((lock, Company::Others));
                    }
                }
                // It may just be about to say who it is.
                _ if tries < TRIES => tries += 1,
                Some(_) => return Err(Refused::Differs { folder, holder }),
                None => return Err(Refused::Held { folder, holder }),
            }
            pause(cancel)?;
        }
    }

    /// Lets other runs of the same settings in. One that comes just now may have it alone for a moment, and is waited for.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn share(&mut self, cancel: &CancelToken) -> Result<(), Refused> {
        let io = |cause| Refused::Io { path: self.path.clone(), cause };
        self.file.unlock().map_err(io)?;
        while !self.is_ours(For::Reading)? {
            pause(cancel)?;
        }
        Ok(())
    }

    /// Whether no other run is left, which then cannot come in any more.
    pub(crate) fn is_last(&mut self) -> bool {
        self.file.unlock().is_ok() && self.is_ours(For::Making).is_ok_and(|ours| ours)
    }

    /// Waits for the lock of a stage; `wait` is told once, if it takes longer, of whoever holds it.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn of_stage(
        path: &Path,
        what: For,
        cancel: &CancelToken,
        wait: &mut dyn FnMut(&str),
    ) -> Result<Self, Refused> {
        let mut lock = Self::open(path)?;
        let mut tries = 0;
        while !lock.is_ours(what)? {
            tries += 1;
            // Whoever only looks whether it is free has let go by then.
            if tries == 3 {
                wait(&lock.holder());
            }
            pause(cancel)?;
        }
        if what == For::Making {
            lock.sign("");
        }
        Ok(lock)
    }

    /// The lock of a stage, if nobody else holds it.
    pub(crate) fn try_of_stage(path: &Path) -> Option<Self> {
        let lock = Self::open(path).ok()?;
        lock.is_ours(For::Making).ok()?.then_some(lock)
    }

    fn open(path: &Path) -> Result<Self, Refused> {
        let io = |cause| Refused::Io { path: path.to_owned(), cause };
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(io)?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        Ok(Self { path: path.to_owned(), file })
    }

    fn is_ours(&self, what: For) -> Result<bool, Refused> {
        let tried = match what {
            For::Making => self.file.try_lock(),
            For::Reading => self.file.try_lock_shared(),
        };
        match tried {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(cause)) => Err(Refused::Io { path: self.path.clone(), cause }),
        }
    }

    fn folder(&self) -> PathBuf {
        self.path.parent().unwrap_or(Path::new(".")).to_owned()
    }

    /// Writes who holds it, and with which settings. The number only helps others' messages, so a full disk must not stop this process here.
    fn sign(&mut self, settings: &str) {
        let text = format!("{}{}{settings}", std::process::id(), if settings.is_empty() { "" } else { "\n" });
        let _ = self
            .file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| self.file.write_all(text.as_bytes()));
    }

    fn read(&mut self) -> String {
        let mut text = String::new();
        let read = self.file.rewind().and_then(|()| self.file.read_to_string(&mut text));
        read.map_or_else(|_| String::new(), |_| text)
    }

    fn holder(&mut self) -> String {
        match self.read().lines().next().map(str::trim).filter(|number| !number.is_empty()) {
            Some(number) => format!("process {number}"),
            None => "of unknown process number".to_owned(),
        }
    }
}

/// Waits until a lock is to be tried again. Who waits inside the system for a lock does not hear that somebody asks to stop.
#[expect(clippy::disallowed_methods, reason = "the system does not tell that a lock is free")]
fn pause(cancel: &CancelToken) -> Result<(), Cancelled> {
    cancel.check()?;
    thread::sleep(AGAIN);
    Ok(())
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would not do while a process that is being started still shares the open file.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

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

    #[test]
    fn runs_of_the_same_settings_share_a_folder_and_others_do_not() {
        let dir = tempdir().unwrap();
        let path = dir.path().join(".lock");
        let (same, other) = (Digest::of(b"same"), Digest::of(b"other"));
        let join = |of| Lock::join(&path, of, &CancelToken::NEVER);
        let (mut first, company) = join(&same).unwrap();
        assert_eq!(company, Company::Alone);
        first.share(&CancelToken::NEVER).unwrap();
        let (mut second, company) = join(&same).unwrap();
        assert_eq!(company, Company::Others);
        let refused = join(&other).unwrap_err().to_string();
        assert!(refused.contains("with other settings or inputs") && refused.contains("--out"), "{refused}");
        assert!(matches!(Lock::take(&path), Err(Refused::Held { .. })));
        assert!(!second.is_last());
        drop(second);
        assert!(first.is_last());
        drop(first);
        assert_eq!(join(&other).unwrap().1, Company::Alone);
    }

    #[test]
    fn a_stage_that_is_read_is_waited_for_and_who_waits_can_be_stopped() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("counts");
        let of = |what, cancel: &CancelToken, told: &mut Vec<String>| {
            Lock::of_stage(&path, what, cancel, &mut |holder| told.push(holder.to_owned()))
        };
        let mut told = Vec::new();
        let one = of(For::Reading, &CancelToken::NEVER, &mut told).unwrap();
        let two = of(For::Reading, &CancelToken::NEVER, &mut told).unwrap();
        let asked = Arc::new(AtomicU32::new(0));
        let stop = CancelToken::when(move || asked.fetch_add(1, Ordering::SeqCst) % 5 == 4);
        assert!(matches!(of(For::Making, &stop, &mut told), Err(Refused::Cancelled(_))));
        assert_eq!(told.len(), 1);
        assert!(Lock::try_of_stage(&path).is_none());
        drop((one, two));
        let making = of(For::Making, &CancelToken::NEVER, &mut told).unwrap();
        assert!(matches!(of(For::Reading, &stop, &mut told), Err(Refused::Cancelled(_))));
        assert_eq!(told[1], format!("process {}", std::process::id()));
        drop(making);
        assert!(Lock::try_of_stage(&path).is_some());
    }
}
