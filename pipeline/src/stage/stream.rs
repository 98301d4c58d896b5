//! The stream's part of a config: in which order a trainer sees samples. Knows no trainer.

use kg::split::Part;
use serde::{Deserialize, Serialize};
use tasks::stream::collate::Fill;
use tasks::stream::lane::Batching;
use tasks::stream::order::Shuffle;
use tasks::stream::schedule::Schedule;
use tasks::stream::steps;
use tasks::stream::window::Ahead;

/// Windows or steps that may wait in memory.
const MOST: usize = 1024;

/// The stream's part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// How tasks take turns.
    pub schedule: Schedule,
    /// Which items make a batch.
    pub batching: Batching,
    /// How items are mixed.
    pub shuffle: Shuffle,
    /// Positions of a row that several samples share; none: a row for each sample.
    pub pack: Option<usize>,
    /// Windows of row groups read ahead; of no influence on what is read.
    #[serde(skip_serializing)]
    pub ahead: Ahead,
    /// Steps made ahead; of no influence on what they are.
    #[serde(skip_serializing)]
    pub steps_ahead: usize,
}

impl Stream {
    /// The settings for training with this seed.
    #[must_use]
    pub fn config(&self, seed: u64) -> steps::Config {
        let Stream { schedule, batching, shuffle, pack, ahead, .. } = *self;
        let fill = pack.map_or(Fill::One, Fill::Packed);
        steps::Config { part: Part::Train, seed, schedule, batching, shuffle, fill, ahead }
    }

    /// Items of a batch, if that is known before they are read.
    #[must_use]
    pub fn items(&self) -> Option<usize> {
        self.batching.items()
    }

    /// Refuses settings with which no sample would come.
    ///
    /// # Errors
    /// Names the first.
    pub fn check(&self, table: &str) -> anyhow::Result<()> {
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
        let more = [
            ("shuffle.window", window),
            ("pack", self.pack.unwrap_or(1)),
            ("ahead.threads", self.ahead.threads),
        ];
        for (key, number) in numbers.iter().chain(&more) {
            anyhow::ensure!(*number > 0, "{table}.stream.{key} is 0, expected at least 1");
        }
        for (key, number) in [("ahead.windows", self.ahead.windows), ("steps_ahead", self.steps_ahead)] {
            anyhow::ensure!(
                number <= MOST,
                "{table}.stream.{key} is {number}, expected at most {MOST}: they wait in memory"
            );
        }
        if let Schedule::Temperature(temperature) = self.schedule {
            anyhow::ensure!(
                temperature > 0.0,
                "{table}.stream.schedule.temperature is {temperature}, expected above 0 (1 is in proportion to size)"
            );
        }
        anyhow::ensure!(
            self.items().is_some(),
            "{table}.stream.batching is a token budget, with which the number of steps is not known beforehand, but the learning rate \
             needs it: use `items` or `bucketed`"
        );
        Ok(())
    }
}
