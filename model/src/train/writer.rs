//! States written by a thread of its own while training goes on.

use std::path::Path;
use std::thread::{Builder, JoinHandle};
use std::{fs, io};

use super::state::Snapshot;
use crate::Error;

/// What writes states, one at a time.
#[derive(Debug, Default)]
pub struct Writer {
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Writer {
    /// Has a state written, once the one before is.
    ///
    /// # Errors
    /// When the one before could not be written, or the system gives no thread.
    pub fn write(&mut self, snapshot: Snapshot) -> Result<(), Error> {
        self.wait()?;
        self.thread = Some(thread("engraft-state", move || snapshot.write())?);
        Ok(())
    }

    /// Waits until nothing is being written; says whether a state has become whole meanwhile.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn wait(&mut self) -> Result<bool, Error> {
        let Some(thread) = self.thread.take() else { return Ok(false) };
        joined(thread).map(|()| true)
    }
}

/// Makes the folder of a state if it is missing, and only it: where the one around it is gone, somebody has removed what the state belongs to.
pub(super) fn make(dir: &Path) -> Result<(), Error> {
    match fs::create_dir(dir) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => Err(Error::file(dir)(source)),
        _ => Ok(()),
    }
}

/// A thread that writes.
pub(super) fn thread<T: Send + 'static>(
    name: &str,
    write: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<JoinHandle<Result<T, Error>>, Error> {
    Builder::new().name(name.to_owned()).spawn(write).map_err(|error| {
        Error::Misfit(format!(
            "the system gives no thread that writes checkpoints ({error}); end other programs"
        ))
    })
}

/// What such a thread has written.
pub(super) fn joined<T>(thread: JoinHandle<Result<T, Error>>) -> Result<T, Error> {
    thread.join().unwrap_or_else(|_| {
        Err(Error::Misfit("the thread that writes checkpoints panicked; report what it said".to_owned()))
    })
}

impl Drop for Writer {
    /// Whoever goes before its end leaves no thread behind that writes into a folder which may be somebody else's by then.
    fn drop(&mut self) {
        let _written = self.wait();
    }
}
