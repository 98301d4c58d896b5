//! How a run ended, stage by stage. Runs nothing.

use super::observe::Made;

/// What became of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was up to date.
    Fresh,
    /// It ran.
    Done(Made),
    /// What an earlier run made is in place again.
    Restored,
    /// What another machine made is in place.
    Pulled,
    /// What another machine made is in the depot, and was not needed here.
    Away,
    /// It failed, with this message.
    Failed(String),
    /// It could not start because this stage failed.
    Skipped(String),
    /// It was stopped or not started because somebody asked to stop.
    Interrupted,
}

/// What became of every stage that was needed, in the graph's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The stages with their outcomes.
    pub outcomes: Vec<(String, Outcome)>,
    /// Stages whose artifacts are here but could not be put into the depot.
    pub unshared: Vec<String>,
}

impl Summary {
    /// How many outcomes satisfy `which`.
    pub(crate) fn count(&self, which: impl Fn(&Outcome) -> bool) -> usize {
        self.outcomes.iter().filter(|(_, outcome)| which(outcome)).count()
    }
}
