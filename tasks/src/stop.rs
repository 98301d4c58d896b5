//! The wish that something long stop. Knows no signal and no clock.

use std::fmt;
use std::sync::Arc;

/// Asked now and then whether to go on.
#[derive(Clone)]
pub struct Stop(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

/// What long work ends with when it is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Stopped;

impl Stop {
    /// Nobody asks.
    pub const NEVER: Self = Self(None);

    /// Asked for as soon as `asked` says so. Any thread may call it, many times a second.
    pub fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(asked)))
    }

    /// Fails once somebody asks.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        if self.0.as_ref().is_some_and(|asked| asked()) { Err(Stopped) } else { Ok(()) }
    }

    /// The same, but looks only at every 65,536th step.
    #[inline]
    pub(crate) fn check_at(&self, step: usize) -> Result<(), Stopped> {
        if step.is_multiple_of(1 << 16) { self.check() } else { Ok(()) }
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(if self.0.is_some() { "Stop::when" } else { "Stop::NEVER" })
    }
}
