//! What a running stage may see and touch: its work folder, its declared inputs, progress, and the facts it leaves. Nothing else.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base::cancel::Cancelled;
use serde_json::{Map, Value};

use super::digest::Digest;
use super::error::Error;
use super::live::Live;
use super::progress::Progress;
use super::ranks::Others;

/// The fact with the warnings of a stage, a list of texts.
pub(crate) const WARNINGS: &str = "warnings";

/// Handed to [`super::stage::Stage::run`]; one for every run of a stage. All its methods take `&self`, so threads of the
/// stage may share it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(super) stage: String,
    pub(super) out: PathBuf,
    pub(super) files: BTreeMap<String, PathBuf>,
    pub(super) artifacts: BTreeMap<String, PathBuf>,
    pub(super) jobs: NonZeroUsize,
    pub(super) beside: NonZeroUsize,
    pub(super) progress: Progress,
    pub(super) facts: Mutex<Map<String, Value>>,
    pub(super) previous: Option<PathBuf>,
    pub(super) live: Live,
    pub(super) others: Option<Arc<Others>>,
    pub(super) local_rank: Option<Option<usize>>,
}

impl Context {
    /// The stage's name.
    pub(crate) fn stage(&self) -> &str {
        &self.stage
    }

    /// The private folder whose contents become the artifact. Empty at the start, unless the stage resumes.
    pub(crate) fn out(&self) -> &Path {
        &self.out
    }

    /// The folder of the input artifact made by the stage `name`.
    ///
    /// # Errors
    /// When `inputs()` does not name it.
    pub(crate) fn artifact(&self, name: &str) -> Result<&Path, Error> {
        Self::find(&self.artifacts, name).ok_or_else(|| self.undeclared("the artifact", name))
    }

    /// The path of the outside file or folder declared under `label`.
    ///
    /// # Errors
    /// When `inputs()` does not name it.
    pub(crate) fn file(&self, label: &str) -> Result<&Path, Error> {
        Self::find(&self.files, label).ok_or_else(|| self.undeclared("the outside file", label))
    }

    /// How many threads the stage may keep busy. The artifact must not depend on it.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.get()
    }

    /// How many stages, this one included, are likely to run at once: what those of a kind share threads and memory by.
    pub(crate) fn beside(&self) -> usize {
        self.beside.get()
    }

    /// Fails once the run is asked to stop. A stage calls it at least every few hundred milliseconds of work.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub(crate) fn check(&self) -> Result<(), Cancelled> {
        self.progress.check()
    }

    /// The digest of a file's contents.
    ///
    /// # Errors
    /// What reading gives; [`Cancelled`] inside when the run is asked to stop.
    pub(crate) fn digest(&self, path: &Path) -> io::Result<Digest> {
        Digest::of_file(path, self.progress.cancel())
    }

    /// The counters that a display shows.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The artifact that this run replaces, if there is one. For [`Context::record`] only: what a stage writes depends on its
    /// inputs alone.
    #[must_use]
    pub(crate) fn previous(&self) -> Option<&Path> {
        self.previous.as_deref()
    }

    /// The processes that work along, if this one was started with others and leads them.
    pub(crate) fn others(&self) -> Option<&Others> {
        self.others.as_deref()
    }

    /// Of a process that was started with others: its number among those of its machine, where its launcher says it.
    pub(crate) fn local_rank(&self) -> Option<Option<usize>> {
        self.local_rank
    }

    /// Shows these files of [`Context::out`] to whoever looks on while the stage runs, in `live/STAGE/`: files that grow line by line.
    pub(crate) fn show(&self, names: &[&str]) {
        self.live.show(names);
    }

    /// Leaves a fact (a funnel, a count) for the ledger and `inspect`; a second value for a key replaces the first.
    /// A list of flat tables is shown as a table.
    pub(crate) fn record(&self, key: &str, value: impl Into<Value>) {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), value.into());
    }

    /// Leaves a warning: what is right as the config has it, and may not be what was meant. It is shown when the stage is done, at the
    /// end of each run that has the artifact, and by `inspect`.
    pub(crate) fn warn(&self, text: impl Into<String>) {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let warnings = facts.entry(WARNINGS).or_insert_with(|| Value::Array(Vec::new()));
        let text = Value::String(text.into());
        if let Value::Array(warnings) = warnings
            && !warnings.contains(&text)
        {
            warnings.push(text);
        }
    }

    fn find<'a>(among: &'a BTreeMap<String, PathBuf>, name: &str) -> Option<&'a Path> {
        among.get(name).map(PathBuf::as_path)
    }

    /// A stage asked for an input that it did not declare, so the fingerprint would not notice a change of it.
    fn undeclared(&self, kind: &'static str, name: &str) -> Error {
        let stage = &self.stage;
        Error::new(format!(
            "stage {stage} reads {kind} `{name}`, which its inputs() does not declare: declare it there"
        ))
    }
}
