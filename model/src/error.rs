//! The one error of this crate.

use std::path::{Path, PathBuf};

use base::read::ReadError;
use base::setting::InvalidSetting;

/// Why a model cannot be read, built, trained or asked. Callers tell it to people and act on none of its kinds, so what does not fit is a sentence that
/// says where, what and what to do; only what other crates say keeps its type.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that is not what it should be.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file that the system does not read or write.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A setting that is out of its range.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// What was given, or what came of it, does not fit the model.
    #[error("{0}")]
    Misfit(String),
    /// The tensor library failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
    /// What others measure for a search failed.
    #[error(transparent)]
    Measure(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// A file that the system does not read or write.
    pub(crate) fn file(path: &Path) -> impl Fn(std::io::Error) -> Self + Copy {
        move |source| Error::File { path: path.to_path_buf(), source }
    }
}
