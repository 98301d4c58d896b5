//! Steps over batches of several tasks: losses, gradients, updates, and a state to go on from. Knows no clock, no stage
//! and no file format of samples.

pub mod config;
mod coverage;
pub mod record;
mod state;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use tasks::stream::batch::Batch;
use tasks::task::Task;

use crate::chance::Chance;
use crate::checkpoint;
use crate::encoder::tokens::{self, Tokens};
use crate::encoder::{Encoder, Pass};
use crate::optim::adamw::{AdamW, Update};
use crate::optim::clip;
use crate::output::{self, Loss, Outputs};
use crate::params::{self, Params, Spec};
use config::Setup;
use coverage::Coverage;
use record::{StepRecord, TaskRecord};

/// An encoder with its task outputs, their optimiser and the number of steps made.
#[derive(Debug)]
pub struct Trainer {
    setup: Setup,
    params: Params,
    encoder: Encoder,
    outputs: Outputs,
    optimiser: AdamW,
    frozen: BTreeMap<String, &'static str>,
    coverage: Coverage,
    device: Device,
}

/// Why training cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Settings that cannot be trained with.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// A batch that the encoder cannot read.
    #[error(transparent)]
    Tokens(#[from] tokens::Error),
    /// A batch whose targets do not fit.
    #[error(transparent)]
    Targets(#[from] output::Error),
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
        task: &'static str,
    },
    /// A parameter that nothing trains.
    #[error(
        "by step {step}, no gradient reaches [{}]; name them in `frozen` if that is meant, else the model has lost a connection or a task has no batch",
        .names.join(", ")
    )]
    NoGradient {
        /// The step.
        step: u64,
        /// Their names.
        names: Vec<String>,
    },
    /// A loss or gradient that is infinite or not a number.
    #[error(
        "step {step}: {what} is {value}; lower the learning rate or clip_norm, or look at this step's samples"
    )]
    NotFinite {
        /// The step, from 1.
        step: u64,
        /// What is not finite.
        what: String,
        /// Its value.
        value: f64,
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
    /// An index of a state that says something else.
    #[error("{path}: {problem}; delete the folder to train from the start")]
    State {
        /// The state's index.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The tensor library failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

impl Trainer {
    /// A trainer with fresh weights, drawn from `setup.train.seed`.
    ///
    /// # Errors
    /// When the settings contradict each other.
    pub fn new(setup: Setup, device: &Device) -> Result<Self, Error> {
        setup.check()?;
        let params = Params::fresh(&specs(&setup), setup.train.seed, device)?;
        Trainer::over(setup, params, device)
    }

    /// A trainer whose encoder comes from a checkpoint folder; outputs are fresh. `setup.encoder` must have the
    /// checkpoint's sizes (see [`checkpoint::load`]); its dropout rates may differ.
    ///
    /// # Errors
    /// When the settings contradict each other or the checkpoint.
    pub fn from_checkpoint(setup: Setup, dir: &Path, device: &Device) -> Result<Self, Error> {
        setup.check()?;
        let encoder = checkpoint::load(dir, device)?.params;
        let tensors = encoder.iter().map(|(name, tensor)| (name.to_owned(), tensor.clone())).collect();
        let encoder = Params::from_tensors(&Encoder::specs(&setup.encoder), tensors)?;
        let outputs = Outputs::specs(&setup.outputs, &setup.encoder, setup.sizes);
        let params = encoder.with(Params::fresh(&outputs, setup.train.seed, device)?);
        Trainer::over(setup, params, device)
    }

    fn over(setup: Setup, params: Params, device: &Device) -> Result<Self, Error> {
        let frozen = coverage::frozen(&setup, &params)?;
        let params = params.freeze(|name| frozen.contains_key(name));
        let encoder = Encoder::new(&setup.encoder, &params)?;
        let outputs = Outputs::new(&setup.outputs, &setup.encoder, &params)?;
        let optimiser = AdamW::new(setup.train.adamw.clone(), &params, |name| !frozen.contains_key(name))?;
        let coverage = Coverage::new(&setup, &params, &frozen);
        Ok(Trainer { setup, params, encoder, outputs, optimiser, frozen, coverage, device: device.clone() })
    }

    /// One update from at most one batch of each task; batches of tasks with alpha 0 are passed over. `epoch` only goes
    /// into the record.
    ///
    /// # Errors
    /// When a batch does not fit, a loss or gradient is not finite, or, once every task has had a batch, a parameter that is not
    /// frozen has had no gradient. The parameters are then as before the step.
    pub fn step(&mut self, epoch: u64, batches: &[Batch]) -> Result<StepRecord, Error> {
        let step = self.steps() + 1;
        let dropout = Chance::new(self.setup.train.seed).named("dropout").branch(step);
        let (batches, tokens) = self.read(step, batches)?;
        let losses = self.losses(&batches, &tokens, Some(dropout))?;
        let (total, total_loss) = self.total(step, &losses)?;
        let grads = self.gradients(&total)?;
        let tasks = batches.iter().map(|batch| batch.task);
        self.coverage.see(step, tasks, &grads)?;
        let grad_norm = clip::global_norm(&grads)?;
        finite(step, grad_norm, || "the gradient's norm".to_owned())?;
        let (rate, scale) =
            (self.setup.train.schedule.rate(step), clip::factor(grad_norm, self.setup.train.clip_norm));
        let mut tasks = BTreeMap::new();
        for (task, loss) in &losses {
            tasks.insert(*task, TaskRecord::new(loss)?);
        }
        self.optimiser.step(&self.params, grads, Update { rate, scale })?;
        let (tokens, rows) = (tokens.count(), tokens.spans.len());
        Ok(StepRecord { step, epoch, loss: total_loss, tasks, learning_rate: rate, grad_norm, tokens, rows })
    }

    /// Loss and accuracy of each task without dropout and without an update.
    ///
    /// # Errors
    /// When a batch does not fit.
    pub fn evaluate(&self, batches: &[Batch]) -> Result<BTreeMap<Task, TaskRecord>, Error> {
        let (batches, tokens) = self.read(self.steps(), batches)?;
        let losses = self.losses(&batches, &tokens, None)?;
        losses.iter().map(|(task, loss)| Ok((*task, TaskRecord::new(loss)?))).collect()
    }

    /// The batches that count and their tokens.
    fn read<'a>(&self, step: u64, batches: &'a [Batch]) -> Result<(Vec<&'a Batch>, Tokens), Error> {
        // A task without a weight stays in: it has no output, which is an error and not to be passed over.
        let counts = |batch: &&Batch| self.setup.train.alphas.of(batch.task) != Some(0.0);
        let active: Vec<&Batch> = batches.iter().filter(counts).collect();
        if active.is_empty() {
            return Err(Error::NoBatch { step });
        }
        if let Some(twice) =
            Task::ALL.iter().find(|task| active.iter().filter(|b| b.task == **task).count() > 1)
        {
            return Err(Error::TwoBatches { step, task: twice.name() });
        }
        let tokens = Tokens::new(&active, &self.setup.encoder, &self.device)?;
        Ok((active, tokens))
    }

    /// The loss of each batch, all rows of all batches in one pass through the encoder.
    fn losses(
        &self,
        batches: &[&Batch],
        tokens: &Tokens,
        dropout: Option<Chance>,
    ) -> Result<Vec<(Task, Loss)>, Error> {
        let pass = Pass { gates_lh: None, dropout };
        let hidden = self.encoder.forward(&self.setup.encoder, tokens, &pass)?;
        let Some(x_nd) = hidden.last() else { return Ok(vec![]) };
        let each = batches.iter().enumerate();
        each.map(|(i, batch)| Ok((batch.task, self.outputs.loss(x_nd, tokens, (i, batch), dropout)?)))
            .collect()
    }

    /// L = sum of alpha_n L_n, as a tensor and as a number.
    fn total(&self, step: u64, losses: &[(Task, Loss)]) -> Result<(Tensor, f64), Error> {
        let mut total = Tensor::zeros((), candle_core::DType::F32, &self.device)?;
        for (task, loss) in losses {
            let value = f64::from(loss.loss.to_scalar::<f32>()?);
            finite(step, value, || format!("the loss of {}", task.name()))?;
            total = (total + (&loss.loss * self.setup.train.alphas.of(*task).unwrap_or(0.0))?)?;
        }
        let value = f64::from(total.to_scalar::<f32>()?);
        Ok((total, value))
    }

    /// Gradients of all parameters that are not frozen.
    fn gradients(&self, total: &Tensor) -> Result<BTreeMap<String, Tensor>, Error> {
        let mut store = crate::nn::gradients::gradients(total)?;
        let trained = self.params.iter().filter(|(name, _)| !self.frozen.contains_key(*name));
        Ok(trained.filter_map(|(name, param)| Some((name.to_owned(), store.remove(param)?))).collect())
    }

    /// Steps made so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.optimiser.updates
    }

    /// Parameters that are not trained, with the reason.
    #[must_use]
    pub fn frozen(&self) -> &BTreeMap<String, &'static str> {
        &self.frozen
    }

    /// All parameters: the encoder's, and the outputs' under `outputs.`.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Writes the state to go on from; `stream` is handed back by [`Trainer::resume`]. A crash leaves the old state or
    /// the new one.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn save_state(&self, dir: &Path, stream: &serde_json::Value) -> Result<(), Error> {
        state::save(self, dir, stream)
    }

    /// A trainer as it was when its state was written, with what was given as `stream`. The same batches then give the
    /// same bits on the same machine.
    ///
    /// # Errors
    /// When there is no whole state in `dir`, or it was made with other settings than `setup`.
    pub fn resume(setup: Setup, dir: &Path, device: &Device) -> Result<(Self, serde_json::Value), Error> {
        setup.check()?;
        state::load(setup, dir, device)
    }

    /// Writes the encoder as a Hugging Face folder, the outputs as `outputs.safetensors` beside it, and last
    /// `outputs.json`, which says what the outputs are.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn save_checkpoint(&self, dir: &Path) -> Result<(), Error> {
        state::save_checkpoint(self, dir)
    }
}

/// Every parameter of a model with these settings.
fn specs(setup: &Setup) -> Vec<Spec> {
    let outputs = Outputs::specs(&setup.outputs, &setup.encoder, setup.sizes);
    [Encoder::specs(&setup.encoder), outputs].concat()
}

fn finite(step: u64, value: f64, what: impl FnOnce() -> String) -> Result<(), Error> {
    if value.is_finite() { Ok(()) } else { Err(Error::NotFinite { step, what: what(), value }) }
}

#[cfg(test)]
mod tests;
