//! Fine-tuning: an encoder with outputs of downstream tasks, trained on rows of tokens.

pub mod config;
pub mod record;

use std::collections::BTreeMap;
use std::path::Path;

use base::rng::CounterRng;
use batch::rows::Rows;
use candle_core::{Device, Tensor};
use serde_json::Value;

use super::best;
use super::core::{Core, Weighed, begin_with, finite};
use super::error;
use super::patience::{Verdict, Watch};
use super::state::{self, Kept};
use crate::Error;
use crate::attention::label;
use crate::checkpoint::{self, Kind, OUTPUTS_VERSION};
use crate::encoder::tokens::Tokens;
use crate::nn::scalars;
use crate::output::downstream::Outputs;
pub use crate::output::downstream::{Batch, Group, Outline, Output, RankLoss, Targets, Task};
use crate::params::Params;
use crate::predict::{self, Predictor};
pub use config::{Config, Setup};
pub use record::{Best, StepRecord, TaskRecord};

/// An encoder with the outputs of its tasks, their optimiser and the number of steps made.
#[derive(Debug)]
pub struct Finetuner {
    setup: Setup,
    outputs: Outputs,
    core: Core,
    /// The same parameters without gradients: what answers.
    predictor: Predictor,
    watch: Watch<Best>,
}

impl Finetuner {
    /// One with fresh weights, drawn from `setup.train.seed`.
    ///
    /// # Errors
    /// When the settings contradict each other or the gates.
    pub fn new(setup: Setup, device: &Device) -> Result<Self, Error> {
        setup.check()?;
        let params = Params::fresh(&setup.specs(), setup.train.seed, device)?;
        Finetuner::over(setup, params, device)
    }

    /// One whose encoder comes from a checkpoint folder; outputs are fresh. `setup.encoder` must have the checkpoint's sizes (see
    /// [`checkpoint::load`]); its dropout rates may differ.
    ///
    /// # Errors
    /// When the settings contradict each other, the gates or the checkpoint.
    pub fn from_checkpoint(setup: Setup, dir: &Path, device: &Device) -> Result<Self, Error> {
        setup.check()?;
        let outputs = setup.outline.specs(&setup.encoder);
        let params = begin_with(dir, &setup.encoder, &outputs, setup.train.seed, device)?;
        Finetuner::over(setup, params, device)
    }

    fn over(setup: Setup, params: Params, device: &Device) -> Result<Self, Error> {
        let core = Core::new(setup.plan(&params)?, params, device)?;
        let outputs = Outputs::new(&setup.outline, &core.params)?;
        let predictor = Predictor::over(&setup.encoder, &setup.outline, &core.params, device)?;
        let predictor = match &setup.gates {
            Some(gates) => predictor.with_gates(gates.clone())?,
            None => predictor,
        };
        Ok(Finetuner { setup, outputs, core, predictor, watch: Watch::new() })
    }

    /// One update from at most one batch of each task; batches of tasks with alpha 0 are skipped. All rows go through the encoder
    /// together. `epoch` only goes into the record.
    ///
    /// # Errors
    /// When a batch does not fit, a loss or gradient is not finite, or, once every task has had a batch, a parameter that is not
    /// frozen has had no gradient. The parameters are then as before the step.
    pub fn step(&mut self, epoch: u64, batches: &[Batch]) -> Result<StepRecord, Error> {
        let (step, dropout) = (self.steps() + 1, self.core.dropout());
        let batches = self.active(step, batches)?;
        let tokens = predict::tokens(&self.setup.outline, &batches, &self.setup.encoder, &self.core.device)?;
        let losses = self.losses(&batches, &tokens, dropout)?;
        let of_labels = self.outputs.own_loss(&*self.core.attention)?;
        let task = |batch: &Batch| &self.setup.outline.tasks[batch.task];
        let mut weighed: Vec<Weighed<'_>> = vec![];
        for (batch, loss) in batches.iter().zip(&losses) {
            let Task { name, alpha, .. } = task(batch);
            weighed.push(Weighed { task: name, alpha: *alpha, loss });
            // Labels are those of the one task, whose alpha scales their loss too.
            weighed.extend(of_labels.iter().map(|loss| Weighed { task: "the labels", alpha: *alpha, loss }));
        }
        let (total, loss) = self.core.total(step, &weighed)?;
        let names: Vec<&str> = batches.iter().map(|batch| task(batch).name.as_str()).collect();
        let tasks = records(&names, &batches, &losses)?;
        let labels = of_labels.map(|loss| scalars::read(&[&loss])).transpose()?.and_then(|mut of| of.pop());
        let made = self.core.update(&total, &names)?;
        let (tokens, rows) = (tokens.count(), tokens.spans.len());
        let (learning_rate, grad_norm) = (made.rate, made.grad_norm);
        Ok(StepRecord { step, epoch, loss, tasks, labels, learning_rate, grad_norm, tokens, rows })
    }

    /// The loss of each batch's task without dropout and without an update, by name.
    ///
    /// # Errors
    /// When a batch does not fit.
    pub fn loss(&self, batches: &[Batch]) -> Result<BTreeMap<String, TaskRecord>, Error> {
        let batches = self.active(self.steps(), batches)?;
        let losses = self.predictor.losses(&batches)?;
        let names: Vec<&str> =
            batches.iter().map(|batch| self.setup.outline.tasks[batch.task].name.as_str()).collect();
        records(&names, &batches, &losses)
    }

    /// The batches that count.
    fn active<'a>(&self, step: u64, batches: &'a [Batch]) -> Result<Vec<&'a Batch>, Error> {
        let mut active: Vec<&Batch> = vec![];
        for batch in batches {
            let task = self.setup.outline.task(batch.task)?;
            if active.iter().any(|other| other.task == batch.task) {
                return Err(error::two_batches(step, task.name.clone()));
            }
            if task.alpha > 0.0 {
                active.push(batch);
            }
        }
        if active.is_empty() { Err(error::no_batch(step)) } else { Ok(active) }
    }

    fn losses(&self, batches: &[&Batch], tokens: &Tokens, dropout: CounterRng) -> Result<Vec<Tensor>, Error> {
        let x_nd = self.core.hidden(tokens, Some(dropout))?;
        let each = batches.iter().enumerate();
        each.map(|(i, batch)| {
            let rows = self.outputs.rows(tokens, i, batch.task);
            let logits_mc = self.outputs.logits(&x_nd, rows, batch.task, Some(dropout))?;
            Ok(self.outputs.loss(&logits_mc, batch)?)
        })
        .collect()
    }

    /// The logits of each row for a task, by its number: one of each class, or the one score. No dropout.
    ///
    /// # Errors
    /// When a row does not fit the encoder, or there is no such task.
    pub fn predict(&self, task: usize, rows: &Rows) -> Result<Vec<Vec<f32>>, Error> {
        self.predictor.logits(task, rows)
    }

    /// The model as it is after the steps made so far, without gradients; it follows later ones.
    #[must_use]
    pub fn predictor(&self) -> &Predictor {
        &self.predictor
    }

    /// Whether an evaluation on held-out samples is due after the steps made so far.
    #[must_use]
    pub fn evaluation_is_due(&self) -> bool {
        self.setup.train.patience.as_ref().is_some_and(|patience| patience.is_due(self.steps()))
    }

    /// Takes note of a score on held-out samples; higher is better. When it was never higher, writes a checkpoint into the folder of the
    /// state, `state`, where it stays until a state knows a better one. As high as before is not better.
    ///
    /// # Errors
    /// When the score is not finite, or the checkpoint cannot be written; the evaluation then never was.
    pub fn evaluated(&mut self, score: f64, state: &Path) -> Result<Verdict, Error> {
        let step = self.steps();
        finite(step, score, || "the score on held-out samples".to_owned())?;
        let mut watch = self.watch.clone();
        let higher = |look: &Best, best: &Best| look.score > best.score;
        let verdict = watch.see(Best { step, score }, higher, self.setup.train.patience.as_ref());
        if verdict == Verdict::Best {
            watch.files = best::keep(state, step, |dir| self.save_checkpoint(dir))?;
        }
        self.watch = watch;
        Ok(verdict)
    }

    /// The best evaluation so far: [`Finetuner::save_best`] gives its parameters.
    #[must_use]
    pub fn best(&self) -> Option<Best> {
        self.watch.best
    }

    /// Puts the checkpoint of the best evaluation, which lies in the folder `state`, where `dir` is, as [`Finetuner::save_checkpoint`] does with
    /// that of now.
    ///
    /// # Errors
    /// When it is not what was written, or a file cannot be written.
    pub fn save_best(&self, state: &Path, dir: &Path) -> Result<(), Error> {
        best::hand_over(state, &self.watch.files, dir)
    }

    /// Gives the labels that it attends with other embeddings `[m, d]` than those drawn, before the first step; see
    /// [`label::begin`].
    ///
    /// # Errors
    /// When it attends with no labels or other ones, or has made a step.
    pub fn begin_labels(&mut self, embeddings_md: &Tensor) -> Result<(), Error> {
        if self.steps() > 0 {
            return Err(Error::Misfit(format!(
                "after {steps} steps the embeddings of labels cannot begin anew; set them before the first step",
                steps = self.steps()
            )));
        }
        let embeddings_md = embeddings_md.to_device(&self.core.device)?;
        self.core.params.set(&label::name(), &embeddings_md)?;
        // Where labels are frozen, this is what they are frozen as.
        Ok(self.core.seal_again()?)
    }

    /// Steps made so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.core.steps()
    }

    /// All parameters: the encoder's, and the outputs' under `outputs.TASK.`.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.core.params
    }

    /// Parameters that are not trained, with the reason.
    #[must_use]
    pub fn frozen_reasons(&self) -> BTreeMap<String, String> {
        self.core.frozen_reasons()
    }

    /// Whether everything frozen, to the bit, is what training began with. [`Finetuner::save_checkpoint`] asks it as well.
    ///
    /// # Errors
    /// Names the first parameter that is not.
    pub fn check_frozen(&self) -> Result<(), Error> {
        self.core.check_frozen()
    }

    /// Writes the state to resume from into `dir`, which is made if only it is missing, with what the caller keeps `along` with it; that is
    /// handed back by [`Finetuner::resume`]. A crash leaves the old state or the new one.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn save_state(&self, dir: &Path, along: &Value) -> Result<(), Error> {
        let (watch, along) = (state::to_json(dir, &self.watch)?, along.clone());
        state::save(&self.core, dir, self.setup.run()?, Kept { watch, best: &self.watch.files, along })
    }

    /// One as it was when its state was written, with what was given as `along`. The same batches then give the same bits on the same
    /// machine.
    ///
    /// # Errors
    /// When there is no whole state in `dir`, any of its files is not what was written, or it was made with other settings or other gates than `setup` has.
    pub fn resume(setup: Setup, dir: &Path, device: &Device) -> Result<(Self, Value), Error> {
        setup.check()?;
        let (loaded, params) = state::load(dir, &setup.run()?, &setup.specs(), device)?;
        let mut finetuner = Finetuner::over(setup, params, device)?;
        finetuner.watch = loaded.watch()?;
        let along = loaded.restore(&mut finetuner.core)?;
        Ok((finetuner, along))
    }

    /// Writes a folder that [`Predictor::load`] and `transformers` read: the encoder, the outputs beside it and what they are. It takes the
    /// place of a checkpoint in `dir` as a whole; other files there stay. Nothing is written when something frozen has moved.
    ///
    /// # Errors
    /// When a file cannot be written, or [`Finetuner::check_frozen`] has an error.
    pub fn save_checkpoint(&self, dir: &Path) -> Result<(), Error> {
        self.check_frozen()?;
        let index = predict::Index {
            version: OUTPUTS_VERSION,
            kind: Kind::Finetune,
            step: self.steps(),
            outputs: self.setup.outline.clone(),
            gates: self.setup.gates.clone(),
        };
        let index = state::to_json(&dir.join(checkpoint::OUTPUTS_FILE), &index)?;
        checkpoint::save_finished(dir, &self.setup.encoder, &self.core.params, &index)
    }
}

fn records(
    names: &[&str],
    batches: &[&Batch],
    losses: &[Tensor],
) -> Result<BTreeMap<String, TaskRecord>, Error> {
    let values = scalars::read(&losses.iter().collect::<Vec<_>>())?;
    let each = names.iter().zip(batches).zip(values);
    let record = |((name, batch), loss): ((&&str, &&Batch), f64)| {
        ((*name).to_owned(), TaskRecord { loss, samples: batch.targets.samples() })
    };
    Ok(each.map(record).collect())
}

#[cfg(test)]
pub(crate) mod tests;
