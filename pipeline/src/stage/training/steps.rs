//! The one loop of all trainings: from where one stands to its last step or the end of patience, with evaluations, states to go on from, lines and
//! progress. A stage gives it a setup, batches and, if there is one, an evaluation.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use base::whole::write_whole;
use model::Device;
use model::output::Batch;
use model::train::collective::peers::Peer;
use model::train::patience::{Best, Measured, Verdict};
use model::train::writer::Writer;
use model::train::{Next, Setup, StepRecord, Trainer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Found, METRICS, Records, STATE, drop_state, found, refused, seal, state_is_there, stream_of, total,
};
use crate::engine::context::Context;
use crate::engine::progress::{self, Step};
use crate::engine::ranks::{Joined, Others};
use crate::stage::encoder::MODEL;

/// The parameters that were not trained, with the reason, within the artifact.
pub(in crate::stage) const FROZEN: &str = "frozen.json";
/// How training ended.
const ENDED: &str = "training.json";

/// Why there was no further step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stop {
    /// All epochs were trained.
    AllEpochs,
    /// Held-out samples had not become better for long.
    Patience,
}

/// How training ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ended {
    /// Steps made.
    pub steps: u64,
    /// Steps of all epochs.
    pub planned: u64,
    /// Why there was no further one.
    pub stop: Stop,
    /// The evaluation whose model is kept; without any it is the last step's.
    pub best: Option<Best>,
}

/// What is shown.
pub(in crate::stage) trait Batches {
    /// The epoch and the batches of the next micro-batch.
    ///
    /// # Errors
    /// When one cannot be put together.
    fn advance(&mut self) -> anyhow::Result<(u64, Vec<Batch>)>;

    /// Where they stand, for a state; nothing where the number of micro-batches says it.
    ///
    /// # Errors
    /// When JSON cannot hold it.
    fn state(&self) -> anyhow::Result<Value> {
        Ok(Value::Null)
    }
}

/// What an evaluation on held-out samples found.
pub(in crate::stage) struct Evaluated {
    /// What the model that is kept is chosen by.
    pub(in crate::stage) measured: Measured,
    /// What is told of each task, if anything is.
    pub(in crate::stage) tasks: Option<Value>,
}

/// How a model is evaluated now and then.
pub(in crate::stage) trait Evaluation {
    /// The file with a line for each evaluation.
    fn file(&self) -> &'static str;

    /// What is measured, in words.
    fn name(&self) -> &'static str;

    /// Evaluates the model as it is.
    ///
    /// # Errors
    /// When a sample does not fit it.
    fn evaluate(&self, trainer: &Trainer) -> anyhow::Result<Evaluated>;
}

/// How long a training is.
#[derive(Debug, Clone, Copy)]
pub(in crate::stage) struct Planned {
    /// Micro-batches of all epochs.
    micro_batches: u64,
    /// Micro-batches of a step; the last one may have fewer.
    accumulate: u64,
    /// Steps of all epochs, or fewer.
    pub(in crate::stage) steps: u64,
}

impl Planned {
    /// All epochs, or `max_steps`, where these are fewer.
    pub(in crate::stage) fn new(micro_batches: u64, accumulate: u64, max_steps: Option<u64>) -> Self {
        let all = micro_batches.div_ceil(accumulate);
        Self { micro_batches, accumulate, steps: max_steps.map_or(all, |most| most.min(all)) }
    }

    /// Micro-batches of so many steps.
    fn shown_by(self, steps: u64) -> u64 {
        steps.saturating_mul(self.accumulate).min(self.micro_batches)
    }

    /// Micro-batches of all its steps.
    pub(in crate::stage) fn shown(self) -> u64 {
        self.shown_by(self.steps)
    }
}

/// A training.
pub(in crate::stage) struct Training<'a> {
    pub(in crate::stage) context: &'a Context,
    pub(in crate::stage) setup: Setup,
    pub(in crate::stage) device: &'a Device,
    pub(in crate::stage) planned: Planned,
    /// Steps between states.
    pub(in crate::stage) checkpoint_every: u64,
    pub(in crate::stage) evaluation: Option<&'a dyn Evaluation>,
    /// Whether other processes take a share of every batch.
    pub(in crate::stage) sharing: Sharing,
}

/// Whether the processes that were started together share the batches of a training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::stage) enum Sharing {
    /// Each takes its part of every batch.
    Batches,
    /// Rank 0 trains alone.
    Nothing,
}

/// What rank 0 tells the others of a training.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Begins {
    /// With fresh weights, or those of a checkpoint.
    Anew,
    /// Where its last state stands.
    FromState,
}

impl Training<'_> {
    /// Trains unless it has been done, and leaves nothing to resume from: the model is in [`MODEL`], and the artifact is sealed. `begin` makes the
    /// trainer of a training that begins, `batches` what is shown from where a state, and the number of micro-batches, left it.
    pub(in crate::stage) fn to_the_end<B: Batches>(
        &self,
        begin: impl FnOnce(Setup) -> anyhow::Result<Trainer>,
        batches: impl FnOnce(Option<Value>, u64) -> anyhow::Result<B>,
    ) -> anyhow::Result<()> {
        let _turn = self.others().map(Others::turn);
        let trained = self.train(begin, batches);
        if let (Err(_), Some(others)) = (&trained, self.others()) {
            others.release(self.context.stage());
        }
        trained
    }

    fn train<B: Batches>(
        &self,
        begin: impl FnOnce(Setup) -> anyhow::Result<Trainer>,
        batches: impl FnOnce(Option<Value>, u64) -> anyhow::Result<B>,
    ) -> anyhow::Result<()> {
        let out = self.context.out();
        let lines = self.lines();
        let (trainer, mut records, batches) = match found(self.context, &lines)? {
            // A kill between the end of training and that of the stage does not cost the training.
            Found::Ended => return drop_state(out),
            Found::Nothing => {
                let trainer = self.among(begin(self.setup.clone())?, Begins::Anew)?;
                (trainer, Records::begin(out, &lines)?, batches(None, 0)?)
            }
            Found::State => {
                let resumed = self.resumed(batches).with_context(|| refused(self.context))?;
                let (trainer, records, batches) = resumed;
                // Not before it is known to be good: what is left of a damaged state stays as it is.
                state_is_there(out)?;
                (self.among(trainer, Begins::FromState)?, records, batches)
            }
        };
        let ended = self.steps(trainer, &mut records, batches);
        // Whatever failed, it is because of that if somebody took the folder away.
        ended.or_else(|error| records.check().and(Err(error)))?;
        seal(out)?;
        drop_state(out)
    }

    /// The processes that take a share of every batch.
    fn others(&self) -> Option<&Others> {
        self.context.others().filter(|_| self.sharing == Sharing::Batches)
    }

    /// The trainer as that of rank 0, if there are other ranks; they are told how it begins.
    fn among(&self, trainer: Trainer, begins: Begins) -> anyhow::Result<Trainer> {
        let world = self.context.others().map_or(1, Others::world);
        let Some(others) = self.others() else {
            if world > 1 {
                self.context.record("ranks", format!("rank 0 alone, of {world}"));
            }
            return Ok(trainer);
        };
        self.context.record("ranks", world);
        let joined = others.call(self.context.stage(), self.context.out(), serde_json::to_value(begins)?)?;
        Ok(trainer.among(self.peer(joined))?)
    }

    /// The rank that this process is in the training.
    fn peer(&self, joined: Joined) -> Arc<Peer> {
        let Joined { rank, world, conversation, streams } = joined;
        let cancel = self.context.progress().cancel().clone();
        Arc::new(Peer::new(rank, world, conversation, streams).until(cancel))
    }

    /// Does another rank's part of a training: the same steps of its share of the batches, without evaluations, lines or states. `more` is what rank 0 has said.
    pub(in crate::stage) fn follow<B: Batches>(
        &self,
        joined: Joined,
        more: &Value,
        begin: impl FnOnce(Setup) -> anyhow::Result<Trainer>,
        batches: impl FnOnce(Option<Value>, u64) -> anyhow::Result<B>,
    ) -> anyhow::Result<()> {
        let peer = self.peer(joined);
        let (trainer, mut batches) = match Begins::deserialize(more)? {
            Begins::Anew => (begin(self.setup.clone())?, batches(None, 0)?),
            Begins::FromState => {
                let state = self.context.out().join(STATE);
                let (trainer, along) = Trainer::resume(self.setup.clone(), &state, self.device)?;
                let shown = self.planned.shown_by(trainer.steps());
                (trainer, batches(Some(stream_of(&state, &along)?), shown)?)
            }
        };
        let mut trainer = trainer.among(peer)?;
        while trainer.steps() < self.planned.steps {
            self.context.check()?;
            if trainer.next(Next::Step)? == Next::Stop {
                break;
            }
            let (epoch, micro) = self.micro_batches_of(trainer.steps(), &mut batches)?;
            trainer.advance(epoch, &micro)?;
        }
        trainer.settle()?;
        Ok(())
    }

    /// The files with a line for each step and evaluation.
    fn lines(&self) -> Vec<&'static str> {
        std::iter::once(METRICS).chain(self.evaluation.map(Evaluation::file)).collect()
    }

    /// Where an interrupted run left it.
    fn resumed<B>(
        &self,
        batches: impl FnOnce(Option<Value>, u64) -> anyhow::Result<B>,
    ) -> anyhow::Result<(Trainer, Records, B)> {
        let out = self.context.out();
        let (trainer, along) = Trainer::resume(self.setup.clone(), &out.join(STATE), self.device)?;
        let (records, state) = Records::resume(out, &self.lines(), &along)?;
        let batches = batches(Some(state), self.planned.shown_by(trainer.steps()))
            .with_context(|| out.join(STATE).display().to_string())?;
        Ok((trainer, records, batches))
    }

    fn steps(
        &self,
        mut trainer: Trainer,
        records: &mut Records,
        mut batches: impl Batches,
    ) -> anyhow::Result<()> {
        let (out, progress) = (self.context.out(), self.context.progress());
        let state = out.join(STATE);
        progress.training(total(self.planned.steps, self.setup.train.patience.as_ref()), trainer.steps());
        let (mut stop, mut writer) = (Stop::AllEpochs, Writer::default());
        while trainer.steps() < self.planned.steps {
            self.context.check()?;
            trainer.next(Next::Step)?;
            let (epoch, micro) = progress.waiting(|| self.micro_batches_of(trainer.steps(), &mut batches))?;
            let landed = trainer.advance(epoch, &micro)?;
            self.told(records, &landed)?;
            let stored = trainer.steps().is_multiple_of(self.checkpoint_every);
            if stored || trainer.evaluation_is_due() || trainer.steps() == self.planned.steps {
                // What goes by the weights waits for the device; nothing else does.
                self.told(records, &trainer.settle()?)?;
            }
            if self.evaluate(&mut trainer, records)? == Some(Verdict::Stop) {
                stop = Stop::Patience;
                if trainer.steps() < self.planned.steps {
                    // Who has made all steps does not ask for another.
                    trainer.next(Next::Stop)?;
                }
                break;
            }
            if stored {
                written(&mut writer, out)?;
                writer.write(trainer.snapshot(&state, &records.along(batches.state()?)?)?)?;
            }
        }
        written(&mut writer, out)?;
        self.finish(&trainer, records, stop)
    }

    /// Writes down what steps have said.
    fn told(&self, records: &mut Records, landed: &[StepRecord]) -> anyhow::Result<()> {
        records.check()?;
        for record in landed {
            records.push(METRICS, record)?;
            let (loss, learning_rate) = (record.loss, record.learning_rate);
            self.context.progress().trained(Step { loss, learning_rate, tokens: record.tokens as u64 });
        }
        Ok(())
    }

    /// The epoch and the micro-batches of the step after so many.
    fn micro_batches_of(
        &self,
        steps: u64,
        batches: &mut impl Batches,
    ) -> anyhow::Result<(u64, Vec<Vec<Batch>>)> {
        let (epoch, first) = batches.advance()?;
        let mut micro = vec![first];
        for _ in self.planned.shown_by(steps) + 1..self.planned.shown_by(steps + 1) {
            micro.push(batches.advance()?.1);
        }
        Ok((epoch, micro))
    }

    /// Evaluates the model where that is due.
    fn evaluate(&self, trainer: &mut Trainer, records: &mut Records) -> anyhow::Result<Option<Verdict>> {
        let due = trainer.evaluation_is_due() || trainer.steps() == self.planned.steps;
        let Some(evaluation) = self.evaluation.filter(|_| due) else { return Ok(None) };
        let Evaluated { measured, tasks } = evaluation.evaluate(trainer)?;
        let verdict = trainer.evaluated(measured, &self.context.out().join(STATE))?;
        let mut line = json!(Best { step: trainer.steps(), measured });
        line["verdict"] = json!(verdict);
        if let Some(tasks) = tasks {
            line["tasks"] = tasks;
        }
        records.push(evaluation.file(), &line)?;
        let value = measured.value();
        self.context.progress().evaluated(progress::Evaluation { of: evaluation.name(), value });
        Ok(Some(verdict))
    }

    /// Leaves the model, what was frozen, and how training ended.
    fn finish(&self, trainer: &Trainer, records: &mut Records, stop: Stop) -> anyhow::Result<()> {
        let out = self.context.out();
        records.sync()?;
        trainer.check_frozen()?;
        match trainer.best() {
            None => trainer.save_checkpoint(&out.join(MODEL))?,
            Some(_) => trainer.save_best(&out.join(STATE), &out.join(MODEL))?,
        }
        write_whole(&out.join(FROZEN), &serde_json::to_vec_pretty(&trainer.frozen_reasons())?)?;
        let ended = Ended { steps: trainer.steps(), planned: self.planned.steps, stop, best: trainer.best() };
        Ok(write_whole(&out.join(ENDED), &serde_json::to_vec_pretty(&ended)?)?)
    }
}

/// Waits for the state that is being written.
fn written(writer: &mut Writer, out: &Path) -> anyhow::Result<()> {
    if writer.wait()? {
        state_is_there(out)?;
    }
    Ok(())
}

/// How the training of an artifact ended.
///
/// # Errors
/// When it did not.
pub(crate) fn ended(folder: &Path) -> anyhow::Result<Ended> {
    let path = folder.join(ENDED);
    let bytes = std::fs::read(&path).with_context(|| format!("{}: cannot read it", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| path.display().to_string())
}
