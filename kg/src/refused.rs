//! Why a graph is not split, audited or measured: what was given with it does not belong to it, or is invalid.

/// What was given, what was expected, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

impl Refused {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}
