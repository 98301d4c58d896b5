//! What a step of fine-tuning and an evaluation on held-out samples say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One task in one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TaskRecord {
    /// Its loss, before alpha.
    pub loss: f64,
    /// Samples: rows, or groups of rows.
    pub samples: usize,
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
    /// The tasks that took part, by name.
    pub tasks: BTreeMap<String, TaskRecord>,
    /// The loss of the labels that it attends with, times its weight and before alpha.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<f64>,
    /// Learning rate of this step.
    pub learning_rate: f64,
    /// Norm of all gradients before clipping.
    pub grad_norm: f64,
    /// Tokens of all rows.
    pub tokens: usize,
    /// Rows of all batches.
    pub rows: usize,
}

/// The evaluation with the highest score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// Steps made before it.
    pub step: u64,
    /// What the caller measured; higher is better.
    pub score: f64,
}
