//! States written by a thread of its own while training goes on.

use std::thread::{Builder, JoinHandle};

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
        let thread = Builder::new().name("engraft-state".to_owned()).spawn(move || snapshot.write());
        self.thread = Some(thread.map_err(|error| {
            Error::Misfit(format!(
                "the system gives no thread that writes states ({error}); end other programs"
            ))
        })?);
        Ok(())
    }

    /// Waits until nothing is being written; says whether a state has become whole meanwhile.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn wait(&mut self) -> Result<bool, Error> {
        let Some(thread) = self.thread.take() else { return Ok(false) };
        match thread.join() {
            Ok(written) => written.map(|()| true),
            Err(_) => {
                Err(Error::Misfit("the thread that writes states panicked; report what it said".to_owned()))
            }
        }
    }
}

impl Drop for Writer {
    /// Whoever goes before its end leaves no thread behind that writes into a folder which may be somebody else's by then.
    fn drop(&mut self) {
        let _written = self.wait();
    }
}
