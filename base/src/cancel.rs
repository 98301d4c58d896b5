//! Cancellation, shared by all threads of a run.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asked now and then by long work whether to go on. Clones share one state.
#[derive(Clone)]
pub struct CancelToken(Source);

#[derive(Clone)]
enum Source {
    Never,
    Flag(Arc<AtomicBool>),
    Asked(Arc<dyn Fn() -> bool + Send + Sync>),
}

/// What cancelled work ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Cancelled;

impl From<Cancelled> for io::Error {
    fn from(cancelled: Cancelled) -> Self {
        // Not `ErrorKind::Interrupted`: readers take that for a signal and try again.
        Self::other(cancelled)
    }
}

impl CancelToken {
    /// Nobody cancels.
    pub const NEVER: Self = Self(Source::Never);

    /// Watches `flag`, which a signal handler may set.
    #[must_use]
    pub fn watching(flag: Arc<AtomicBool>) -> Self {
        Self(Source::Flag(flag))
    }

    /// Cancelled as soon as `asked` says so. Any thread may call it, many times a second.
    pub fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Source::Asked(Arc::new(asked)))
    }

    /// Whether the work is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        match &self.0 {
            Source::Never => false,
            Source::Flag(flag) => flag.load(Ordering::SeqCst),
            Source::Asked(asked) => asked(),
        }
    }

    /// Fails once the work is cancelled.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    /// The same, but asks only at every 65,536th step: loops of a few nanoseconds would otherwise do little else.
    ///
    /// # Errors
    /// [`Cancelled`].
    #[inline]
    pub fn check_at(&self, step: usize) -> Result<(), Cancelled> {
        if step.is_multiple_of(1 << 16) { self.check() } else { Ok(()) }
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("CancelToken").field(&self.is_cancelled()).finish()
    }
}
