//! What each task's rows are: the one table of tasks. A task is a file in [`crate::builder`] with its `Spec`, and a line here.

use batch::task::Task;

use crate::builder::spec::{MadeOf, Spec};
use crate::builder::{entity, masked_lm, relation, synonyms, tagging, triplet};

/// The table.
pub(crate) fn spec(task: Task) -> &'static Spec {
    match task {
        Task::Subject => &entity::SUBJECT,
        Task::Object => &entity::OBJECT,
        Task::Relation => &relation::SPEC,
        Task::Triplet => &triplet::SPEC,
        Task::MaskedLm => &masked_lm::SPEC,
        Task::Tagging => &tagging::SPEC,
        Task::Synonyms => &synonyms::SPEC,
    }
}

/// Whether the rows of stated triples are followed by those of their negatives.
#[must_use]
pub fn has_negatives(task: Task) -> bool {
    matches!(spec(task).of, MadeOf::Triples { negative: Some(_), .. })
}

#[cfg(test)]
mod tests {
    use batch::task::{Material, Predicts};

    use super::*;

    #[test]
    fn rows_are_made_of_what_the_table_of_tasks_says() {
        for task in Task::ALL {
            let found = match spec(task).of {
                MadeOf::Triples { .. } => Material::Triples,
                MadeOf::Items { pairs: Some(_) } => Material::Names,
                MadeOf::Items { pairs: None } => Material::Texts,
            };
            assert_eq!(found, task.made_of(), "{task:?}");
            assert!(!has_negatives(task) || task.predicts() == Predicts::Truth, "{task:?}");
        }
    }
}
