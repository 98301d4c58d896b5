//! The steps of a training: from where it stands to its last step or the end of patience, with states to go on from.

use std::path::Path;

use anyhow::Context as _;
use base::whole::write_whole;
use batch::Batch;
use kg::split::Part;
use model::train::Trainer;
use model::train::patience::{Best, Patience, Verdict};
use serde::{Deserialize, Serialize};
use tasks::stream::prefetch::Prefetched;
use tasks::stream::steps::{self, Shards, Stream, Worker};

use crate::engine::context::Context;
use crate::engine::progress::{Evaluation, Step, Steps};
use crate::stage::encoder::MODEL;
use crate::stage::training::{self, METRICS, Records, STATE};

/// The file with one line per look at held-out samples within the artifact.
pub(super) const HELD_OUT: &str = "held_out.jsonl";
/// The parameters that were not trained, with the reason, within the artifact.
pub(super) const FROZEN: &str = "frozen.json";
/// How training ended.
pub(super) const ENDED: &str = "training.json";

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
    /// The look whose encoder is kept; without patience it is the last step's.
    pub best: Option<Best>,
}

/// What a training goes by besides the trainer.
pub(super) struct Plan {
    /// Steps of an epoch.
    pub(super) steps_per_epoch: u64,
    /// Steps of all epochs.
    pub(super) planned: u64,
    /// Steps between states.
    pub(super) checkpoint_every: u64,
    /// What is looked at with patience, in the batches of one step after the other.
    pub(super) held_out: Vec<Vec<Batch>>,
    /// The patience, if there is any.
    pub(super) patience: Option<Patience>,
}

impl Plan {
    /// The files with a line for each step and look.
    pub(super) fn lines(&self) -> &'static [&'static str] {
        if self.held_out.is_empty() { &[METRICS] } else { &[METRICS, HELD_OUT] }
    }

    fn total(&self) -> Steps {
        training::total(self.planned, self.patience.as_ref())
    }
}

/// A training between two steps.
pub(super) struct Run {
    pub(super) trainer: Trainer,
    pub(super) stream: Prefetched,
    pub(super) records: Records,
}

impl Run {
    /// Steps until the end; then the encoder is in [`MODEL`], and the artifact is sealed.
    pub(super) fn run_to_the_end(mut self, context: &Context, plan: &Plan) -> anyhow::Result<()> {
        let ended = self.steps(context, plan).and_then(|stop| self.finish(context.out(), plan, stop));
        // Whatever failed, it is because of that if somebody took the folder away.
        ended.or_else(|error| self.records.check().and(Err(error)))?;
        training::seal(context.out())
    }

    fn steps(&mut self, context: &Context, plan: &Plan) -> anyhow::Result<Stop> {
        let Run { trainer, stream, records } = self;
        let state = context.out().join(STATE);
        let progress = context.progress();
        progress.training(plan.total(), trainer.steps());
        while trainer.steps() < plan.planned {
            context.check()?;
            let batches = progress.waiting(|| stream.next_step())?;
            let record = trainer.step(trainer.steps() / plan.steps_per_epoch, &batches)?;
            records.check()?;
            records.push(METRICS, &record)?;
            let (loss, learning_rate) = (record.loss, record.learning_rate);
            progress.trained(Step { loss, learning_rate, tokens: record.tokens as u64 });
            let last = trainer.steps() == plan.planned && !plan.held_out.is_empty();
            if trainer.evaluation_is_due() || last {
                let look = trainer.evaluated(plan.held_out.iter().cloned(), &state)?;
                records.push(HELD_OUT, &look)?;
                progress.evaluated(Evaluation { of: "held-out loss", value: look.loss });
                if look.verdict == Verdict::Stop {
                    return Ok(Stop::Patience);
                }
            }
            if trainer.steps().is_multiple_of(plan.checkpoint_every) {
                let along = records.along(serde_json::to_value(stream.state())?)?;
                trainer.save_state(&state, &along)?;
                training::state_is_there(context.out())?;
            }
        }
        Ok(Stop::AllEpochs)
    }

    fn finish(&mut self, out: &Path, plan: &Plan, stop: Stop) -> anyhow::Result<()> {
        self.records.sync()?;
        let trainer = &self.trainer;
        trainer.check_frozen()?;
        if plan.held_out.is_empty() {
            trainer.save_checkpoint(&out.join(MODEL))?;
        } else {
            trainer.save_best(&out.join(STATE), &out.join(MODEL))?;
        }
        write_whole(&out.join(FROZEN), &serde_json::to_vec_pretty(&trainer.frozen_reasons())?)?;
        let ended = Ended { steps: trainer.steps(), planned: plan.planned, stop, best: trainer.best() };
        Ok(write_whole(&out.join(ENDED), &serde_json::to_vec_pretty(&ended)?)?)
    }
}

/// The first held-out samples, in the batches of so many steps, at most those of one epoch.
pub(super) fn held_out(
    shards: &Shards<'_>,
    config: &steps::Config,
    most: usize,
) -> anyhow::Result<Vec<Vec<Batch>>> {
    let config = steps::Config { part: Part::Valid, ..*config };
    let mut stream = Stream::new(shards, &config, Worker::ONLY).context(
        "it evaluates on the part `valid` of the shards (split.parts decides whether there is one)",
    )?;
    let all = stream.steps_per_epoch().context("the stream of held-out samples does not know its steps")?;
    let steps = usize::try_from(all).unwrap_or(usize::MAX).min(most);
    (0..steps).map(|_| Ok(stream.next_step()?)).collect()
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
