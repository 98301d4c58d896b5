//! Tasks of shards that take turns with the benchmarks of a recipe.

use std::collections::BTreeMap;

use anyhow::Context as _;
use batch::maps::expand::Map;
use batch::task::Task;
use kg::split::Part;
use model::output::shards::{self as outputs, OutputConfig, Sizes};
use model::output::{self, Batch, Decoder, Outline};
use serde_json::Value;
use tasks::shard::index::Index;
use tasks::stream::collate::Fill;
use tasks::stream::lane::Batching;
use tasks::stream::order::Shuffle;
use tasks::stream::schedule::Schedule;
use tasks::stream::steps::{Config, Shards, Stream, Worker};
use tasks::stream::window::Ahead;
use tasks::task::has_negatives;

use crate::engine::context::Context;
use crate::stage::shards;

/// Row groups that are shuffled together, as `stream.shuffle` has it without a key.
const WINDOW: usize = 16;

/// What a recipe says of a task of shards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Asked {
    pub(super) task: Task,
    /// The weight of its loss.
    pub(super) alpha: f64,
    /// Items of one batch: chunks of texts, pairs of names, or triples.
    pub(super) batch: usize,
}

/// A task of shards with its batches, without end.
pub(super) struct Sharded {
    pub(super) asked: Asked,
    /// Items of an epoch.
    pub(super) items: usize,
    /// What an encoder gets for it.
    pub(super) output: output::Output,
    /// Tokens of its longest row.
    pub(super) longest: usize,
    /// The maps that the recipe attends by; nothing is known of the rows of shards.
    maps: Vec<Map>,
    stream: Stream,
}

impl Sharded {
    /// The tasks of `source` that are asked for, in an order of `seed`, for an encoder that attends by `maps`.
    ///
    /// # Errors
    /// When the shards have no rows of one, or are damaged.
    pub(super) fn all(
        asked: &[Asked],
        source: &shards::Shards,
        maps: &[Map],
        seed: u64,
        context: &Context,
    ) -> anyhow::Result<Vec<Self>> {
        let folder = context.artifact("shards")?;
        let index = Index::read(folder)?;
        let redraw = asked
            .iter()
            .any(|of| has_negatives(of.task))
            .then(|| source.redraw(context, &index))
            .transpose()?;
        let redraw = redraw.flatten();
        let sizes = Sizes { relations: index.relations.len(), tags: index.classes.len() };
        // Words are predicted as in pretraining, whatever names they are of: a step has one task, and one output for all.
        let outputs = OutputConfig { entity: Decoder::MaskedLm, ..OutputConfig::default() };
        let each = asked.iter().map(|&asked| {
            let of_task = index.of_tasks(&[asked.task]);
            let redraw = redraw.clone().filter(|_| has_negatives(asked.task));
            let shards = Shards { redraw, ..Shards::in_folder(folder, &of_task) };
            let config = Config {
                part: Part::Train,
                seed,
                schedule: Schedule::Merged,
                batching: Batching::Items(asked.batch),
                shuffle: Shuffle::Window(WINDOW),
                fill: Fill::One,
                ahead: Ahead::default(),
            };
            let part = index.part(asked.task, Part::Train);
            let items = part.map_or(0, |part| part.items);
            Ok(Self {
                asked,
                items: usize::try_from(items)?,
                output: outputs.output(asked.task, sizes),
                longest: source.longest(&of_task),
                maps: maps.to_vec(),
                stream: Stream::new(&shards, &config, Worker::ONLY)
                    .with_context(|| format!("the shards of {}", asked.task.name()))?,
            })
        });
        each.collect()
    }

    /// The next batch.
    ///
    /// # Errors
    /// When a shard cannot be read.
    pub(super) fn advance(&mut self, outline: &Outline) -> anyhow::Result<Vec<Batch>> {
        let batches = self.stream.next_step()?;
        let batches = batches.iter().map(|batch| {
            let batch = outputs::batch(outline, batch)?;
            if self.maps.is_empty() {
                return Ok(batch);
            }
            Ok(Batch { rows: batch.rows.with_nothing_known(&self.maps)?, ..batch })
        });
        batches.collect()
    }
}

/// Where the streams stand, by task; nothing without streams.
pub(super) fn state(of: &[Sharded]) -> anyhow::Result<Value> {
    if of.is_empty() {
        return Ok(Value::Null);
    }
    let states: BTreeMap<&str, _> = of.iter().map(|of| (of.asked.task.name(), of.stream.state())).collect();
    Ok(serde_json::to_value(states)?)
}

/// Goes to where `state` was taken.
pub(super) fn resume(of: &mut [Sharded], state: &Value) -> anyhow::Result<()> {
    for of in of {
        let name = of.asked.task.name();
        let state = state.get(name).with_context(|| format!("the state has no stream of {name}"))?;
        of.stream.resume(&serde_json::from_value(state.clone())?)?;
    }
    Ok(())
}
