//! What a trainer takes: batches of one task, rows of tokens and semantic maps as plain row-major arrays, ready to become tensors. No file, no
//! tensor library.

pub mod maps;
pub mod pack;
pub mod rows;
pub mod task;

use task::Task;

/// The label of a position that takes no part in the loss.
pub const IGNORED: i64 = -100;

/// What a batch asks to be predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Targets {
    /// One number per position, `rows * width` of them, [`IGNORED`] where nothing is asked.
    Tokens(Vec<i64>),
    /// One class per sample.
    Classes(Vec<u32>),
}

/// Where a sample stands in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its row.
    pub row: usize,
    /// Position of its first token in the row.
    pub start: usize,
    /// Positions that it takes, padding inside slots included.
    pub len: usize,
}

/// A batch of one task, padded to its own longest row. All matrices are `rows x width`, row-major.
///
/// A row holds one sample, or several when samples are packed; a token may then attend only to tokens with the same segment id in the
/// same row (block-diagonal attention).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The task that every sample belongs to.
    pub task: Task,
    /// Rows in the batch (B).
    pub rows: usize,
    /// Positions in a row (T): the longest row of the batch.
    pub width: usize,
    /// Token ids, padding included.
    pub input_ids: Vec<u32>,
    /// 1 for a token, 0 for padding.
    pub attention_mask: Vec<u32>,
    /// Segment of each token (0 or 1), BERT's token type.
    pub token_type_ids: Vec<u32>,
    /// Position of each token in its sample, from 0.
    pub position_ids: Vec<u32>,
    /// Number of the sample in its row, from 1; 0 outside of samples.
    pub segment_ids: Vec<u32>,
    /// Where each sample stands, in the order of the stream.
    pub samples: Vec<Place>,
    /// What is to be predicted.
    pub targets: Targets,
}

impl Batch {
    /// The batch with one sample in each row: what `position_ids`, `segment_ids` and `samples` say then.
    #[must_use]
    pub fn one_per_row(mut self) -> Self {
        let width = self.width;
        self.samples = (0..self.rows).map(|row| Place { row, start: 0, len: width }).collect();
        self.position_ids = (0..self.rows).flat_map(|_| (0..).take(width)).collect();
        self.segment_ids = vec![1; self.rows * width];
        self
    }

    /// Positions that are not padding.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.attention_mask.iter().filter(|&&m| m == 1).count()
    }
}
