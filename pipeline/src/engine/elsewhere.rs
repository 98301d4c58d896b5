//! Outside files that lie in stores: known by what their servers say of them before their bytes are here.

use std::path::{Path, PathBuf};

use super::digest::Digest;

/// What somebody says of the contents of a file in a state that its server tells from all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The name of the state, the same on every machine.
    pub state: String,
    pub contents: Digest,
}

/// The files that stages read from stores, by the paths that stand for them.
pub(crate) trait Elsewhere: Send + Sync {
    /// The contents of the file that `path` stands for, if it is not here and somebody has said what they are.
    fn said(&self, path: &Path) -> Option<Digest>;

    /// Brings the files of which that is so; their paths are others then. `begin` is told where each comes from whose bytes begin to come.
    ///
    /// # Errors
    /// When one cannot be brought, or is not what was said.
    fn bring(&self, paths: &[PathBuf], begin: &dyn Fn(&str)) -> anyhow::Result<()>;

    /// What is to be told of the file at `path`, once.
    fn news(&self, path: &Path) -> Option<Told>;

    /// Where the file that `path` stands for comes from, whether it is here or not.
    fn origin(&self, path: &Path) -> Option<String>;
}
