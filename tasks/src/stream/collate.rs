//! Rows to one padded batch. Knows no file and no order.

use super::batch::{Batch, IGNORED, Targets};
use super::reader::{Answer, RowRef};
use crate::task::Task;

/// Gathers rows and pads them to the longest.
#[derive(Debug, Default)]
pub struct Rows {
    lengths: Vec<usize>,
    input_ids: Vec<u32>,
    token_type_ids: Vec<u32>,
    labels: Vec<i64>,
    classes: Vec<u32>,
}

impl Rows {
    /// Adds a row.
    pub fn push(&mut self, row: RowRef<'_>) {
        self.lengths.push(row.input_ids.len());
        self.input_ids.extend_from_slice(row.input_ids);
        self.token_type_ids.extend_from_slice(row.token_type_ids);
        match row.answer {
            Answer::Tokens(labels) => self.labels.extend_from_slice(labels),
            Answer::Class(class) => self.classes.push(class),
        }
    }

    /// All rows as one batch of `task`, padded with the token `padding`.
    #[must_use]
    pub fn pad(&self, task: Task, padding: u32) -> Batch {
        let width = self.lengths.iter().copied().max().unwrap_or(0);
        let ones = vec![1; self.input_ids.len()];
        Batch {
            task,
            rows: self.lengths.len(),
            width,
            input_ids: padded(&self.input_ids, &self.lengths, width, padding),
            attention_mask: padded(&ones, &self.lengths, width, 0),
            token_type_ids: padded(&self.token_type_ids, &self.lengths, width, 0),
            targets: match task {
                Task::Subject | Task::Object => {
                    Targets::Tokens(padded(&self.labels, &self.lengths, width, IGNORED))
                }
                Task::Relation | Task::Triplet => Targets::Classes(self.classes.clone()),
            },
        }
    }
}

fn padded<T: Copy>(flat: &[T], lengths: &[usize], width: usize, fill: T) -> Vec<T> {
    let mut out = Vec::with_capacity(lengths.len() * width);
    let mut at = 0;
    for &length in lengths {
        out.extend_from_slice(&flat[at..at + length]);
        out.resize(out.len() + width - length, fill);
        at += length;
    }
    out
}
