//! The tasks a sample can belong to: the table of what each is called, made of, and asked for.

use serde::{Deserialize, Serialize};

/// What the rows of a task are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Material {
    /// Triples of the graph, which are shown in all such tasks together.
    Triples,
    /// Pairs of entities' names.
    Names,
    /// Chunks of texts.
    Texts,
}

/// What a model predicts: it decides the form of the labels and the task head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predicts {
    /// The tokens of an entity's name, all of which are masked.
    Name,
    /// Masked tokens of a text.
    MaskedTokens,
    /// A relation of the graph.
    Relation,
    /// Whether what the row says is true (class 1) or false (class 0).
    Truth,
    /// A tag for every word.
    Tags,
}

/// The form of the labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A number for each token, most of them ignored.
    Tokens,
    /// One class for the row.
    Class,
}

/// A line for each task: its name, what its rows are made of, and what is predicted.
macro_rules! tasks {
    ($($(#[$doc:meta])+ $task:ident: $name:literal, $of:ident, $predicts:ident;)+) => {
        /// What a model is asked. The first four are KIMERA's graph tasks (paper 000, section 2.2).
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
        )]
        pub enum Task {
            $($(#[$doc])+ #[serde(rename = $name)] $task,)+
        }

        impl Task {
            /// All tasks in the order in which they are stored, drawn and summed.
            pub const ALL: [Task; [$($name),+].len()] = [$(Task::$task),+];

            /// The name on disk, in configs and in metrics.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Task::$task => $name,)+ }
            }

            /// What its rows are made of.
            #[must_use]
            pub fn made_of(self) -> Material {
                match self { $(Task::$task => Material::$of,)+ }
            }

            /// What is predicted.
            #[must_use]
            pub fn predicts(self) -> Predicts {
                match self { $(Task::$task => Predicts::$predicts,)+ }
            }
        }
    };
}

tasks! {
    /// Predict all tokens of the subject from relation and object.
    Subject: "subject", Triples, Name;
    /// Predict all tokens of the object from subject and relation.
    Object: "object", Triples, Name;
    /// Predict the relation's class from subject and object.
    Relation: "relation", Triples, Relation;
    /// Tell a stated triple (class 1) from a corrupted one (class 0).
    Triplet: "triplet", Triples, Truth;
    /// Predict the masked tokens of a text (Devlin et al. 2019).
    MaskedLm: "masked_lm", Texts, MaskedTokens;
    /// Give every word of a text its tag.
    Tagging: "tagging", Texts, Tags;
    /// Tell two names of one entity (class 1) from names of two (class 0).
    Synonyms: "synonyms", Names, Truth;
}

impl Task {
    /// KIMERA's tasks, which are made of triples.
    pub const GRAPH: [Task; 4] = [Task::Subject, Task::Object, Task::Relation, Task::Triplet];

    /// The form of its labels.
    #[must_use]
    pub fn answer(self) -> Answer {
        match self.predicts() {
            Predicts::Name | Predicts::MaskedTokens | Predicts::Tags => Answer::Tokens,
            Predicts::Relation | Predicts::Truth => Answer::Class,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graph_tasks_are_those_made_of_triples() {
        let of_triples = Task::ALL.into_iter().filter(|task| task.made_of() == Material::Triples);
        assert_eq!(of_triples.collect::<Vec<_>>(), Task::GRAPH);
        assert!(Task::ALL.is_sorted(), "maps by task have the order of the table");
    }
}
