//! Why a query has no answer.

use polars::prelude::PolarsError;

/// Why a query has no answer, in words for whoever wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// What polars says, without its notes on how a plan came about.
    pub(crate) fn of(error: &PolarsError) -> Self {
        let text = error.to_string();
        Self(text.split("\n\nResolved plan until failure").next().unwrap_or(&text).trim().to_owned())
    }
}

impl From<PolarsError> for Error {
    fn from(error: PolarsError) -> Self {
        Self::of(&error)
    }
}
