//! Why training cannot begin or go on.

use std::path::PathBuf;

use base::self_check;

use super::config;
use super::frozen::UnknownPrefix;
use crate::encoder::tokens;
use crate::head::mask;
use crate::output::downstream;
use crate::{checkpoint, output, params, predict};

/// Why training cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Settings that cannot be trained with.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// A prefix in `frozen` that no parameter has.
    #[error(transparent)]
    Frozen(#[from] UnknownPrefix),
    /// A batch that the encoder cannot read.
    #[error(transparent)]
    Tokens(#[from] tokens::Error),
    /// A batch whose targets do not fit.
    #[error(transparent)]
    Targets(#[from] output::Error),
    /// A downstream batch whose targets do not fit, or settings of an output that cannot be.
    #[error(transparent)]
    Downstream(#[from] downstream::Error),
    /// A model that cannot answer.
    #[error(transparent)]
    Predict(Box<predict::Error>),
    /// A checkpoint or state that cannot be read or written.
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::Error),
    /// Parameters that do not belong to the settings.
    #[error(transparent)]
    Params(#[from] params::Error),
    /// A step without a batch of a task that counts.
    #[error("step {step}: no batch of a task with alpha above 0; give each step at least one")]
    NoBatch {
        /// The step, from 1.
        step: u64,
    },
    /// Two batches of one task in a step.
    #[error("step {step}: two batches of {task}; merge them")]
    TwoBatches {
        /// The step, from 1.
        step: u64,
        /// The task.
        task: String,
    },
    /// A parameter that nothing trains.
    #[error(
        "by step {step}, no gradient reaches [{}]; name them in `frozen` if that is meant, else the model has lost a connection, or a task has had no batch: train more steps",
        .names.join(", ")
    )]
    NoGradient {
        /// The step.
        step: u64,
        /// Their names.
        names: Vec<String>,
    },
    /// Labels that are to begin anew after steps that have trained them.
    #[error("after {steps} steps the embeddings of labels cannot begin anew; set them before the first step")]
    Begun {
        /// Steps made.
        steps: u64,
    },
    /// A loss or gradient that is infinite or not a number.
    #[error(
        "step {step}: {what} is {value}; lower the learning rate or clip_norm, or look at this step's samples"
    )]
    NotFinite {
        /// The step, from 1.
        step: u64,
        /// What is not finite: the loss of a task, or the gradient of a parameter under the tasks of the step.
        what: String,
        /// Its value.
        value: f64,
    },
    /// A head mask of another encoder.
    #[error(transparent)]
    Mask(#[from] mask::Error),
    /// Something frozen that is not what training began with.
    #[error(
        "{parameter}{} is frozen, but after step {step} it is not what training began with; nothing of this training can be relied on, report it",
        .head.map_or(String::new(), |head| format!(", head {head} (from 0),"))
    )]
    Moved {
        /// The parameter.
        parameter: String,
        /// The head whose slice moved, if heads divide the parameter.
        head: Option<usize>,
        /// The last step.
        step: u64,
    },
    /// A state made under other settings.
    #[error(
        "{path}: made with {field} = {found}, now {expected}; train from the start or restore the setting"
    )]
    OtherSettings {
        /// The state's index.
        path: PathBuf,
        /// The setting that differs.
        field: String,
        /// Its value in the state.
        found: String,
        /// Its value now.
        expected: String,
    },
    /// An index of a state that is not what was written.
    #[error(transparent)]
    Index(#[from] self_check::Error),
    /// A file of a state that is not what was written.
    #[error("{path}: {problem}; no training can go on from this state: begin it anew")]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The tensor library failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

impl From<predict::Error> for Error {
    fn from(error: predict::Error) -> Self {
        Error::Predict(Box::new(error))
    }
}
