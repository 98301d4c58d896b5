//! KIMERA's schedule: every step draws one batch from every task (paper 000; MODELS section 1.8). Knows no tensor.

use std::path::Path;

use super::batch::Batch;
use super::collate;
use super::reader::Reader;
use super::state::{Fingerprint, Mismatch, State, VERSION};
use crate::seed::Seed;
use crate::shard::index::Index;
use crate::shard::read::Error;
use crate::task::Task;

/// How to stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Seed of the order.
    pub seed: u64,
    /// Triples of a step: rows of every task's batch, of which the triplet task has twice as many.
    pub batch: usize,
    /// Row groups held in memory and shuffled together, per task.
    pub window: usize,
}

/// Batches of all tasks, step after step, without end.
#[derive(Debug)]
pub struct Stream {
    readers: Vec<Reader>,
    order: Fingerprint,
    padding: u32,
}

impl Stream {
    /// A stream over the shards of `index` below `folder`.
    #[must_use]
    pub fn new(folder: &Path, index: &Index, config: &Config) -> Self {
        let seed = Seed::new(config.seed).named("stream");
        let readers = index.tasks.iter().map(|task| Reader::new(folder, task, config.window, seed));
        Self {
            readers: readers.collect(),
            order: Fingerprint {
                index: index.digest(),
                seed: config.seed,
                schedule: "kimera".to_owned(),
                batch: config.batch,
                window: config.window,
            },
            padding: index.tokenizer.special.padding,
        }
    }

    /// Steps in which every task has shown all its rows at least once.
    #[must_use]
    pub fn steps_per_epoch(&self) -> u64 {
        let steps = self.readers.iter().map(|r| r.rows().div_ceil(self.rows_per_step(r.task()) as u64));
        steps.max().unwrap_or(0)
    }

    /// The batches of the next step, one per task in task order.
    ///
    /// # Errors
    /// When a shard cannot be read.
    pub fn next_step(&mut self) -> Result<Vec<Batch>, Error> {
        let (padding, batch) = (self.padding, self.order.batch);
        self.readers.iter_mut().map(|r| collate::batch(r, rows_per_step(r.task(), batch), padding)).collect()
    }

    /// Where the stream stands: the next step is the first that has not been taken.
    #[must_use]
    pub fn state(&self) -> State {
        State {
            version: VERSION,
            order: self.order.clone(),
            positions: self.readers.iter().map(|r| (r.task(), r.position())).collect(),
        }
    }

    /// Goes to where `state` was taken.
    ///
    /// # Errors
    /// When the state belongs to another order.
    pub fn resume(&mut self, state: &State) -> Result<(), Mismatch> {
        state.check(&self.order)?;
        for (reader, (_, position)) in self.readers.iter_mut().zip(&state.positions) {
            reader.seek(*position);
        }
        Ok(())
    }

    fn rows_per_step(&self, task: Task) -> usize {
        rows_per_step(task, self.order.batch)
    }
}

/// A stated triple brings a negative along, so the triplet task has two rows where the others have one.
fn rows_per_step(task: Task, batch: usize) -> usize {
    if task == Task::Triplet { 2 * batch } else { batch }
}
