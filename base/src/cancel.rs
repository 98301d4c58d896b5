//! The wish to stop, shared by all threads of a run. Knows neither signals nor stages.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that, once set, makes every stage stop at its next check.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<AtomicBool>);

/// The error with which a stage ends when it is asked to stop.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Cancelled;

impl From<Cancelled> for io::Error {
    fn from(cancelled: Cancelled) -> Self {
        // Not `ErrorKind::Interrupted`: readers take that for a signal and try again.
        Self::other(cancelled)
    }
}

impl Cancel {
    /// Watches `flag`, which a signal handler may set.
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// A flag that nobody has set.
    pub fn unset() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    /// Asks everybody to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether somebody asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Fails once somebody asked to stop.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_set() { Err(Cancelled) } else { Ok(()) }
    }
}
