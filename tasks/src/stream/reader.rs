//! The rows of one task for given triples, from the row groups of the window that is in memory. Knows no order.

use std::path::{Path, PathBuf};

use super::order::{Place, Window};
use crate::shard::index::TaskIndex;
use crate::shard::read::{Answers, Error, Group, Shard};
use crate::task::Task;

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

/// Reads one task's rows.
#[derive(Debug)]
pub struct Reader {
    task: Task,
    /// File and row group within it, for every row group of the task.
    places: Vec<(PathBuf, usize)>,
    /// The row groups in memory by ascending number.
    groups: Vec<(u32, Group)>,
}

impl Reader {
    /// A reader over the shards that `index` lists below `folder`.
    #[must_use]
    pub fn new(folder: &Path, index: &TaskIndex) -> Self {
        let places = index.files.iter().flat_map(|file| {
            (0..file.groups.len()).map(|group| (folder.join(&file.path), group)).collect::<Vec<_>>()
        });
        Self { task: index.task, places: places.collect(), groups: Vec::new() }
    }

    /// The task whose rows these are.
    #[must_use]
    pub fn task(&self) -> Task {
        self.task
    }

    /// Reads the row groups of `window` from disk, in place of those in memory.
    ///
    /// # Errors
    /// When a shard cannot be read.
    pub fn load(&mut self, window: &Window) -> Result<(), Error> {
        self.groups.clear(); // frees the old window before the new one is read
        let mut numbers = window.groups.clone();
        numbers.sort_unstable();
        for number in numbers {
            let (path, group) = &self.places[number as usize];
            self.groups.push((number, Shard::open(path, self.task)?.group(*group)?));
        }
        Ok(())
    }

    /// Hands the rows of a triple of the loaded window to `each`: one row, or the stated one and its negative.
    pub fn rows(&self, Place { group, triple }: Place, mut each: impl FnMut(RowRef<'_>)) {
        let place = self.groups.partition_point(|(number, _)| *number < group);
        let (group, triple) = (&self.groups[place].1, triple as usize);
        for row in group.firsts[triple]..group.firsts[triple + 1] {
            let tokens = group.starts[row]..group.starts[row + 1];
            each(RowRef {
                input_ids: &group.input_ids[tokens.clone()],
                token_type_ids: &group.token_type_ids[tokens.clone()],
                answer: match &group.answers {
                    Answers::Tokens(labels) => Answer::Tokens(&labels[tokens]),
                    Answers::Classes(classes) => Answer::Class(classes[row]),
                },
            });
        }
    }
}
