//! What several files of training say: each sentence in one place.

use std::fmt::Display;
use std::path::Path;

use base::read::ReadError;

use super::record::Records;
use crate::Error;

pub(super) fn no_batch(step: u64) -> Error {
    Error::Misfit(format!("step {step}: no batch of a task with alpha above 0; give each step at least one"))
}

pub(super) fn two_batches(step: u64, task: impl Display) -> Error {
    Error::Misfit(format!("step {step}: two batches of {task}; merge them"))
}

pub(super) fn not_finite(step: u64, what: impl Display, value: f64) -> Error {
    Error::Misfit(format!(
        "step {step}: {what} is {value}; lower the learning rate or clip_norm, or look at this step's samples"
    ))
}

pub(super) fn wild_gradient(step: u64, parameter: &str, norm: f64, tasks: &Records) -> Error {
    let tasks = tasks.keys().cloned().collect::<Vec<_>>().join(", ");
    not_finite(step, format!("the norm of the gradient of {parameter} (tasks of the step: {tasks})"), norm)
}

pub(super) fn state(path: impl AsRef<Path>, problem: impl Into<String>) -> Error {
    ReadError::new(path.as_ref(), problem, "", "no training can go on from this state: begin it anew").into()
}
