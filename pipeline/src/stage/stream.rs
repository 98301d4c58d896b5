//! The stream's part of a config: in which order a trainer sees samples.

use kg::split::Part;
use model::range::TEMPERATURE;
use serde::{Deserialize, Serialize};
use tasks::stream::collate::Fill;
use tasks::stream::lane::Batching;
use tasks::stream::order::Shuffle;
use tasks::stream::schedule::Schedule;
use tasks::stream::steps;
use tasks::stream::window::Ahead;

use super::LONGEST;
use crate::config::range::{MANY, number, whole};

/// Threads, and windows or steps that may wait in memory.
const MOST: u64 = 1024;

/// The stream's part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Stream {
    /// How tasks take turns.
    ///
    /// Source: KIMERA, section 2.2: each step's loss is a weighted sum over all tasks. In `[pretrain]`, `merged`.
    pub schedule: Schedule,
    /// Which triples make a step; the triplet task has more rows than triples. Counts are up to 1,000,000.
    ///
    /// Source: `{ items = 32 }`, as in MT-BERT (section 4.2) and BERT's `run_classifier.py`; KIMERA names no size for retraining.
    pub batching: Batching,
    /// How many row groups are shuffled together, or none.
    ///
    /// Source: `{ window = 16 }`, ours: mixes 32,768 triples of default shards with little memory.
    pub shuffle: Shuffle,
    /// Pack several samples into rows of this many positions, up to 65,534; left out, each sample has its own row. Either way the trainer does not
    /// compute padding.
    pub pack: Option<usize>,
    /// Windows to prefetch, and reader threads. Not part of any fingerprint: batches do not depend on it.
    #[serde(skip_serializing)]
    #[schemars(extend("default" = { "windows": 1, "threads": 1 }))]
    pub ahead: Ahead,
    /// Steps to prepare in advance, from 1 to 1,024. Not part of any fingerprint: batches do not depend on it.
    ///
    /// Source: ours: one is ready while the next is made.
    #[serde(skip_serializing)]
    #[schemars(extend("default" = 2))]
    pub steps_ahead: usize,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            schedule: Schedule::Kimera,
            batching: Batching::Items(32),
            shuffle: Shuffle::Window(16),
            pack: None,
            ahead: Ahead::default(),
            steps_ahead: 2,
        }
    }
}

impl Stream {
    /// The settings for training with this seed.
    #[must_use]
    pub(crate) fn config(&self, seed: u64) -> steps::Config {
        let Stream { schedule, batching, shuffle, pack, ahead, .. } = *self;
        let fill = pack.map_or(Fill::One, Fill::Packed);
        steps::Config { part: Part::Train, seed, schedule, batching, shuffle, fill, ahead }
    }

    /// Items of a batch, if that is known before they are read.
    #[must_use]
    pub(crate) fn items(&self) -> Option<usize> {
        self.batching.items()
    }

    /// Refuses settings with which no sample would come, or whose number of steps is unknown without `max_steps`.
    ///
    /// # Errors
    /// Names the first.
    pub(crate) fn check(&self, table: &str, max_steps: Option<u64>) -> anyhow::Result<()> {
        let numbers: &[(&str, usize)] = match self.batching {
            Batching::Items(items) => &[("batching.items", items)],
            Batching::Bucketed { items, pool } => {
                &[("batching.bucketed.items", items), ("batching.bucketed.pool", pool)]
            }
            Batching::Tokens { tokens, pool } => {
                &[("batching.tokens.tokens", tokens), ("batching.tokens.pool", pool)]
            }
        };
        let window = match self.shuffle {
            Shuffle::Window(groups) => groups,
            Shuffle::None => 1,
        };
        let key = |key: &str| format!("{table}.stream.{key}");
        for (name, number) in numbers.iter().chain(&[("shuffle.window", window)]) {
            whole(key(name), *number as u64, 1..=MANY)?;
        }
        whole(key("pack"), self.pack.unwrap_or(1) as u64, 1..=LONGEST)?;
        whole(key("ahead.threads"), self.ahead.threads as u64, 1..=MOST)?;
        // They wait in memory.
        whole(key("ahead.windows"), self.ahead.windows as u64, 0..=MOST)?;
        whole(key("steps_ahead"), self.steps_ahead as u64, 1..=MOST)?;
        if let Schedule::Temperature(temperature) = self.schedule {
            number(key("schedule.temperature"), temperature, &TEMPERATURE)?;
        }
        anyhow::ensure!(
            self.items().is_some() || max_steps.is_some(),
            "{table}.stream.batching is a token budget, with which the number of steps is not known beforehand, but the learning rate \
             needs it: give `{table}.max_steps`, or use `items` or `bucketed`"
        );
        anyhow::ensure!(
            self.items().is_some() || !self.schedule.counts_batches(),
            "{table}.stream.batching is a token budget, so that only reading tells how many batches a task has, and \
             {table}.stream.schedule is {}, which goes by their number: take \"kimera\", by which each step has a batch of every task",
            self.schedule.name()
        );
        Ok(())
    }
}
