//! What one step says about itself.

use std::collections::BTreeMap;

use batch::task::Task;
use candle_core::{Result, Tensor};
use serde::Serialize;

use crate::nn::scalars;
use crate::output::Loss;

/// One task in one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TaskRecord {
    /// Mean cross entropy over the targets, before alpha.
    pub loss: f64,
    /// Share of targets whose class has the largest logit.
    pub accuracy: f64,
    /// Targets: rows, or tokens to predict.
    pub targets: usize,
}

impl TaskRecord {
    /// The records of some tasks' losses, in one answer of the device.
    pub(crate) fn of(losses: &[(Task, Loss)]) -> Result<BTreeMap<Task, Self>> {
        let hits = losses.iter().map(|(_, loss)| loss.hits()).collect::<Result<Vec<_>>>()?;
        let all: Vec<&Tensor> = losses.iter().map(|(_, loss)| &loss.loss).chain(&hits).collect();
        let values = scalars::read(&all)?;
        let (values, hits) = values.split_at(losses.len());
        let each = losses.iter().zip(values.iter().zip(hits));
        let record = |((task, of), (loss, hits)): (&(Task, Loss), (&f64, &f64))| {
            let targets = of.classes.len();
            (*task, TaskRecord { loss: *loss, accuracy: hits / targets.max(1) as f64, targets })
        };
        Ok(each.map(record).collect())
    }
}

impl TaskRecord {
    /// Both together: means over all targets.
    pub(super) fn with(&self, other: &Self) -> Self {
        let targets = self.targets + other.targets;
        let share = other.targets as f64 / targets.max(1) as f64;
        let mean = |a: f64, b: f64| a + (b - a) * share;
        let (loss, accuracy) = (mean(self.loss, other.loss), mean(self.accuracy, other.accuracy));
        TaskRecord { loss, accuracy, targets }
    }
}

/// One step. The caller adds the time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepRecord {
    /// Number of the step, from 1.
    pub step: u64,
    /// Epoch that its batches belong to, as the caller counts.
    pub epoch: u64,
    /// Sum of the tasks' losses, each times its alpha.
    pub loss: f64,
    /// The tasks that took part.
    pub tasks: BTreeMap<Task, TaskRecord>,
    /// Learning rate of this step.
    pub learning_rate: f64,
    /// Norm of all gradients before clipping.
    pub grad_norm: f64,
    /// Tokens that were not padding.
    pub tokens: usize,
    /// Rows of all batches: samples, a corrupted triple counting as one.
    pub rows: usize,
}
