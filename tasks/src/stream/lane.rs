//! One traversal of the items of a task, or of several that share an order, batch by batch.

use std::collections::VecDeque;

use base::rng::RngKey;
use batch::Batch;
use serde::{Deserialize, Serialize};

use super::collate::{Fill, Samples};
use super::order::Place;
use super::window::{Loaded, Shape, Windows, nothing};
use crate::Error;

/// Which items make a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Batching {
    /// This many items per step: triples, of which the triplet task has more rows, or chunks of text.
    Items(usize),
    /// This many items, length-bucketed: `pool` batches are sorted by length together, then shuffled as batches.
    Bucketed {
        /// Items in each batch.
        items: usize,
        /// Batches that are sorted by length together.
        pool: usize,
    },
    /// As many length-bucketed items as fit: the tokens of the longest row times the number of rows (of all tasks of a step together) are
    /// at most `tokens`, unless a single item has more; `pool` items are sorted together.
    Tokens {
        /// Maximum tokens per batch, padding included.
        tokens: usize,
        /// Items that are sorted by length together.
        pool: usize,
    },
}

impl Batching {
    /// Items of a pool, at least 1. No more are sorted together than an epoch has (and what fills its last batch): more would hold
    /// several epochs in memory and gain nothing.
    fn pool(self, epoch: u64) -> u64 {
        match self {
            Batching::Items(items) => items.max(1) as u64,
            Batching::Bucketed { items, pool } => {
                let items = items.max(1) as u64;
                items.saturating_mul(pool.max(1) as u64).min(epoch.div_ceil(items).saturating_mul(items))
            }
            Batching::Tokens { pool, .. } => (pool.max(1) as u64).min(epoch.max(1)),
        }
    }

    /// Items of every batch but the last of a pool, if that is known before they are read.
    #[must_use]
    pub fn items(self) -> Option<usize> {
        match self {
            Batching::Items(items) | Batching::Bucketed { items, .. } => Some(items.max(1)),
            Batching::Tokens { .. } => None,
        }
    }
}

/// What happens where an epoch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// A batch goes on into the next epoch, so all are full.
    Continues,
    /// The last batch of an epoch may be smaller.
    Cuts,
}

/// Which part of every batch is wanted: ranks take slices of it side by side, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of this rank, from 0.
    pub rank: usize,
    /// Number of ranks, at least 1.
    pub world: usize,
}

impl Share {
    /// Everything.
    pub const WHOLE: Share = Share { rank: 0, world: 1 };

    fn of<'i>(&self, items: &'i [u32]) -> &'i [u32] {
        let at = |rank: usize| items.len() * rank / self.world.max(1);
        &items[at(self.rank).min(items.len())..at(self.rank + 1).min(items.len())]
    }
}

/// Where a lane stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Items of all epochs before the present pool.
    pub item: u64,
    /// Batches of the pool already shown.
    pub batch: u32,
}

impl Position {
    /// The beginning.
    pub const START: Position = Position { item: 0, batch: 0 };
}

/// How a lane makes batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Which items make a batch.
    pub batching: Batching,
    /// What happens where an epoch ends.
    pub edge: Edge,
    /// How samples are put into rows.
    pub fill: Fill,
    /// The token that fills rows.
    pub padding: u32,
    /// Seed of the order of batches in a pool.
    pub seed: RngKey,
}

/// A traversal without end.
#[derive(Debug)]
pub struct Lane {
    windows: Windows,
    config: Config,
    position: Position,
    loaded: VecDeque<Loaded>,
    pool: Option<Pool>,
}

/// Items that are made into batches together.
#[derive(Debug)]
struct Pool {
    /// Items of all epochs before its first and after its last.
    start: u64,
    end: u64,
    /// Window among the loaded ones and place in it.
    items: Vec<(usize, Place)>,
    /// The items of each batch, by their place in `items`.
    batches: Vec<Vec<u32>>,
}

impl Lane {
    /// A lane at its beginning.
    #[must_use]
    pub fn new(windows: Windows, config: Config) -> Self {
        Self { windows, config, position: Position::START, loaded: VecDeque::new(), pool: None }
    }

    /// Items in an epoch.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.windows.items()
    }

    /// Batches in an epoch, if that is known before items are read: the last one counts where epochs are cut, a part of it where not.
    #[must_use]
    pub fn batches(&self) -> Option<u64> {
        self.config.batching.items().map(|items| self.items().div_ceil(items as u64))
    }

    /// Where it stands.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Goes to the beginning of the next epoch, unless one begins here.
    pub fn begin_epoch(&mut self) {
        let (items, Position { item, batch }) = (self.items().max(1), self.position);
        if batch > 0 || !item.is_multiple_of(items) {
            self.seek(Position { item: (item / items + 1) * items, batch: 0 });
        }
    }

    /// Goes to a position, which must be one that [`Lane::position`] gave for the same config.
    pub fn seek(&mut self, position: Position) {
        let same = self.pool.as_ref().is_some_and(|pool| pool.start == position.item);
        if !same {
            self.pool = None;
        }
        self.position = position;
    }

    /// The next batches, one per task, of `share`'s part of the items.
    ///
    /// # Errors
    /// When a shard is damaged, or there is nothing to stream.
    pub fn next_batches(&mut self, share: Share) -> Result<Vec<Batch>, Error> {
        let pool = self.present()?;
        let chosen = pool.batches.get(self.position.batch as usize).map_or(&[][..], |batch| share.of(batch));
        let batches = self.windows.tasks().enumerate().map(|(number, task)| {
            let mut samples = Samples::new(task);
            for &item in chosen {
                let (window, place) = pool.items[item as usize];
                self.loaded[window].rows(number, place).for_each(|row| samples.push(row));
            }
            samples.batch(self.config.fill, self.config.padding)
        });
        let batches = batches.collect();
        self.step(pool);
        Ok(batches)
    }

    /// Goes past the next batch without making it; without reading, too, where batches have a number of items.
    ///
    /// # Errors
    /// As [`Lane::next_batches`].
    pub fn skip(&mut self) -> Result<(), Error> {
        let Some(size) = self.config.batching.items() else {
            let pool = self.present()?;
            self.step(pool);
            return Ok(());
        };
        let end = self.end_of_pool()?;
        self.position.batch += 1;
        if u64::from(self.position.batch) * size as u64 >= end - self.position.item {
            self.position = Position { item: end, batch: 0 };
        }
        Ok(())
    }

    /// Items of all epochs before the end of the present pool.
    fn end_of_pool(&self) -> Result<u64, Error> {
        let (epoch_items, start) = (self.items(), self.position.item);
        if epoch_items == 0 {
            return Err(nothing());
        }
        let end = start + self.config.batching.pool(epoch_items);
        Ok(match self.config.edge {
            Edge::Continues => end,
            Edge::Cuts => end.min((start / epoch_items + 1) * epoch_items),
        })
    }

    /// The pool at the present position, taken out.
    fn present(&mut self) -> Result<Pool, Error> {
        match self.pool.take().filter(|pool| pool.start == self.position.item) {
            Some(pool) => Ok(pool),
            None => self.fill(),
        }
    }

    fn step(&mut self, pool: Pool) {
        self.position.batch += 1;
        if self.position.batch as usize >= pool.batches.len() {
            self.position = Position { item: pool.end, batch: 0 };
        } else {
            self.pool = Some(pool);
        }
    }

    /// Brings the items of the present pool into memory and makes them into batches.
    fn fill(&mut self) -> Result<Pool, Error> {
        let (epoch_items, start, end) = (self.items(), self.position.item, self.end_of_pool()?);
        let (epoch, at) = (start / epoch_items, start % epoch_items);
        while self.loaded.front().is_some_and(|window| !window.holds(epoch, at)) {
            self.loaded.pop_front();
        }
        if self.loaded.is_empty() {
            self.windows.seek(epoch, at);
        }
        let mut items = Vec::new();
        let mut window = 0;
        for item in start..end {
            let (epoch, at) = (item / epoch_items, item % epoch_items);
            while !self.loaded.get(window).is_some_and(|window| window.holds(epoch, at)) {
                if window + 1 < self.loaded.len() {
                    window += 1;
                } else {
                    self.loaded.push_back(self.windows.next_window()?);
                    window = self.loaded.len() - 1;
                }
            }
            let of = &self.loaded[window].window;
            items.push((window, of.items[usize::try_from(at - of.start).unwrap_or(usize::MAX)]));
        }
        let batches = self.batches_of(start, &items);
        Ok(Pool { start, end, items, batches })
    }

    fn batches_of(&self, start: u64, items: &[(usize, Place)]) -> Vec<Vec<u32>> {
        let mut order: Vec<u32> = (0..).take(items.len()).collect();
        let mut batches: Vec<Vec<u32>> = match self.config.batching {
            Batching::Items(_) => return vec![order],
            Batching::Bucketed { items: size, .. } => {
                let lengths = self.of_each(items, Loaded::tokens);
                order.sort_by_key(|&item| (lengths[item as usize], item));
                order.chunks(size.max(1)).map(<[u32]>::to_vec).collect()
            }
            Batching::Tokens { tokens, .. } => {
                let shapes = self.of_each(items, Loaded::shape);
                order.sort_by_key(|&item| (shapes[item as usize].longest, item));
                within(tokens, &order, &shapes)
            }
        };
        self.config.seed.named("batches").at(start).shuffle(&mut batches);
        // Within a batch, samples stand in the order of the stream.
        batches.iter_mut().for_each(|batch| batch.sort_unstable());
        batches
    }

    fn of_each<T>(&self, items: &[(usize, Place)], of: impl Fn(&Loaded, Place) -> T) -> Vec<T> {
        items.iter().map(|&(window, place)| of(&self.loaded[window], place)).collect()
    }
}

/// Cuts `order`, which ascends by the longest row, so that no batch of several items has more than `tokens` tokens when all its rows are
/// as long as its longest.
fn within(tokens: usize, order: &[u32], shapes: &[Shape]) -> Vec<Vec<u32>> {
    let mut batches: Vec<Vec<u32>> = Vec::new();
    let mut rows = 0;
    for &item in order {
        let shape = shapes[item as usize];
        match batches.last_mut() {
            Some(batch) if (rows + shape.rows) * shape.longest <= tokens => {
                batch.push(item);
                rows += shape.rows;
            }
            _ => {
                batches.push(vec![item]);
                rows = shape.rows;
            }
        }
    }
    batches
}
