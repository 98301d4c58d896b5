//! The tasks a sample can belong to, and the names they carry on disk.

use serde::{Deserialize, Serialize};

/// What a model is asked. The first four are KIMERA's graph tasks (paper 000, section 3.2), the others are on text.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Predict all tokens of the subject from relation and object.
    Subject,
    /// Predict all tokens of the object from subject and relation.
    Object,
    /// Predict the relation's class from subject and object.
    Relation,
    /// Tell a stated triple (class 1) from a corrupted one (class 0).
    Triplet,
    /// Predict the blanks of a text (Devlin et al. 2019).
    MaskedLm,
    /// Give every word of a text its tag.
    Tagging,
}

/// The form of what is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A number for each token, most of them ignored.
    Tokens,
    /// One class for the row.
    Class,
}

impl Task {
    /// All tasks in the order in which they are stored, drawn and summed.
    pub const ALL: [Task; 6] =
        [Task::Subject, Task::Object, Task::Relation, Task::Triplet, Task::MaskedLm, Task::Tagging];

    /// The tasks that are made of triples.
    pub const GRAPH: [Task; 4] = [Task::Subject, Task::Object, Task::Relation, Task::Triplet];

    /// The name on disk, in configs and in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.about().0
    }

    /// What its samples ask for.
    #[must_use]
    pub fn answer(self) -> Answer {
        self.about().1
    }

    /// Name and answer: a line a task.
    fn about(self) -> (&'static str, Answer) {
        match self {
            Task::Subject => ("subject", Answer::Tokens),
            Task::Object => ("object", Answer::Tokens),
            Task::Relation => ("relation", Answer::Class),
            Task::Triplet => ("triplet", Answer::Class),
            Task::MaskedLm => ("masked_lm", Answer::Tokens),
            Task::Tagging => ("tagging", Answer::Tokens),
        }
    }

    /// Whether its samples are made of triples; the others are made of text.
    #[must_use]
    pub fn is_graph(self) -> bool {
        Task::GRAPH.contains(&self)
    }
}
