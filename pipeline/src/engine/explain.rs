//! Why a stage runs or ran: the differences between two descriptions, and the way back to the root cause. Runs nothing.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::describe::Description;
use super::digest::Digest;
use super::ledger::Ledger;

/// One thing that makes a stage run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub(crate) enum Reason {
    /// No earlier run of it was finished here.
    NeverRan,
    /// Another version of the stage.
    Version {
        /// The version that ran.
        from: u32,
        /// The version now.
        to: u32,
    },
    /// A field with another value, a new one, or one that is gone.
    Field {
        path: String,
        /// Its value then; none if it was not described.
        from: Option<Value>,
        /// Its value now; none if it is not described.
        to: Option<Value>,
    },
    /// An outside file with other contents, a new one, or one that is no longer read.
    File {
        /// The file's label.
        label: String,
        /// Its digest then.
        from: Option<Digest>,
        /// Its digest now.
        to: Option<Digest>,
    },
    /// An input artifact with other contents, a new one, or one that is no longer read.
    Artifact {
        /// The stage that makes it.
        name: String,
        /// Its digest then.
        from: Option<Digest>,
        /// Its digest now.
        to: Option<Digest>,
    },
    /// A file of its artifact is gone.
    OutputMissing { path: String },
    /// A file of its artifact is not what the ledger says.
    OutputChanged { path: String },
    /// A file of the artifact that an earlier run with these very settings and inputs left is not what the ledger says, so that the artifact
    /// cannot be restored.
    KeptDamaged { path: String },
    /// An object of the depot is not there, or not what its name says, so that the artifact cannot be brought from it.
    DepotDamaged {
        /// Its key.
        object: String,
    },
    /// An input artifact will be made first. If it comes out as it was, the stage need not run.
    Pending {
        /// The stage that makes it.
        name: String,
    },
}

impl Reason {
    /// Whether it says that the artifact in its place is not what the ledger says.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Self::OutputMissing { .. } | Self::OutputChanged { .. })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverRan => f.write_str("there was no earlier run"),
            Self::Version { from, to } => write!(f, "stage version: {from} -> {to}"),
            Self::Field { path, from, to } => {
                write!(f, "{path}: {} -> {}", shown(from.as_ref()), shown(to.as_ref()))
            }
            Self::File { label, from, to } => {
                write!(f, "input file {label}: {}", contents(from.as_ref(), to.as_ref()))
            }
            Self::Artifact { name, from, to } => {
                write!(f, "input artifact {name}: {}", contents(from.as_ref(), to.as_ref()))
            }
            Self::OutputMissing { path } => write!(f, "output {path} is missing"),
            Self::OutputChanged { path } => write!(f, "output {path} is not as it was made"),
            Self::KeptDamaged { path } => write!(f, "kept output {path} is not as it was made"),
            Self::DepotDamaged { object } => write!(f, "the depot's {object} is missing or damaged"),
            Self::Pending { name } => write!(f, "input artifact {name} is made first"),
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "(none)".to_owned(), Value::to_string)
}

fn contents(from: Option<&Digest>, to: Option<&Digest>) -> String {
    match (from, to) {
        (Some(from), Some(to)) => format!("content changed ({} -> {})", from.short(), to.short()),
        (None, Some(to)) => format!("new ({})", to.short()),
        (Some(from), None) => format!("no longer read (was {})", from.short()),
        (None, None) => "unknown".to_owned(),
    }
}

/// Everything in which `now` differs from `then`. Empty exactly when the fingerprints are equal.
pub(crate) fn differences(then: &Description, now: &Description) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if then.version != now.version {
        reasons.push(Reason::Version { from: then.version, to: now.version });
    }
    let fields = compare(&then.fields, &now.fields);
    reasons.extend(fields.into_iter().map(|(path, from, to)| Reason::Field { path, from, to }));
    let files = compare(&then.files, &now.files);
    reasons.extend(files.into_iter().map(|(label, from, to)| Reason::File { label, from, to }));
    let artifacts = compare(&then.artifacts, &now.artifacts);
    reasons.extend(artifacts.into_iter().map(|(name, from, to)| Reason::Artifact { name, from, to }));
    reasons
}

type Difference<T> = (String, Option<T>, Option<T>);

fn compare<T: Clone + PartialEq>(
    then: &BTreeMap<String, T>,
    now: &BTreeMap<String, T>,
) -> Vec<Difference<T>> {
    let mut keys: Vec<&String> = then.keys().chain(now.keys()).collect();
    keys.sort();
    keys.dedup();
    let pairs = keys.into_iter().map(|key| (key.clone(), then.get(key).cloned(), now.get(key).cloned()));
    pairs.filter(|(_, from, to)| from != to).collect()
}

/// A reason with what stands behind it upstream, down to the root cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Cause {
    #[serde(flatten)]
    pub reason: Reason,
    /// For a changed input artifact: why the stage that makes it ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Cause>,
}

/// Traces reasons back through the ledger's first `until` lines. `pending` says why a stage that has not run yet will.
pub(crate) fn trace(
    ledger: &Ledger,
    until: usize,
    reasons: &[Reason],
    pending: &dyn Fn(&str) -> Vec<Reason>,
) -> Vec<Cause> {
    let cause = |reason: &Reason| {
        let because = match reason {
            Reason::Pending { name } => trace(ledger, until, &pending(name), pending),
            Reason::Artifact { name, from: Some(_), to: Some(to) } => match origin(ledger, until, name, to) {
                Some(at) => trace(ledger, at, &ledger.lines()[at].reasons, pending),
                // It is not there yet: an earlier artifact will be restored first.
                None if until == ledger.lines().len() => trace(ledger, until, &pending(name), pending),
                None => Vec::new(),
            },
            _ => Vec::new(),
        };
        Cause { reason: reason.clone(), because }
    };
    reasons.iter().map(cause).collect()
}

/// The line, among the first `until`, of the run that brought the artifact of `stage` to `digest`: later runs that made the
/// same contents again are not what changed it. None if the last of them left other contents.
fn origin(ledger: &Ledger, until: usize, stage: &str, digest: &Digest) -> Option<usize> {
    let runs = (0..until).rev().filter(|&at| ledger.lines()[at].stage == stage);
    runs.take_while(|&at| ledger.lines()[at].artifact == *digest).last()
}

/// Something worth saying about a stage that does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub(crate) enum Note {
    /// A file has another time or place on disk, but the contents it had.
    Touched {
        /// The file's label.
        label: String,
    },
    /// An input's stage ran again and made what it had made before.
    SameAgain { name: String },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Touched { label } => write!(f, "{label} was touched, its content is unchanged"),
            Self::SameAgain { name } => write!(f, "{name} ran again with the same result"),
        }
    }
}
