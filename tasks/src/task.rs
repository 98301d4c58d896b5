//! The tasks a sample can belong to, and the names they carry on disk. Knows no text, tensor or file.

use serde::{Deserialize, Serialize};

/// One of the four KIMERA graph tasks (paper 000, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
}

impl Task {
    /// All tasks in the order in which they are stored, drawn and summed.
    pub const ALL: [Task; 4] = [Task::Subject, Task::Object, Task::Relation, Task::Triplet];

    /// The name on disk, in configs and in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Task::Subject => "subject",
            Task::Object => "object",
            Task::Relation => "relation",
            Task::Triplet => "triplet",
        }
    }
}
