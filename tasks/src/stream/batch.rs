//! One batch of one task as plain arrays, row-major, ready to become tensors. Knows no shard and no tensor library.

use crate::task::Task;

/// The label of a position that takes no part in the loss.
pub const IGNORED: i64 = -100;

/// What a batch asks to be predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Targets {
    /// One token id per position, `rows * width` of them, [`IGNORED`] where nothing is asked.
    Tokens(Vec<i64>),
    /// One class per row, `rows` of them.
    Classes(Vec<u32>),
}

/// A batch of one task, padded to its own longest row. All matrices are `rows x width`, row-major.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The task that every row belongs to.
    pub task: Task,
    /// Rows in the batch (B).
    pub rows: usize,
    /// Positions in a row (T): the longest row of the batch.
    pub width: usize,
    /// Token ids, padding included.
    pub input_ids: Vec<u32>,
    /// 1 for a token, 0 for padding.
    pub attention_mask: Vec<u32>,
    /// Segment of each token (0 or 1).
    pub token_type_ids: Vec<u32>,
    /// What is to be predicted.
    pub targets: Targets,
}

impl Batch {
    /// Positions that are not padding.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.attention_mask.iter().filter(|&&m| m == 1).count()
    }
}
