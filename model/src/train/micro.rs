//! What micro-batches come to.

use std::collections::BTreeMap;

use candle_core::Tensor;

use super::record::{Records, TaskRecord};
use crate::Error;

/// What micro-batches come to, one or several together.
#[derive(Default)]
pub(super) struct Micro {
    /// Of the mean of the micro-batches' losses.
    pub(super) grads: BTreeMap<String, Tensor>,
    pub(super) loss: f64,
    pub(super) tasks: Records,
    pub(super) labels: Option<f64>,
    pub(super) tokens: usize,
    pub(super) rows: usize,
}

impl Micro {
    pub(super) fn with(mut self, other: Micro) -> Result<Self, Error> {
        for (name, grad) in other.grads {
            let sum = match self.grads.remove(&name) {
                Some(sum) => (sum + grad)?,
                None => grad,
            };
            self.grads.insert(name, sum);
        }
        for (task, record) in other.tasks {
            self.tasks
                .entry(task)
                .and_modify(|sum: &mut TaskRecord| *sum = sum.with(&record))
                .or_insert(record);
        }
        Ok(Micro {
            loss: self.loss + other.loss,
            labels: self.labels.zip(other.labels).map(|(a, b)| a + b),
            tokens: self.tokens + other.tokens,
            rows: self.rows + other.rows,
            ..self
        })
    }
}
