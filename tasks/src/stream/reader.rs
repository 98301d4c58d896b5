//! The rows of one task in stream order, window by window, epoch after epoch. Knows no other task and no batch.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::order::{Order, Row, Window};
use crate::seed::Seed;
use crate::shard::index::TaskIndex;
use crate::shard::read::{Answers, Error, Group, Shard};
use crate::task::Task;

/// Where a task's stream stands: the next row to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Epochs completed.
    pub epoch: u64,
    /// Rows of the current epoch already read.
    pub row: u64,
}

/// One row, borrowed from the window that is in memory.
#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a> {
    /// Token ids.
    pub input_ids: &'a [u32],
    /// Segment of each token.
    pub token_type_ids: &'a [u32],
    /// What is to be predicted.
    pub answer: Answer<'a>,
}

/// The label of one row.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// One per token.
    Tokens(&'a [i64]),
    /// One for the row.
    Class(u32),
}

/// Reads one task's rows in order.
#[derive(Debug)]
pub struct Reader {
    task: Task,
    /// File and row group within it, for every row group of the task.
    places: Vec<(PathBuf, usize)>,
    order: Order,
    position: Position,
    loaded: Option<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    epoch: u64,
    window: Window,
    /// Row groups of the window by ascending number.
    groups: Vec<(u32, Group)>,
}

impl Reader {
    /// A reader over the shards that `index` lists below `folder`.
    #[must_use]
    pub fn new(folder: &Path, index: &TaskIndex, window: usize, seed: Seed) -> Self {
        let places = index.files.iter().flat_map(|file| {
            (0..file.groups.len()).map(|group| (folder.join(&file.path), group)).collect::<Vec<_>>()
        });
        let groups = index.files.iter().flat_map(|file| file.groups.iter().copied()).collect();
        Self {
            task: index.task,
            places: places.collect(),
            order: Order::new(groups, window, seed.named(index.task.name())),
            position: Position { epoch: 0, row: 0 },
            loaded: None,
        }
    }

    /// The task whose rows these are.
    #[must_use]
    pub fn task(&self) -> Task {
        self.task
    }

    /// Rows of an epoch.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.order.rows()
    }

    /// Where the reader stands.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Goes to `position`; the next row is the one that would have come there.
    pub fn seek(&mut self, position: Position) {
        self.position = position;
    }

    /// Hands the next `count` rows to `each`, going on into the next epoch where one ends, so that no row is lost.
    ///
    /// # Errors
    /// When a shard cannot be read.
    pub fn next_rows(&mut self, count: usize, mut each: impl FnMut(RowRef<'_>)) -> Result<(), Error> {
        for _ in 0..count {
            let loaded = self.load()?;
            let (start, epoch) = (loaded.window.start, loaded.epoch);
            let within = usize::try_from(self.position.row - start).unwrap_or(usize::MAX);
            if let Some(loaded) = &self.loaded {
                each(loaded.row(loaded.window.rows[within]));
            }
            self.position = Position { epoch, row: self.position.row + 1 };
            if self.position.row == self.order.rows() {
                self.position = Position { epoch: epoch + 1, row: 0 };
            }
        }
        Ok(())
    }

    /// The window that holds the current position, read from disk unless it is in memory.
    fn load(&mut self) -> Result<&Loaded, Error> {
        let Position { epoch, row } = self.position;
        let fits = |l: &Loaded| {
            l.epoch == epoch && (l.window.start..l.window.start + l.window.rows.len() as u64).contains(&row)
        };
        if self.loaded.as_ref().is_some_and(fits)
            && let Some(loaded) = self.loaded.take()
        {
            return Ok(self.loaded.insert(loaded));
        }
        self.loaded = None; // frees the old window before the new one is read
        let nothing = || Error::empty(self.places.first().map(|(path, _)| path.as_path()), self.task);
        let window = self.order.window(epoch, row).ok_or_else(nothing)?;
        let mut numbers = window.groups.clone();
        numbers.sort_unstable();
        let mut groups = Vec::with_capacity(numbers.len());
        for number in numbers {
            let (path, group) = &self.places[number as usize];
            groups.push((number, Shard::open(path, self.task)?.group(*group)?));
        }
        Ok(self.loaded.insert(Loaded { epoch, window, groups }))
    }
}

impl Loaded {
    fn row(&self, Row { group, row }: Row) -> RowRef<'_> {
        let place = self.groups.partition_point(|(number, _)| *number < group);
        let (group, row) = (&self.groups[place].1, row as usize);
        let tokens = group.starts[row]..group.starts[row + 1];
        RowRef {
            input_ids: &group.input_ids[tokens.clone()],
            token_type_ids: &group.token_type_ids[tokens.clone()],
            answer: match &group.answers {
                Answers::Tokens(labels) => Answer::Tokens(&labels[tokens]),
                Answers::Classes(classes) => Answer::Class(classes[row]),
            },
        }
    }
}
