//! What a run tells whoever watches it. Prints nothing.

use super::explain::{Note, Reason};
use super::ledger::Line;
use super::progress::{Progress, Snapshot};

/// Something that happened to a stage.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// It started to work.
    Started {
        stage: &'a str,
        /// Why.
        reasons: &'a [Reason],
        /// Its counters, to be read while it works.
        progress: &'a Progress,
    },
    /// It waits for another run, which makes the stage `of` or reads what that made.
    Waits {
        stage: &'a str,
        of: &'a str,
        /// Such as `process 4711`.
        holder: &'a str,
    },
    /// A file that it reads comes from a store.
    Fetching {
        stage: &'a str,
        /// The file, as it may be shown.
        from: &'a str,
    },
    /// It is up to date.
    Fresh {
        stage: &'a str,
        /// What is worth saying about that.
        notes: &'a [Note],
    },
    /// It finished; its artifact is in place.
    Done {
        /// Its ledger line.
        line: &'a Line,
        /// Its counters at the end.
        progress: Snapshot,
        /// Whether the artifact is another than before.
        result: Made,
    },
    /// It did not run: what an earlier run made with just these settings and inputs is in place again.
    Restored {
        /// The ledger line, with the reasons.
        line: &'a Line,
    },
    /// It does not run, and is not needed here: the depot has what it would make.
    Away {
        /// The depot's line.
        line: &'a Line,
    },
    /// Its artifact is downloaded from the depot.
    Pulling {
        /// The depot's line.
        line: &'a Line,
        /// Counts its bytes.
        progress: &'a Progress,
    },
    /// It did not run: its artifact came from the depot and is in place.
    Pulled {
        /// The ledger line, with the reasons.
        line: &'a Line,
    },
    /// Its artifact could not be brought from the depot.
    NotPulled {
        stage: &'a str,
        /// What is damaged, or went wrong.
        why: &'a str,
    },
    /// Its artifact goes into the depot.
    Pushing {
        /// Its ledger line.
        line: &'a Line,
        /// Counts its bytes.
        progress: &'a Progress,
    },
    /// That has ended.
    Pushed {
        stage: &'a str,
        /// How many bytes have gone; nothing if it failed.
        bytes: Option<u64>,
    },
    /// It is here, but could not be put into the depot.
    Unshared {
        stage: &'a str,
        /// What went wrong, with causes.
        error: &'a str,
    },
    /// A file that it read from a store is not noted in the depot.
    Unnoted {
        stage: &'a str,
        /// What went wrong, with causes.
        error: &'a str,
    },
    /// It is here, and stays here.
    Withheld {
        stage: &'a str,
        /// Its licence level, or what hides it.
        why: &'a str,
    },
    /// It failed; nothing of it became visible.
    Failed {
        stage: &'a str,
        /// What went wrong, with causes.
        error: &'a str,
    },
    /// It could not start because of another stage.
    Skipped {
        stage: &'a str,
        /// The stage that failed.
        because: &'a str,
    },
    /// It was stopped, or not started any more, because somebody asked to stop.
    Interrupted { stage: &'a str },
}

impl Event<'_> {
    /// The stage whose work, or whose way to or from the depot, begins with this, and its counters.
    pub(crate) fn begins(&self) -> Option<(&str, &Progress)> {
        match self {
            Self::Started { stage, progress, .. } => Some((stage, progress)),
            Self::Pulling { line, progress } | Self::Pushing { line, progress } => {
                Some((&line.stage, progress))
            }
            _ => None,
        }
    }

    /// The stage whose work, or whose way to or from the depot, has ended with this.
    pub(crate) fn ends(&self) -> Option<&str> {
        match self {
            Self::Done { line, .. } | Self::Pulled { line } => Some(&line.stage),
            Self::Failed { stage, .. }
            | Self::Interrupted { stage }
            | Self::NotPulled { stage, .. }
            | Self::Pushed { stage, .. } => Some(stage),
            Self::Started { .. }
            | Self::Waits { .. }
            | Self::Fetching { .. }
            | Self::Fresh { .. }
            | Self::Restored { .. }
            | Self::Skipped { .. }
            | Self::Away { .. }
            | Self::Pulling { .. }
            | Self::Pushing { .. }
            | Self::Unshared { .. }
            | Self::Unnoted { .. }
            | Self::Withheld { .. } => None,
        }
    }
}

/// How an artifact compares with the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// There was none, or one with other contents.
    New,
    /// It has the same contents.
    Same,
}

/// Watches a run. Called from the threads of the stages.
pub(crate) trait Observe: Sync {
    /// Is told of an event.
    fn event(&self, event: &Event<'_>);
}
