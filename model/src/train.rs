//! Steps over batches of several tasks: losses, gradients, updates, and a state to go on from. Knows no clock, no stage
//! and no file format of samples.

pub mod config;
mod coverage;
mod error;
pub mod heads;
pub mod patience;
pub mod record;
mod seal;
mod state;

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::{Device, Tensor};
use tasks::stream::batch::Batch;
use tasks::task::Task;

use crate::chance::Chance;
use crate::checkpoint;
use crate::encoder::tokens::Tokens;
use crate::encoder::{Encoder, Gates, Pass};
use crate::head::slices::listed;
use crate::optim::adamw::{AdamW, Update};
use crate::optim::clip;
use crate::optim::head_mask::HeadMask;
use crate::output::{Loss, Outputs};
use crate::params::{Params, Spec};
use config::Setup;
use coverage::Coverage;
pub use error::Error;
use heads::Mode;
use patience::Watch;
use record::{StepRecord, TaskRecord};
use seal::Seal;

/// An encoder with its task outputs, their optimiser and the number of steps made.
#[derive(Debug)]
pub struct Trainer {
    setup: Setup,
    params: Params,
    encoder: Encoder,
    outputs: Outputs,
    optimiser: AdamW,
    frozen: BTreeMap<String, &'static str>,
    heads: HeadMask,
    /// Gates of the forward pass while training, with [`Mode::Forward`].
    gates_lh: Option<Tensor>,
    /// What everything frozen was when training began.
    seal: Seal,
    coverage: Coverage,
    watch: Watch,
    device: Device,
}

impl Trainer {
    /// A trainer with fresh weights, drawn from `setup.train.seed`.
    ///
    /// # Errors
    /// When the settings contradict each other or the head mask.
    pub fn new(setup: Setup, device: &Device) -> Result<Self, Error> {
        setup.check()?;
        let params = Params::fresh(&specs(&setup), setup.train.seed, device)?;
        Trainer::over(setup, params, device)
    }

    /// A trainer whose encoder comes from a checkpoint folder; outputs are fresh. `setup.encoder` must have the
    /// checkpoint's sizes (see [`checkpoint::load`]); its dropout rates may differ.
    ///
    /// # Errors
    /// When the settings contradict each other, the head mask or the checkpoint.
    pub fn from_checkpoint(setup: Setup, dir: &Path, device: &Device) -> Result<Self, Error> {
        setup.check()?;
        if setup.train.heads.mode == Mode::Scratch {
            return Err(config::Error::Scratch.into());
        }
        let encoder = checkpoint::load(dir, device)?.params;
        let tensors = encoder.iter().map(|(name, tensor)| (name.to_owned(), tensor.clone())).collect();
        let encoder = Params::from_tensors(&Encoder::specs(&setup.encoder), tensors)?;
        let outputs = Outputs::specs(&setup.outputs, &setup.encoder, setup.sizes);
        let params = encoder.with(Params::fresh(&outputs, setup.train.seed, device)?);
        Trainer::over(setup, params, device)
    }

    fn over(setup: Setup, params: Params, device: &Device) -> Result<Self, Error> {
        let heads = setup.train.heads.over(setup.mask.as_ref());
        let frozen = coverage::frozen(&setup, &params, &heads)?;
        let params = params.freeze(|name| frozen.contains_key(name));
        let encoder = Encoder::new(&setup.encoder, &params)?;
        let outputs = Outputs::new(&setup.outputs, &setup.encoder, &params)?;
        let optimiser = AdamW::new(setup.train.adamw.clone(), &params, |name| !frozen.contains_key(name))?;
        let coverage = Coverage::new(&setup, &params, &frozen);
        let seal = Seal::of(&params, &frozen, &heads)?;
        let gates = setup.train.heads.gates(setup.mask.as_ref());
        let gates_lh = gates.map(|gates| gates.gates(device)).transpose()?;
        let (watch, device) = (Watch::default(), device.clone());
        Ok(Trainer {
            setup,
            params,
            encoder,
            outputs,
            optimiser,
            frozen,
            heads,
            gates_lh,
            seal,
            coverage,
            watch,
            device,
        })
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
        let grad_norm = clip::global_norm(&grads)?;
        if !grad_norm.is_finite() {
            return Err(wild_gradient(step, &grads, &losses)?);
        }
        self.coverage.see(step, batches.iter().map(|batch| batch.task), &grads)?;
        let (rate, scale) =
            (self.setup.train.schedule.rate(step), clip::factor(grad_norm, self.setup.train.clip_norm));
        let mut tasks = BTreeMap::new();
        for (task, loss) in &losses {
            tasks.insert(*task, TaskRecord::new(loss)?);
        }
        let before = self.heads.before(&self.params)?;
        self.optimiser.step(&self.params, grads, Update { rate, scale })?;
        self.heads.hold_back(&self.params, &before)?;
        let (tokens, rows) = (tokens.count(), tokens.spans.len());
        Ok(StepRecord { step, epoch, loss: total_loss, tasks, learning_rate: rate, grad_norm, tokens, rows })
    }

    /// Loss and accuracy of each task without dropout and without an update; under the gates of training, if it has any.
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
        let gates = self.gates_lh.as_ref().map_or(Gates::Open, Gates::Shared);
        let pass = Pass { gates, dropout };
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

    /// Gradients of all parameters that are not frozen; 0 in the heads that are.
    fn gradients(&self, total: &Tensor) -> Result<BTreeMap<String, Tensor>, Error> {
        let mut store = crate::nn::gradients::gradients(total)?;
        let trained = self.params.iter().filter(|(name, _)| !self.frozen.contains_key(*name));
        let mut grads =
            trained.filter_map(|(name, param)| Some((name.to_owned(), store.remove(param)?))).collect();
        self.heads.screen(&mut grads)?;
        Ok(grads)
    }

    /// Steps made so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.optimiser.updates
    }

    /// Parameters that are not trained, with the reason. Those of which only some heads are not are
    /// [`Trainer::frozen_heads`].
    #[must_use]
    pub fn frozen(&self) -> &BTreeMap<String, &'static str> {
        &self.frozen
    }

    /// Parameters that are trained but for some heads, with the heads that are frozen. In the account of what had a gradient, those
    /// slices count as frozen: one that is trained must have had one somewhere else.
    #[must_use]
    pub fn frozen_heads(&self) -> BTreeMap<&str, Vec<usize>> {
        let partly = self.heads.partly_frozen().into_iter();
        partly.filter(|(name, _)| !self.frozen.contains_key(*name)).collect()
    }

    /// [`Trainer::frozen`] and [`Trainer::frozen_heads`] in words: what is frozen of each parameter, and why.
    #[must_use]
    pub fn frozen_in_words(&self) -> BTreeMap<String, String> {
        let whole = self.frozen.iter().map(|(name, why)| (name.clone(), (*why).to_owned()));
        let partly = self.frozen_heads().into_iter().map(|(name, heads)| {
            (
                name.to_owned(),
                format!("the head mask keeps heads {} (from 0); the others are trained", listed(&heads)),
            )
        });
        whole.chain(partly).collect()
    }

    /// Whether everything frozen, to the bit, is what training began with. [`Trainer::save_checkpoint`] asks it as well.
    ///
    /// # Errors
    /// Names the first parameter, and its head, that is not.
    pub fn check_frozen(&self) -> Result<(), Error> {
        match self.seal.broken(&self.params, &self.heads)? {
            Some((parameter, head)) => Err(Error::Moved { parameter, head, step: self.steps() }),
            None => Ok(()),
        }
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
    /// When there is no whole state in `dir`, or it was made with other settings or another head mask than `setup` has.
    pub fn resume(setup: Setup, dir: &Path, device: &Device) -> Result<(Self, serde_json::Value), Error> {
        setup.check()?;
        state::load(setup, dir, device)
    }

    /// Writes the encoder as a Hugging Face folder, the outputs as `outputs.safetensors` beside it, and last
    /// `outputs.json`, which says what the outputs are. Nothing is written when something frozen has moved.
    ///
    /// # Errors
    /// When a file cannot be written, or [`Trainer::check_frozen`] has an error.
    pub fn save_checkpoint(&self, dir: &Path) -> Result<(), Error> {
        self.check_frozen()?;
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

/// What to say of gradients whose norm is not finite: the first parameter, and the tasks of the step.
fn wild_gradient(
    step: u64,
    grads: &BTreeMap<String, Tensor>,
    losses: &[(Task, Loss)],
) -> Result<Error, Error> {
    let tasks: Vec<&str> = losses.iter().map(|(task, _)| task.name()).collect();
    let (mut name, mut value) = ("all parameters together", f64::INFINITY);
    for (parameter, grad) in grads {
        let norm = clip::global_norm(&BTreeMap::from([(parameter.clone(), grad.clone())]))?;
        if !norm.is_finite() {
            (name, value) = (parameter, norm);
            break;
        }
    }
    let what = format!("the norm of the gradient of {name} (tasks of the step: {})", tasks.join(", "));
    Ok(Error::NotFinite { step, what, value })
}

#[cfg(test)]
mod tests;
