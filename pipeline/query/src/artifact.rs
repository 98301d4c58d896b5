//! What is in an output folder, as its ledger tells it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A finished artifact.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// The stage that made it.
    pub stage: String,
    /// Where its files are.
    pub folder: PathBuf,
    /// Its files.
    pub files: Vec<File>,
    /// The digest of all its files.
    pub digest: String,
    /// The digests of the artifacts that it was made of, by stage.
    pub inputs: BTreeMap<String, String>,
    /// The digest of what made it.
    pub fingerprint: String,
    /// When, in milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// How long that took.
    pub seconds: f64,
    /// Which version of engraft.
    pub engraft: String,
}

/// A file of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path within the artifact, with `/`.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// The digest of its contents.
    pub blake3: String,
}

/// Says why a file must not be read, if it must not. It is called before the file is opened, by any thread.
#[derive(Clone)]
pub struct Check(Arc<Verify>);

type Verify = dyn Fn(&Path, &File) -> Result<(), String> + Send + Sync;

impl Check {
    /// A check by `verify`.
    pub fn new(verify: impl Fn(&Path, &File) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(verify))
    }

    pub(crate) fn verify(&self, path: &Path, file: &File) -> Result<(), String> {
        (self.0)(path, file)
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Check")
    }
}
