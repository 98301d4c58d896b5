//! What steps and evaluations say about themselves.

use std::collections::BTreeMap;

use candle_core::{Result, Tensor};
use serde::Serialize;

use crate::nn::scalars;
use crate::output::{Batch, Loss};

/// The tasks that took part in a step or an evaluation, by name.
pub type Records = BTreeMap<String, TaskRecord>;

/// One task in one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TaskRecord {
    /// Mean loss over the targets or samples, before alpha.
    pub loss: f64,
    /// Share of targets whose class has the largest logit, where one class is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Targets: rows, groups of them, or tokens to predict.
    pub targets: usize,
    /// Samples: rows, or groups of rows.
    pub samples: usize,
}

/// The loss of a task's batch.
#[derive(Debug)]
pub(super) struct Weighed<'a> {
    /// The task's name.
    pub(super) task: &'a str,
    /// The weight of its loss.
    pub(super) alpha: f64,
    /// What this rank's loss counts among those of all ranks; 1 of one alone.
    pub(super) share: f64,
    pub(super) batch: &'a Batch,
    pub(super) loss: Loss,
}

impl TaskRecord {
    /// The records of some tasks' losses, in one answer of the device.
    pub(super) fn of(losses: &[Weighed<'_>]) -> Result<Records> {
        let hits = losses.iter().map(|of| of.loss.hits()).collect::<Result<Vec<_>>>()?;
        let all: Vec<&Tensor> = losses.iter().map(|of| &of.loss.loss).chain(hits.iter().flatten()).collect();
        let values = scalars::read(&all)?;
        let (values, of_hits) = values.split_at(losses.len());
        let mut of_hits = of_hits.iter();
        let each = losses.iter().zip(values).zip(&hits);
        let record = |((of, loss), hits): ((&Weighed<'_>, &f64), &Option<Tensor>)| {
            let (targets, samples) = (of.batch.targets.asked(), of.batch.targets.samples());
            let hits = hits.as_ref().and_then(|_| of_hits.next());
            let accuracy = hits.map(|hits| hits / targets.max(1) as f64);
            (of.task.to_owned(), TaskRecord { loss: *loss, accuracy, targets, samples })
        };
        Ok(each.map(record).collect())
    }

    /// Both together: means over all targets.
    pub(super) fn with(&self, other: &Self) -> Self {
        let targets = self.targets + other.targets;
        let share = other.targets as f64 / targets.max(1) as f64;
        let mean = |a: f64, b: f64| a + (b - a) * share;
        TaskRecord {
            loss: mean(self.loss, other.loss),
            accuracy: self.accuracy.zip(other.accuracy).map(|(a, b)| mean(a, b)),
            targets,
            samples: self.samples + other.samples,
        }
    }
}

/// One step. The caller adds the time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepRecord {
    /// Number of the step, from 1.
    pub step: u64,
    /// Epoch that its batches belong to, as the caller counts.
    pub epoch: u64,
    /// Sum of the losses of tasks and labels, each times the task's alpha.
    pub loss: f64,
    /// The tasks that took part.
    pub tasks: Records,
    /// The loss of the labels that it attends with, times its weight and before alpha.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<f64>,
    /// Learning rate of this step.
    pub learning_rate: f64,
    /// Norm of all gradients before clipping.
    pub grad_norm: f64,
    /// Tokens of all rows, padding that is not read left out.
    pub tokens: usize,
    /// Rows of all batches: samples, a corrupted triple counting as one.
    pub rows: usize,
}
