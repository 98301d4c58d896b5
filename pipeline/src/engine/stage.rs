//! What a stage is: a name, a version, a description of its settings, its inputs and the work.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::context::Context;
use super::describe::Describe;
use super::licence::Licence;
use super::ranks::Joined;

/// One thing that a stage reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A file, or a folder with everything below it, that no stage makes. Only the label and the contents enter the
    /// fingerprint, so data may move to another place without a rerun.
    File {
        /// What the stage calls it, such as `MRCONSO`; unique within the stage.
        label: String,
        /// Where it lies.
        path: PathBuf,
    },
    /// The artifact of another stage, by that stage's name.
    Artifact(String),
}

impl Input {
    /// The outside file or folder at `path`, called `label`.
    pub(crate) fn file(label: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self::File { label: label.into(), path: path.into() }
    }

    /// The artifact of the stage `name`.
    pub(crate) fn artifact(name: impl Into<String>) -> Self {
        Self::Artifact(name.into())
    }

    /// Where it lies, if no stage makes it.
    pub(crate) fn outside(self) -> Option<PathBuf> {
        match self {
            Self::File { path, .. } => Some(path),
            Self::Artifact(_) => None,
        }
    }
}

/// Whether what a stage left in its work folder outlives an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// The work folder is wiped: the next run starts from nothing.
    Never,
    /// The work folder is kept under the run's fingerprint: a run with the same fingerprint gets it back as it was left
    /// (files named `.tmp*`, which a kill may leave of one written whole, are removed), a run with another fingerprint
    /// starts with an empty one. Empty folders and everything else in it become part of the artifact.
    SameFingerprint,
}

/// The artifacts that are up to date and in their places.
pub(crate) struct Artifacts<'a>(pub(super) &'a dyn Fn(&str) -> Option<PathBuf>);

impl Artifacts<'_> {
    /// The folder of the stage `name`, if it is up to date.
    #[must_use]
    pub(crate) fn of(&self, name: &str) -> Option<PathBuf> {
        (self.0)(name)
    }
}

/// A step of the pipeline: a pure function of its described fields and its inputs to the files in its artifact.
pub(crate) trait Stage: Send + Sync {
    /// The stage's name and the name of its artifact's folder: lower-case letters, digits, `-`, `_` and `.`.
    fn name(&self) -> &str;

    /// Raised when the code changes what comes out of the same inputs and fields.
    fn version(&self) -> u32;

    /// Walks over every field that shapes the artifact. What is not walked over is not noticed when it changes; the
    /// number of jobs must not be walked over because it must not matter. See [`super::describe::config`].
    fn describe(&self, to: &mut dyn Describe);

    /// Everything the stage reads.
    fn inputs(&self) -> Vec<Input>;

    /// What may be done with the artifact in `folder` for the sake of the outside files that it was made from. Artifacts that the stage reads have licences of their own.
    ///
    /// # Errors
    /// When the artifact is damaged.
    fn licence(&self, folder: &Path) -> anyhow::Result<Licence> {
        let _ = folder;
        Ok(Licence::None)
    }

    /// What it answers to besides its name, where no stage is named so.
    fn also_called(&self) -> Option<&str> {
        None
    }

    /// The model that a training goes on from, as plans call it: the stage that makes it, or an outside one.
    fn begins_with(&self) -> Option<String> {
        None
    }

    /// The device that a model is computed on and why it was taken, of stages that compute one.
    fn computes_on(&self) -> Option<String> {
        None
    }

    /// Whether an interrupted run can be resumed.
    fn resume(&self) -> Resume {
        Resume::Never
    }

    /// Whether the stage can run on the artifacts that are there already: what settings and these contradict is told by `plan`, not only by the run.
    ///
    /// # Errors
    /// When it cannot.
    fn foresee(&self, artifacts: &Artifacts<'_>) -> anyhow::Result<()> {
        let _ = artifacts;
        Ok(())
    }

    /// Does the work: reads the declared inputs, writes the artifact's files into [`Context::out`].
    ///
    /// # Errors
    /// Whatever keeps the stage from finishing. Nothing it has written becomes visible then.
    fn run(&self, context: &mut Context) -> anyhow::Result<()>;

    /// Does another rank's part of the work of rank 0, which has said `more`: reads the declared inputs, writes nothing.
    ///
    /// # Errors
    /// Whatever keeps it from doing so.
    fn follow(&self, context: &Context, joined: Joined, more: Value) -> anyhow::Result<()> {
        let _ = (joined, more);
        anyhow::bail!("stage {} has no part for other ranks; report it", context.stage())
    }

    /// Lines that `engraft inspect` shows about one file of the artifact, such as its schema and number of rows.
    ///
    /// # Errors
    /// When the file cannot be read as what it should be.
    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        let _ = file;
        Ok(Vec::new())
    }
}
