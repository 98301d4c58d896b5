//! The batches of each step, by a schedule over the shards' tasks.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use base::rng::RngKey;
use batch::Batch;
use batch::task::{Material, Task};
use kg::split::Part;

use super::collate::Fill;
use super::lane::{self, Batching, Edge, Lane, Position, Share};
use super::order::{Order, Shuffle};
use super::redraw::Redraw;
use super::schedule::{Schedule, Turn, Turns};
use super::source::{Folder, Open, Source};
use super::state::{Fingerprint, State};
use super::window::{Ahead, Windows, nothing};
use crate::Error;
use crate::shard::index::Index;
use crate::shard::read::Of;

/// How to stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Part of the shards.
    pub part: Part,
    /// Seed of the order.
    pub seed: u64,
    /// How tasks take turns.
    pub schedule: Schedule,
    /// Which items make a batch, over all ranks together.
    pub batching: Batching,
    /// How items are mixed.
    pub shuffle: Shuffle,
    /// How samples are put into rows.
    pub fill: Fill,
    /// How windows are read.
    pub ahead: Ahead,
}

/// Whose batches these are. Not a part of the order: a stream may be resumed with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker {
    /// The part of every batch.
    pub share: Share,
    /// Of all steps, this one takes every `of`-th, beginning with this number from 0.
    pub number: u64,
    /// Workers that take turns with the steps, at least 1.
    pub of: u64,
}

impl Worker {
    /// All of all batches.
    pub const ONLY: Worker = Worker { share: Share::WHOLE, number: 0, of: 1 };
}

/// What a stream is made of besides its settings.
#[derive(Debug, Clone)]
pub struct Shards<'i> {
    /// What is there.
    pub index: &'i Index,
    /// Where it lies.
    pub place: Arc<dyn Open>,
    /// Draws the negatives of later epochs; none: those in the shards are shown in all epochs.
    pub redraw: Option<Arc<dyn Redraw>>,
}

impl<'i> Shards<'i> {
    /// Shards in a folder, with the negatives that they hold.
    #[must_use]
    pub fn in_folder(folder: &Path, index: &'i Index) -> Self {
        Self { index, place: Arc::new(Folder(folder.to_owned())), redraw: None }
    }
}

/// Batches of one task or of several, step after step, without end.
#[derive(Debug)]
pub struct Stream {
    lanes: Vec<Lane>,
    /// Of lanes that take turns, what each shows.
    tasks: Vec<Task>,
    turns: Option<Turns>,
    worker: Worker,
    fingerprint: Fingerprint,
    step: u64,
}

/// How long the epochs of a stream are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epochs {
    /// As [`Stream::steps_per_epoch`].
    pub steps: Option<u64>,
    /// Items of the first lane.
    items: u64,
}

impl Epochs {
    /// The epoch in which a stream with this state takes its next step.
    #[must_use]
    pub fn at(self, state: &State) -> u64 {
        self.of(state.step, state.lanes.first().copied().unwrap_or(Position::START))
    }

    fn of(self, step: u64, first: Position) -> u64 {
        match self.steps {
            Some(steps) => step / steps.max(1),
            None => first.item / self.items.max(1),
        }
    }
}

impl Stream {
    /// A stream at its first step.
    ///
    /// # Errors
    /// When there is nothing to stream, or settings do not go together.
    pub fn new(shards: &Shards<'_>, config: &Config, worker: Worker) -> Result<Self, Error> {
        let Worker { share: Share { rank, world }, number, of } = worker;
        if rank >= world || number >= of {
            let expected = "expected a number below that of all, which is at least 1";
            return Err(Error::Unfit(format!("rank {rank} of {world}, worker {number} of {of}: {expected}")));
        }
        let index = shards.index;
        let tasks: Vec<Task> = index
            .tasks
            .iter()
            .filter(|task| task.part(config.part).is_some())
            .map(|task| task.task)
            .collect();
        let together = config.schedule == Schedule::Kimera;
        // Tasks that are not made of triples have items of their own, so they get lanes of their own.
        let (graph, others): (Vec<Task>, Vec<Task>) =
            tasks.iter().partition(|task| together && of_triples(task));
        let lanes = std::iter::once(graph)
            .filter(|tasks| !tasks.is_empty())
            .chain(others.into_iter().map(|task| vec![task]));
        let lanes: Result<Vec<Lane>, Error> = lanes.map(|tasks| lane(shards, config, &tasks)).collect();
        let lanes = lanes?;
        if lanes.is_empty() {
            let remedy = "build them with a split that has such a part";
            return Err(Error::Unfit(format!("the shards have no rows for {}; {remedy}", config.part)));
        }
        let turns = if together {
            None
        } else {
            let batches: Option<Vec<u64>> = lanes.iter().map(Lane::batches).collect();
            let batches = batches.ok_or_else(|| {
                let problem = "needs batches of a number of items, in buckets or not, but a token budget decides only while reading";
                Error::Unfit(format!("schedule {} {problem}", config.schedule.name()))
            })?;
            Some(Turns::new(config.schedule, batches, RngKey::new(config.seed).named("schedule")))
        };
        let fingerprint = fingerprint(shards, config, &tasks);
        Ok(Self { lanes, tasks, turns, worker, fingerprint, step: 0 })
    }

    /// Steps of an epoch: with `kimera` those in which every triple is shown at least once. `None` where only reading tells.
    #[must_use]
    pub fn steps_per_epoch(&self) -> Option<u64> {
        match &self.turns {
            Some(turns) => Some(turns.steps()),
            None => self.lanes.first().and_then(Lane::batches),
        }
    }

    /// A task that none of so many first steps shows, if there is one.
    #[must_use]
    pub fn without_turn(&self, steps: u64) -> Option<Task> {
        let mut turns = self.turns.clone()?;
        let mut waiting: BTreeSet<usize> = (0..self.lanes.len()).collect();
        for step in 0..steps {
            if waiting.is_empty() {
                break;
            }
            waiting.remove(&turns.turn(step)?.task);
        }
        waiting.first().and_then(|lane| self.tasks.get(*lane)).copied()
    }

    /// The next step's batches: one per task with `kimera`, else one. Where a batch has fewer items than there are ranks, some ranks'
    /// shares are empty.
    ///
    /// # Errors
    /// When a shard cannot be read; the stream then stands where it stood, so that the step can be asked for again.
    pub fn next_step(&mut self) -> Result<Vec<Batch>, Error> {
        self.whole(|stream| {
            while !stream.is_own_turn() {
                stream.skip()?;
            }
            stream.make()
        })
    }

    /// As [`Stream::next_step`], but nothing once the steps of `epoch` are over; the stream then stands at the beginning of the next epoch.
    ///
    /// # Errors
    /// As [`Stream::next_step`].
    pub fn next_step_of(&mut self, epoch: u64) -> Result<Option<Vec<Batch>>, Error> {
        self.whole(|stream| {
            while stream.epoch() <= epoch {
                if stream.is_own_turn() {
                    return stream.make().map(Some);
                }
                stream.skip()?;
            }
            Ok(None)
        })
    }

    /// Goes to the beginning of an epoch.
    ///
    /// # Errors
    /// As [`Stream::next_step`], where only reading tells how many steps epochs have.
    pub fn seek(&mut self, epoch: u64) -> Result<(), Error> {
        self.whole(|stream| {
            stream.step = 0;
            stream.lanes.iter_mut().for_each(|lane| lane.seek(Position::START));
            while stream.epoch() < epoch {
                stream.skip()?;
            }
            Ok(())
        })
    }

    /// The epoch that the next step is of. Where a token budget makes batches, it begins with the first pool that begins in it.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        let position = self.lanes.first().map_or(Position::START, Lane::position);
        self.epochs().of(self.step, position)
    }

    /// How long epochs are.
    #[must_use]
    pub fn epochs(&self) -> Epochs {
        let items = self.lanes.first().map_or(0, Lane::items);
        Epochs { steps: self.steps_per_epoch(), items }
    }

    /// Does `work`, or, when it fails, nothing.
    fn whole<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let before = (self.step, self.lanes.iter().map(Lane::position).collect::<Vec<_>>());
        let made = work(self);
        if made.is_err() {
            self.step = before.0;
            self.lanes.iter_mut().zip(before.1).for_each(|(lane, position)| lane.seek(position));
        }
        made
    }

    fn is_own_turn(&self) -> bool {
        self.step % self.worker.of == self.worker.number
    }

    fn skip(&mut self) -> Result<(), Error> {
        for lane in self.turn()? {
            self.lanes[lane].skip()?;
        }
        self.step += 1;
        Ok(())
    }

    fn make(&mut self) -> Result<Vec<Batch>, Error> {
        let mut batches = Vec::new();
        for lane in self.turn()? {
            batches.extend(self.lanes[lane].next_batches(self.worker.share)?);
        }
        self.step += 1;
        Ok(batches)
    }

    /// The lanes whose turn it is.
    fn turn(&mut self) -> Result<Vec<usize>, Error> {
        let Some(turns) = &mut self.turns else { return Ok((0..self.lanes.len()).collect()) };
        let Turn { task, begins } = turns.turn(self.step).ok_or_else(nothing)?;
        if begins {
            self.lanes.iter_mut().for_each(Lane::begin_epoch);
        }
        Ok(vec![task])
    }

    /// Steps taken, those of other workers included.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Where the stream stands: the next step is the first that has not been taken.
    #[must_use]
    pub fn state(&self) -> State {
        let lanes = self.lanes.iter().map(Lane::position).collect();
        State::new(self.fingerprint.clone(), self.step, lanes)
    }

    /// Goes to where `state` was taken, on this or another number of ranks.
    ///
    /// # Errors
    /// When the state belongs to another order or is damaged.
    pub fn resume(&mut self, state: &State) -> Result<(), Error> {
        state.check(&self.fingerprint)?;
        self.step = state.step;
        self.lanes.iter_mut().zip(&state.lanes).for_each(|(lane, position)| lane.seek(*position));
        Ok(())
    }
}

fn of_triples(task: &Task) -> bool {
    task.made_of() == Material::Triples
}

/// The lane of tasks that share an order.
fn lane(shards: &Shards<'_>, config: &Config, tasks: &[Task]) -> Result<Lane, Error> {
    let index = shards.index;
    let source = |task: &Task| {
        let part = index.part(*task, config.part)?;
        Some(Source::new(Arc::clone(&shards.place), Of { task: *task, form: index.layout.form }, part))
    };
    let sources: Vec<Source> = tasks.iter().filter_map(source).collect();
    // Row groups of the same number hold the same items in every task, so any task can give their sizes.
    let groups = sources.first().map(|source| source.items().collect()).unwrap_or_default();
    let seed = RngKey::new(config.seed);
    // Tasks that take turns must not show the same triples at the same time.
    let own = if config.schedule == Schedule::Kimera && tasks.iter().all(of_triples) {
        seed.named("stream")
    } else {
        seed.named("stream").named(tasks.first().map_or("", |task| task.name()))
    };
    let order = Order::new(groups, config.shuffle, own);
    let windows = Windows::new(sources, order, redraw(shards, config), config.ahead)?;
    let edge = if config.schedule.cuts_epochs() { Edge::Cuts } else { Edge::Continues };
    let padding = index.tokenizer.special.padding;
    let Config { batching, fill, .. } = *config;
    Ok(Lane::new(windows, lane::Config { batching, edge, fill, padding, seed: own }))
}

/// Only training has other negatives in each epoch.
fn redraw(shards: &Shards<'_>, config: &Config) -> Option<Arc<dyn Redraw>> {
    shards.redraw.clone().filter(|_| config.part == Part::Train)
}

fn fingerprint(shards: &Shards<'_>, config: &Config, tasks: &[Task]) -> Fingerprint {
    let names: Vec<&str> = tasks.iter().map(|task| task.name()).collect();
    Fingerprint {
        index: shards.index.digest(),
        part: config.part.name().to_owned(),
        tasks: names.join(" "),
        seed: config.seed,
        schedule: config.schedule.name(),
        batching: format!("{:?}", config.batching).to_lowercase(),
        shuffle: format!("{:?}", config.shuffle).to_lowercase(),
        negatives: if redraw(shards, config).is_some() {
            "drawn anew each epoch"
        } else {
            "as in the shards"
        }
        .to_owned(),
    }
}
