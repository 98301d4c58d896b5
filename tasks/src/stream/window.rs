//! Windows of the order with their rows, read one after the other, ahead of time if asked.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Builder, JoinHandle};

use batch::task::Task;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::background::stand_behind;
use super::order::{Order, Place, Window};
use super::redraw::Redraw;
use super::source::Source;
use crate::Error;
use crate::shard::read::{Answers, Group};
use crate::task::has_negatives;

/// One row, borrowed from a window in memory.
#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a> {
    /// Token ids.
    pub input_ids: &'a [i32],
    /// Segment of each token; none where all are 0.
    pub token_type_ids: Option<&'a [i32]>,
    /// 1 for a token, 0 for padding inside a slot; none where all are tokens.
    pub attention: Option<&'a [i32]>,
    /// What is to be predicted: a number per token, or one class.
    pub answers: &'a [i32],
}

/// A window in memory, with the rows of all tasks that share the order.
#[derive(Debug)]
pub struct Loaded {
    /// Its epoch.
    pub epoch: u64,
    /// Its items in their order.
    pub window: Window,
    /// Row groups by ascending number.
    numbers: Vec<u32>,
    /// For each task, the row groups in the order of `numbers`.
    groups: Vec<Vec<Group>>,
}

impl Loaded {
    /// Whether it holds the item at position `at` of its epoch.
    #[must_use]
    pub fn holds(&self, epoch: u64, at: u64) -> bool {
        epoch == self.epoch && (self.window.start..self.end()).contains(&at)
    }

    /// Position after its last item in the epoch.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.window.start + self.window.items.len() as u64
    }

    fn group(&self, task: usize, group: u32) -> &Group {
        &self.groups[task][self.numbers.partition_point(|number| *number < group)]
    }

    /// The rows of an item for the task of that place: one, or a stated triple and its negatives.
    pub fn rows(&self, task: usize, Place { group, item }: Place) -> impl Iterator<Item = RowRef<'_>> {
        let group = self.group(task, group);
        (group.firsts[item as usize] as usize..group.firsts[item as usize + 1] as usize).map(|row| {
            let tokens = group.starts[row] as usize..group.starts[row + 1] as usize;
            RowRef {
                input_ids: &group.input_ids[tokens.clone()],
                token_type_ids: group.token_type_ids.as_ref().map(|types| &types[tokens.clone()]),
                attention: group.attention.as_ref().map(|mask| &mask[tokens.clone()]),
                answers: match &group.answers {
                    Answers::Tokens(labels) => &labels[tokens],
                    Answers::Classes(classes) => &classes[row..=row],
                },
            }
        })
    }

    /// The rows of an item over all tasks.
    #[must_use]
    pub fn shape(&self, Place { group, item }: Place) -> Shape {
        (0..self.groups.len()).fold(Shape { rows: 0, longest: 0 }, |shape, task| {
            let group = self.group(task, group);
            let rows = group.firsts[item as usize] as usize..group.firsts[item as usize + 1] as usize;
            let lengths = rows.clone().map(|row| (group.starts[row + 1] - group.starts[row]) as usize);
            Shape { rows: shape.rows + rows.len(), longest: lengths.max().unwrap_or(0).max(shape.longest) }
        })
    }

    /// Tokens of an item over all tasks.
    #[must_use]
    pub fn tokens(&self, Place { group, item }: Place) -> usize {
        let of = |task: usize| {
            let group = self.group(task, group);
            let [first, end] = [item, item + 1].map(|item| group.firsts[item as usize] as usize);
            (group.starts[end] - group.starts[first]) as usize
        };
        (0..self.groups.len()).map(of).sum()
    }
}

/// Rows of an item over all tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many there are.
    pub rows: usize,
    /// Tokens of the longest.
    pub longest: usize,
}

/// How windows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ahead {
    /// Windows to prefetch and hold in memory, 0 to 1,024; 0 reads each when it is needed. Not part of any fingerprint: batches do not
    /// depend on it.
    ///
    /// Source: ours: because one hides reading behind training at the least memory.
    pub windows: usize,
    /// Threads that read the row groups of a window, 1 to 1,024; likewise not part of any fingerprint.
    ///
    /// Source: ours: because a step takes longer than reading its rows.
    pub threads: usize,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { windows: 1, threads: 1 }
    }
}

/// The system gives no thread.
pub(super) fn no_thread(error: &dyn std::fmt::Display) -> Error {
    Error::Unfit(format!("cannot start a thread to read shards: {error}; lower the number of threads"))
}

/// The thread that read ahead is gone.
pub(super) fn gone() -> Error {
    Error::unfit("the thread that reads shards has stopped before its time; this is a bug")
}

/// There is nothing to stream.
pub(super) fn nothing() -> Error {
    Error::unfit(
        "the shards have no item to stream; look at the funnel (`engraft inspect triples`) for what was dropped",
    )
}

/// What reads a window.
#[derive(Debug)]
struct Loader {
    sources: Vec<Source>,
    order: Order,
    redraw: Option<Arc<dyn Redraw>>,
    pool: ThreadPool,
}

impl Loader {
    fn load(&self, epoch: u64, at: u64) -> Result<Loaded, Error> {
        let window = self.order.window(epoch, at).ok_or_else(nothing)?;
        let mut numbers = window.groups.clone();
        numbers.sort_unstable();
        let (tasks, all) = (self.sources.len(), numbers.len());
        let read = |unit: usize| self.read(&self.sources[unit / all], epoch, numbers[unit % all]);
        let groups: Result<Vec<Group>, Error> =
            self.pool.install(|| (0..tasks * all).into_par_iter().map(read).collect());
        let mut groups = groups?.into_iter();
        let groups = (0..tasks).map(|_| groups.by_ref().take(all).collect()).collect();
        Ok(Loaded { epoch, window, numbers, groups })
    }

    fn read(&self, source: &Source, epoch: u64, number: u32) -> Result<Group, Error> {
        let before = self.order.before(number);
        let redraw = self.redraw.as_ref().filter(|_| has_negatives(source.task()));
        match redraw.and_then(|redraw| {
            redraw.group(source.task(), epoch, before..before + self.order.in_group(number))
        }) {
            Some(group) => Ok(group),
            None => source.group(number),
        }
    }
}

/// Windows one after the other, without end.
#[derive(Debug)]
pub struct Windows {
    loader: Arc<Loader>,
    ahead: usize,
    next: (u64, u64),
    reading: Option<Reading>,
}

/// A thread that reads ahead.
#[derive(Debug)]
struct Reading {
    loaded: Receiver<Result<Loaded, Error>>,
    thread: JoinHandle<()>,
}

impl Windows {
    /// Windows of `order` over sources that all have the same items in their row groups.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn new(
        sources: Vec<Source>,
        order: Order,
        redraw: Option<Arc<dyn Redraw>>,
        ahead: Ahead,
    ) -> Result<Self, Error> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(ahead.threads.max(1))
            .thread_name(|number| format!("engraft-read-{number}"))
            .start_handler(|_| stand_behind())
            .build();
        let pool = pool.map_err(|error| no_thread(&error))?;
        let loader = Arc::new(Loader { sources, order, redraw, pool });
        Ok(Self { loader, ahead: ahead.windows, next: (0, 0), reading: None })
    }

    /// Tasks that share the order.
    pub fn tasks(&self) -> impl Iterator<Item = Task> {
        self.loader.sources.iter().map(Source::task)
    }

    /// Items in an epoch.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.loader.order.items()
    }

    /// Goes to the window that holds position `at` of `epoch`. What was read ahead is forgotten, unless it begins there.
    pub fn seek(&mut self, epoch: u64, at: u64) {
        if self.next != (epoch, at) {
            self.stop();
            self.next = (epoch, at);
        }
    }

    /// The next window.
    ///
    /// # Errors
    /// When a shard is damaged.
    pub fn next_window(&mut self) -> Result<Loaded, Error> {
        let loaded = if self.ahead == 0 {
            self.loader.load(self.next.0, self.next.1)?
        } else {
            let reading = match self.reading.take() {
                Some(reading) => reading,
                None => self.start()?,
            };
            let loaded = reading.loaded.recv().map_err(|_| gone())?;
            if loaded.is_ok() {
                self.reading = Some(reading);
            }
            // After a failure its thread has ended; a new one begins with the window that failed.
            loaded?
        };
        self.next = after(&loaded, self.items());
        Ok(loaded)
    }

    fn start(&self) -> Result<Reading, Error> {
        // The thread holds one window that it cannot hand over yet, the channel the others.
        let (sender, loaded) = sync_channel(self.ahead - 1);
        let (loader, mut next) = (Arc::clone(&self.loader), self.next);
        let work = move || {
            stand_behind();
            loop {
                let window = loader.load(next.0, next.1);
                let end = window.as_ref().ok().map(|loaded| after(loaded, loader.order.items()));
                let received = sender.send(window).is_ok();
                match end {
                    Some(end) if received => next = end,
                    _ => return,
                }
            }
        };
        let thread = Builder::new().name("engraft-read".to_owned()).spawn(work);
        Ok(Reading { loaded, thread: thread.map_err(|error| no_thread(&error))? })
    }

    fn stop(&mut self) {
        if let Some(Reading { loaded, thread }) = self.reading.take() {
            drop(loaded);
            // It ends with its present window at the latest; a panic in it was reported when it happened.
            let _ended = thread.join();
        }
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Epoch and position after a window.
fn after(loaded: &Loaded, items: u64) -> (u64, u64) {
    if loaded.end() < items { (loaded.epoch, loaded.end()) } else { (loaded.epoch + 1, 0) }
}
