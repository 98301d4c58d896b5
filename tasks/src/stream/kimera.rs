//! KIMERA's schedule: every step draws one batch of triples and shows it in every task (paper 000; MODELS section 1.8).
//! Knows no tensor.

use std::path::Path;

use super::batch::Batch;
use super::collate::Rows;
use super::order::{Order, Window};
use super::reader::Reader;
use super::state::{Fingerprint, Mismatch, Position, State, VERSION};
use crate::seed::Seed;
use crate::shard::index::Index;
use crate::shard::read::Error;

/// How to stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Seed of the order.
    pub seed: u64,
    /// Triples of a step, at least 1; each gives a row to every task, and two to the triplet task.
    pub batch: usize,
    /// Row groups held in memory and shuffled together, per task.
    pub window: usize,
}

/// Batches of all tasks, step after step, without end. A batch goes on into the next epoch where one ends, so that every
/// triple is shown exactly once per epoch.
#[derive(Debug)]
pub struct Stream {
    readers: Vec<Reader>,
    order: Order,
    fingerprint: Fingerprint,
    position: Position,
    /// The window in memory and its epoch.
    loaded: Option<(u64, Window)>,
    padding: u32,
}

impl Stream {
    /// A stream over the shards of `index` below `folder`.
    #[must_use]
    pub fn new(folder: &Path, index: &Index, config: &Config) -> Self {
        // Row groups of the same number hold the same triples in every task, so any task can give their sizes.
        let files = index.tasks.first().map(|task| task.files.as_slice()).unwrap_or_default();
        let groups = files.iter().flat_map(|file| file.groups.iter().map(|group| group.triples));
        Self {
            readers: index.tasks.iter().map(|task| Reader::new(folder, task)).collect(),
            order: Order::new(groups.collect(), config.window, Seed::new(config.seed).named("stream")),
            fingerprint: Fingerprint {
                index: index.digest(),
                seed: config.seed,
                schedule: "kimera".to_owned(),
                batch: config.batch.max(1),
                window: config.window,
            },
            position: Position { epoch: 0, triple: 0 },
            loaded: None,
            padding: index.tokenizer.special.padding,
        }
    }

    /// Steps in which every triple is shown at least once.
    #[must_use]
    pub fn steps_per_epoch(&self) -> u64 {
        self.order.triples().div_ceil(self.fingerprint.batch as u64)
    }

    /// The batches of the next step, one per task in task order, all of the same triples.
    ///
    /// # Errors
    /// When a shard cannot be read, or there is no triple at all.
    pub fn next_step(&mut self) -> Result<Vec<Batch>, Error> {
        let mut rows: Vec<Rows> = self.readers.iter().map(|_| Rows::default()).collect();
        for _ in 0..self.fingerprint.batch {
            self.load()?;
            let Some((epoch, window)) = &self.loaded else { break };
            let within = usize::try_from(self.position.triple - window.start).unwrap_or(usize::MAX);
            for (reader, rows) in self.readers.iter().zip(&mut rows) {
                reader.rows(window.triples[within], |row| rows.push(row));
            }
            self.position = Position { epoch: *epoch, triple: self.position.triple + 1 };
            if self.position.triple == self.order.triples() {
                self.position = Position { epoch: epoch + 1, triple: 0 };
            }
        }
        Ok(self
            .readers
            .iter()
            .zip(rows)
            .map(|(reader, rows)| rows.pad(reader.task(), self.padding))
            .collect())
    }

    /// Brings the window that holds the current position into memory, unless it is there.
    fn load(&mut self) -> Result<(), Error> {
        let Position { epoch, triple } = self.position;
        let holds =
            |window: &Window| (window.start..window.start + window.triples.len() as u64).contains(&triple);
        if self.loaded.as_ref().is_some_and(|(of, window)| *of == epoch && holds(window)) {
            return Ok(());
        }
        self.loaded = None;
        let window = self.order.window(epoch, triple).ok_or_else(Error::no_triples)?;
        self.readers.iter_mut().try_for_each(|reader| reader.load(&window))?;
        self.loaded = Some((epoch, window));
        Ok(())
    }

    /// Where the stream stands: the next step is the first that has not been taken.
    #[must_use]
    pub fn state(&self) -> State {
        State { version: VERSION, order: self.fingerprint.clone(), position: self.position }
    }

    /// Goes to where `state` was taken.
    ///
    /// # Errors
    /// When the state belongs to another order.
    pub fn resume(&mut self, state: &State) -> Result<(), Mismatch> {
        state.check(&self.fingerprint, self.order.triples())?;
        self.position = state.position;
        Ok(())
    }
}
