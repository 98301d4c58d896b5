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

/// Where a file is that lies in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// On this machine, or nowhere yet: at this path.
    Here(PathBuf),
    /// Not on this machine, and its contents are said to be these.
    Said(Digest),
}

/// The files that stages read from stores, by the paths that stand for them or have stood for them.
pub(crate) trait Elsewhere: Send + Sync {
    /// Where the file is that `path` stands for; nothing for one that lies in no store.
    fn find(&self, path: &Path) -> Option<Whereabouts>;

    /// Brings the files of which contents are said; they are here then, and stay where they are. `begin` is told where each comes from whose bytes begin to come.
    ///
    /// # Errors
    /// When one cannot be brought, or is not what was said.
    fn bring(&self, paths: &[PathBuf], begin: &dyn Fn(&str)) -> anyhow::Result<()>;

    /// What is to be told of the file, once.
    fn news(&self, path: &Path) -> Option<Told>;

    /// What tells the file from all others, whether it is here or not. Not for showing.
    fn identity(&self, path: &Path) -> Option<String>;
}
