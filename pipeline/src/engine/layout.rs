//! Where things lie in the output folder. The only place that knows these names.

use std::path::{Path, PathBuf};

use super::digest::Digest;

/// What the name of a folder ends with that is being removed.
pub(super) const GONE: &str = ".gone";

/// The output folder of a run: `STAGE/` holds artifacts, `ledger.jsonl` what made them, `live/` leads to what is being made, dot names hold the rest.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    out: PathBuf,
}

impl Layout {
    /// The layout of the folder `out`.
    pub(crate) fn new(out: impl Into<PathBuf>) -> Self {
        Self { out: out.into() }
    }

    /// The output folder.
    pub(crate) fn out(&self) -> &Path {
        &self.out
    }

    /// The folder of a stage's artifact.
    pub(crate) fn artifact(&self, stage: &str) -> PathBuf {
        self.out.join(stage)
    }

    /// The folder of all work folders.
    pub(crate) fn works(&self) -> PathBuf {
        self.out.join(".work")
    }

    /// The private folder in which a stage with this fingerprint works.
    pub(crate) fn work(&self, stage: &str, fingerprint: &Digest) -> PathBuf {
        self.works().join(format!("{stage}-{}", fingerprint.stem()))
    }

    /// The folder that a finished work folder passes through on its way to the artifact. It is never resumed, because
    /// after the swap it holds the artifact of an older run.
    pub(crate) fn done(&self, stage: &str, fingerprint: &Digest) -> PathBuf {
        self.works().join(format!("{stage}-{}.done", fingerprint.stem()))
    }

    /// The folder that an artifact of the depot is downloaded to. It is never resumed.
    pub(crate) fn pulled(&self, stage: &str, fingerprint: &Digest) -> PathBuf {
        self.works().join(format!("{stage}-{}.pulled", fingerprint.stem()))
    }

    /// The page about the whole folder. It is no artifact.
    pub(crate) fn page(&self) -> PathBuf {
        self.out.join("index.html")
    }

    /// The folder of the artifacts that later ones have replaced.
    pub(crate) fn kept(&self) -> PathBuf {
        self.out.join(".kept")
    }

    /// Where an artifact with these contents is kept once another one has replaced it.
    pub(crate) fn kept_as(&self, stage: &str, artifact: &Digest) -> PathBuf {
        self.kept().join(format!("{stage}-{}", artifact.stem()))
    }

    /// The folder that the kept folder `name` passes through on its way out, so that half of one is never found among the whole.
    pub(crate) fn gone(&self, name: &str) -> PathBuf {
        self.works().join(format!("{name}{GONE}"))
    }

    /// The folder in which a running stage shows the files that grow.
    pub(crate) fn live(&self) -> PathBuf {
        self.out.join("live")
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.out.join("ledger.jsonl")
    }

    /// Where the stages come from whose artifacts these are.
    pub(crate) fn origin(&self) -> PathBuf {
        self.out.join(".config.json")
    }

    /// The line of a finished run whose artifact is being put in place.
    pub(crate) fn pending(&self, stage: &str) -> PathBuf {
        self.out.join(format!(".finished-{stage}.json"))
    }

    /// The lock that a running engine holds.
    pub(crate) fn lock(&self) -> PathBuf {
        self.out.join(".lock")
    }

    /// The lock of a stage: held by whoever makes it, and by all who read what it made.
    pub(crate) fn stage_lock(&self, stage: &str) -> PathBuf {
        self.stage_locks().join(stage)
    }

    /// The folder of the locks of stages, there while somebody runs.
    pub(crate) fn stage_locks(&self) -> PathBuf {
        self.out.join(LOCKS)
    }

    /// The remembered digests.
    pub(crate) fn memo(&self) -> PathBuf {
        self.cache().join("digests.json")
    }

    /// The folder of the remembered digests.
    pub(crate) fn cache(&self) -> PathBuf {
        self.out.join(".cache")
    }
}

/// The folder of the locks of stages, in an output folder.
const LOCKS: &str = ".locks";

/// The lock under which lines are appended to a ledger beside other runs. No stage has such a name.
pub(super) fn ledger_lock(ledger: &Path) -> PathBuf {
    ledger.with_file_name(LOCKS).join(".ledger")
}

/// The stage to which the entry `name` of the folder of work folders, or of kept ones, belongs, and whether a work folder may be resumed.
pub(crate) fn owner(name: &str) -> Option<(&str, Resumable)> {
    let (stage, rest) = name.rsplit_once('-')?;
    let hex = rest.get(..16).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some((stage, if rest.len() == hex.len() { Resumable::Yes } else { Resumable::No }))
}

/// Whether a work folder may be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumable {
    Yes,
    No,
}
