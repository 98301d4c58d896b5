//! What each task's rows are: the one table of tasks. A task is a file in [`crate::builder`] with its `Spec`, and a line here.

use batch::task::Task;

use crate::builder::spec::{MadeOf, Spec};
use crate::builder::{entity, masked_lm, relation, tagging, triplet};

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
