//! What each task's rows are: the one table of tasks. A task is a file in [`crate::builder`] with its [`Spec`], and a line here.

use batch::task::Task;

use crate::builder::{Columns, Layout, Sample, entity, masked_lm, relation, tagging, triplet};
use crate::sample::Triple;
use crate::token::encode::Special;

/// What the rows of a task are.
#[derive(Debug)]
pub(crate) struct Spec {
    /// What they ask for: a sentence without its full stop.
    pub(crate) asks: &'static str,
    /// What the column of labels holds.
    pub(crate) label: &'static str,
    /// What they are made of.
    pub(crate) of: MadeOf,
}

/// What rows are made of.
#[derive(Debug)]
pub(crate) enum MadeOf {
    /// Stated triples, a row each; behind it its negatives, where a task has a row for such.
    Triples { stated: Build, negative: Option<Build> },
    /// Chunks of texts, by items of the task's own ([`crate::shard::text`]).
    Texts,
}

/// Fills a row with the columns of a triple.
pub(crate) type Build = fn(&mut Sample, &Layout, Special, Columns<'_>, Triple);

/// The table.
pub(crate) fn spec(task: Task) -> &'static Spec {
    match task {
        Task::Subject => &entity::SUBJECT,
        Task::Object => &entity::OBJECT,
        Task::Relation => &relation::SPEC,
        Task::Triplet => &triplet::SPEC,
        Task::MaskedLm => &masked_lm::SPEC,
        Task::Tagging => &tagging::SPEC,
    }
}

/// Whether the rows of stated triples are followed by those of their negatives.
#[must_use]
pub fn has_negatives(task: Task) -> bool {
    matches!(spec(task).of, MadeOf::Triples { negative: Some(_), .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graph_tasks_are_made_of_triples_and_no_others() {
        for task in Task::ALL {
            assert_eq!(matches!(spec(task).of, MadeOf::Triples { .. }), task.is_graph(), "{task:?}");
        }
        assert_eq!(Task::ALL.map(has_negatives), [false, false, false, true, false, false]);
    }
}
