//! Why the engine refuses: the place, what is wrong there, and what to do, in one sentence.

use std::io;
use std::path::Path;

/// What no caller tells apart by its kind: whoever gets it shows it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Error(String);

impl Error {
    /// An error that says `text`.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The file system refused `path`.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self(format!("{}: {cause}", path.display()))
    }
}

impl From<super::lock::Refused> for Error {
    fn from(refused: super::lock::Refused) -> Self {
        Self(refused.to_string())
    }
}
