//! Why work of this crate ends early: one error for all of it. What a caller can do about it decides the variant, not where it came up.

use std::fmt::Display;
use std::io;
use std::path::Path;

use base::cancel::Cancelled;
use base::read::{Location, ReadError};
use base::setting::InvalidSetting;

/// Why work of this crate ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is read is not as it should be.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A setting is out of its range, or at odds with another or with the data.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// The system refuses; also what a caller's progress ends work with.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The caller cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// What was handed in does not go together, or a library refuses it.
    #[error("{0}")]
    Unfit(String),
}

impl Error {
    /// What was handed in does not go together: the whole message.
    pub fn unfit(message: impl Into<String>) -> Self {
        Self::Unfit(message.into())
    }

    /// Where it is, what is wrong with it, and what to do.
    pub fn at(place: impl Into<Location>, problem: impl Display, remedy: impl Into<String>) -> Self {
        ReadError::new(place, problem.to_string(), "", remedy).into()
    }

    /// A file is no JSON of its publisher's layout.
    pub fn json(file: &Path, error: &serde_json::Error, expected: &str) -> Self {
        let place = format!("{}: line {}, column {}", file.display(), error.line(), error.column());
        ReadError::new(place, error.to_string(), expected, "fetch the file again").into()
    }
}
