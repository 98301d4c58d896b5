//! What a training on shards shows and is evaluated by: batches of a stream, and the loss of held-out samples.

use anyhow::Context as _;
use batch::task::Task;
use kg::split::Part;
use model::output::{Batch, Outline, shards};
use model::train::Trainer;
use model::train::patience::Measured;
use serde_json::Value;
use tasks::shard::index::Index;
use tasks::stream::prefetch::Prefetched;
use tasks::stream::steps::{self, Epochs, Shards, Stream, Worker};

use super::config::{LOSS, Patience};
use crate::stage::training::steps::{Batches, Evaluated, Evaluation};

/// The file with one line per evaluation on held-out samples within the artifact.
const HELD_OUT: &str = "held_out.jsonl";

/// The batches of a stream, some steps ahead.
pub(super) struct Streamed<'a> {
    stream: Prefetched,
    outline: &'a Outline,
    epochs: Epochs,
}

impl<'a> Streamed<'a> {
    /// A stream from where `state` left it after so many of its steps, each a micro-batch.
    pub(super) fn new(
        mut stream: Stream,
        outline: &'a Outline,
        ahead: usize,
        state: Option<Value>,
        steps: u64,
    ) -> anyhow::Result<Self> {
        let epochs = stream.epochs();
        if let Some(state) = state {
            stream.resume(&serde_json::from_value(state).context("the stream's state")?)?;
            anyhow::ensure!(
                stream.step() == steps,
                "the parameters have seen {steps} micro-batches and the stream has given {}",
                stream.step()
            );
        }
        Ok(Self { stream: Prefetched::new(stream, ahead)?, outline, epochs })
    }
}

impl Batches for Streamed<'_> {
    fn advance(&mut self) -> anyhow::Result<(u64, Vec<Batch>)> {
        let epoch = self.epochs.at(self.stream.state());
        Ok((epoch, read(self.outline, &self.stream.next_step()?)?))
    }

    fn state(&self) -> anyhow::Result<Value> {
        Ok(serde_json::to_value(self.stream.state())?)
    }
}

fn read(outline: &Outline, batches: &[batch::Batch]) -> anyhow::Result<Vec<Batch>> {
    // Where a batch has fewer items than there are ranks, some have none of them.
    batches.iter().filter(|batch| batch.rows > 0).map(|batch| Ok(shards::batch(outline, batch)?)).collect()
}

/// The stream of held-out samples.
///
/// # Errors
/// When the shards have none, or none of the task that is measured.
pub(super) fn held_out(
    shards: &Shards<'_>,
    config: &steps::Config,
    Patience { measure, .. }: &Patience,
) -> anyhow::Result<Stream> {
    let measured = measure.split_once('.').map(|(task, _)| task);
    let lacking = without_valid(shards.index).into_iter().find(|task| Some(task.name()) == measured);
    anyhow::ensure!(
        lacking.is_none(),
        "measure is {measure:?}, and the shards have no part `valid` of this task: split.parts makes it of triples, `valid` of files of texts"
    );
    let config = steps::Config { part: Part::Valid, ..*config };
    Stream::new(shards, &config, Worker::ONLY)
        .context("it evaluates on the part `valid` of the shards (of triples split.parts decides whether there is one, of texts `valid` of their files)")
}

/// The tasks of which nothing is held out.
pub(super) fn without_valid(index: &Index) -> Vec<Task> {
    let tasks = index.tasks.iter().filter(|of| of.part(Part::Valid).is_none());
    tasks.map(|of| of.task).collect()
}

/// Held-out samples, in the batches of one step after the other.
pub(super) struct HeldOut {
    batches: Vec<Vec<Batch>>,
    measure: String,
}

impl HeldOut {
    /// The first ones, in the batches of so many steps, at most those of one epoch.
    pub(super) fn new(
        shards: &Shards<'_>,
        config: &steps::Config,
        outline: &Outline,
        patience: &Patience,
    ) -> anyhow::Result<Self> {
        let mut stream = held_out(shards, config, patience)?;
        let mut batches = vec![];
        while batches.len() < patience.batches
            && let Some(step) = stream.next_step_of(0)?
        {
            batches.push(read(outline, &step)?);
        }
        Ok(Self { batches, measure: patience.measure.clone() })
    }

    /// Whether the losses of all tasks decide.
    pub(super) fn is_of_all(&self) -> bool {
        self.measure == LOSS
    }
}

impl Evaluation for HeldOut {
    fn file(&self) -> &'static str {
        HELD_OUT
    }

    fn name(&self) -> &'static str {
        if self.measure == LOSS { "held-out loss" } else { "held-out measure" }
    }

    fn evaluate(&self, trainer: &Trainer) -> anyhow::Result<Evaluated> {
        let (loss, tasks) = trainer.held_out_loss(self.batches.iter().map(Vec::as_slice))?;
        let measured = match self.measure.split_once('.') {
            None => Some(loss),
            Some((task, measure)) => tasks.get(task).and_then(|of| match measure {
                "accuracy" => of.accuracy.map(Measured::Score),
                _ => Some(Measured::Loss(of.loss)),
            }),
        };
        let measured = measured.with_context(|| {
            format!(
                "the part `valid` has nothing for patience.measure = {:?}: raise patience.batches",
                self.measure
            )
        })?;
        Ok(Evaluated { measured, tasks: Some(serde_json::to_value(tasks)?) })
    }
}
