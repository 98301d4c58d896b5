//! Steps over batches of several tasks: losses, gradients, updates, and a state to resume from.

mod best;
pub mod config;
mod core;
mod coverage;
mod error;
pub mod finetune;
mod frozen;
pub mod heads;
pub mod patience;
pub mod record;
mod seal;
mod state;

use std::collections::BTreeMap;
use std::path::Path;

use base::rng::CounterRng;
use batch::Batch;
use batch::task::Task;
use candle_core::{Device, Tensor};
use serde_json::{Value, json};

use crate::Error;
use crate::checkpoint::{self, Kind, OUTPUTS_VERSION};
use crate::encoder::tokens::Tokens;
use crate::output::{Loss, Outputs};
use crate::params::Params;
use config::Setup;
use core::{Core, Weighed, begin_with};
use heads::Mode;
use patience::{Best, Watch};
use record::{StepRecord, TaskRecord};
use state::Kept;

/// An encoder with its task outputs, their optimiser and the number of steps made.
#[derive(Debug)]
pub struct Trainer {
    setup: Setup,
    outputs: Outputs,
    core: Core,
    watch: Watch<Best>,
}

impl Trainer {
    /// A trainer with fresh weights, drawn from `setup.train.seed`.
    ///
    /// # Errors
    /// When the settings contradict each other or the head mask.
    pub fn new(setup: Setup, device: &Device) -> Result<Self, Error> {
        setup.check()?;
        let params = Params::fresh(&setup.specs(), setup.train.seed, device)?;
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
            return Err(Error::Misfit("train.heads.mode is scratch, which begins with fresh weights: leave the checkpoint out, or use the mode none".to_owned()));
        }
        let outputs = setup.output_specs();
        let params = begin_with(dir, &setup.encoder, &outputs, setup.train.seed, device)?;
        Trainer::over(setup, params, device)
    }

    fn over(setup: Setup, params: Params, device: &Device) -> Result<Self, Error> {
        let core = Core::new(setup.plan(&params)?, params, device)?;
        let outputs = Outputs::new(&setup.outputs, &setup.encoder, &core.params)?;
        Ok(Trainer { setup, outputs, core, watch: Watch::new() })
    }

    /// One update from at most one batch of each task; batches of tasks with alpha 0 are skipped. `epoch` only goes
    /// into the record.
    ///
    /// # Errors
    /// When a batch does not fit, a loss or gradient is not finite, or, once every task has had a batch, a parameter that is not
    /// frozen has had no gradient. The parameters are then as before the step.
    pub fn step(&mut self, epoch: u64, batches: &[Batch]) -> Result<StepRecord, Error> {
        let (step, dropout) = (self.steps() + 1, self.core.dropout());
        let (batches, tokens) = self.read(step, batches)?;
        let losses = self.losses(&batches, &tokens, Some(dropout))?;
        let (total, loss) = self.total(step, &losses)?;
        let tasks = TaskRecord::of(&losses)?;
        let names: Vec<&str> = losses.iter().map(|(task, _)| task.name()).collect();
        let made = self.core.update(&total, &names)?;
        let (tokens, rows) = (tokens.count(), tokens.spans.len());
        let (learning_rate, grad_norm) = (made.rate, made.grad_norm);
        Ok(StepRecord { step, epoch, loss, tasks, learning_rate, grad_norm, tokens, rows })
    }

    /// Loss and accuracy of each task without dropout and without an update; under the gates of training, if it has any.
    ///
    /// # Errors
    /// When a batch does not fit.
    pub fn evaluate(&self, batches: &[Batch]) -> Result<BTreeMap<Task, TaskRecord>, Error> {
        let (batches, tokens) = self.read(self.steps(), batches)?;
        let losses = self.losses(&batches, &tokens, None)?;
        Ok(TaskRecord::of(&losses)?)
    }

    /// The batches that count and their tokens.
    fn read<'a>(&self, step: u64, batches: &'a [Batch]) -> Result<(Vec<&'a Batch>, Tokens), Error> {
        // A task without a weight stays in: it has no output, which is an error and not to be skipped.
        let counts = |batch: &&Batch| self.setup.train.alphas.of(batch.task) != Some(0.0);
        let active: Vec<&Batch> = batches.iter().filter(counts).collect();
        if active.is_empty() {
            return Err(error::no_batch(step));
        }
        if let Some(twice) =
            Task::ALL.iter().find(|task| active.iter().filter(|b| b.task == **task).count() > 1)
        {
            return Err(error::two_batches(step, twice.name().to_owned()));
        }
        let tokens = Tokens::new(&active, &self.setup.encoder, &self.core.device)?;
        Ok((active, tokens))
    }

    /// The loss of each batch, all rows of all batches in one pass through the encoder.
    fn losses(
        &self,
        batches: &[&Batch],
        tokens: &Tokens,
        dropout: Option<CounterRng>,
    ) -> Result<Vec<(Task, Loss)>, Error> {
        let x_nd = &self.core.hidden(tokens, dropout)?;
        let each = batches.iter().enumerate();
        each.map(|(i, batch)| Ok((batch.task, self.outputs.loss(x_nd, tokens, i, batch, dropout)?))).collect()
    }

    /// The weighted sum of the losses, as a tensor and as a number.
    fn total(&self, step: u64, losses: &[(Task, Loss)]) -> Result<(Tensor, f64), Error> {
        let alpha = |task: Task| self.setup.train.alphas.of(task).unwrap_or(0.0);
        let weighed = losses.iter().map(|(task, of)| Weighed {
            task: task.name(),
            alpha: alpha(*task),
            loss: &of.loss,
        });
        self.core.total(step, &weighed.collect::<Vec<_>>())
    }

    /// Steps made so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.core.steps()
    }

    /// Parameters that are not trained, with the reason. Those of which only some heads are not are
    /// [`Trainer::frozen_heads`].
    #[must_use]
    pub fn frozen(&self) -> &BTreeMap<String, &'static str> {
        &self.core.plan.frozen
    }

    /// Parameters that are trained but for some heads, with the heads that are frozen. In the account of what had a gradient, those
    /// slices count as frozen: one that is trained must have had one somewhere else.
    #[must_use]
    pub fn frozen_heads(&self) -> BTreeMap<&str, Vec<usize>> {
        self.core.frozen_heads()
    }

    /// [`Trainer::frozen`] and [`Trainer::frozen_heads`] formatted: what is frozen of each parameter, and why.
    #[must_use]
    pub fn frozen_reasons(&self) -> BTreeMap<String, String> {
        self.core.frozen_reasons()
    }

    /// Whether everything frozen, to the bit, is what training began with. [`Trainer::save_checkpoint`] asks it as well.
    ///
    /// # Errors
    /// Names the first parameter, and its head, that is not.
    pub fn check_frozen(&self) -> Result<(), Error> {
        self.core.check_frozen()
    }

    /// All parameters: the encoder's, and the outputs' under `outputs.`.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.core.params
    }

    /// Writes the state to resume from into `dir`, which is made if only it is missing, with what the caller keeps `along` with it; that is
    /// handed back by [`Trainer::resume`]. A crash leaves the old state or the new one.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn save_state(&self, dir: &Path, along: &Value) -> Result<(), Error> {
        let (watch, along) = (state::to_json(dir, &self.watch)?, along.clone());
        state::save(&self.core, dir, self.setup.run()?, Kept { watch, best: &self.watch.files, along })
    }

    /// A trainer as it was when its state was written, with what was given as `along`. The same batches then give the
    /// same bits on the same machine.
    ///
    /// # Errors
    /// When there is no whole state in `dir`, any of its files is not what was written, or it was made with other settings or another head mask than `setup` has.
    pub fn resume(setup: Setup, dir: &Path, device: &Device) -> Result<(Self, Value), Error> {
        setup.check()?;
        let (loaded, params) = state::load(dir, &setup.run()?, &setup.specs(), device)?;
        let mut trainer = Trainer::over(setup, params, device)?;
        trainer.watch = loaded.watch()?;
        let along = loaded.restore(&mut trainer.core)?;
        Ok((trainer, along))
    }

    /// Writes the encoder as a Hugging Face folder with the outputs beside it ([`checkpoint::OUTPUTS_FILE`] says what they are). It takes the
    /// place of a checkpoint in `dir` as a whole; other files there stay. Nothing is written when something frozen has moved.
    ///
    /// # Errors
    /// When a file cannot be written, or [`Trainer::check_frozen`] has an error.
    pub fn save_checkpoint(&self, dir: &Path) -> Result<(), Error> {
        self.check_frozen()?;
        let Setup { encoder, outputs, sizes, .. } = &self.setup;
        let (kind, step) = (Kind::Kimera, self.steps());
        let index = json!({
            "version": OUTPUTS_VERSION, "kind": kind, "step": step, "outputs": outputs, "sizes": sizes,
        });
        checkpoint::save_finished(dir, encoder, &self.core.params, &index)
    }
}

#[cfg(test)]
pub(crate) mod tests;
