//! Samples to one batch.

use batch::pack;
use batch::task::{Answer, Task};
use batch::{Batch, IGNORED, Place, Targets};

use super::window::RowRef;

/// How samples are put into rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// One sample each.
    One,
    /// Several samples in rows of so many positions.
    Packed(usize),
}

impl Fill {
    /// A place for each of the samples of these lengths.
    pub(crate) fn places(self, lengths: &[usize]) -> Vec<Place> {
        match self {
            Self::One => pack::alone(lengths),
            Self::Packed(width) => pack::best_fit(lengths, width),
        }
    }
}

/// Gathers the samples of a batch.
#[derive(Debug)]
pub struct Samples<'w> {
    task: Task,
    rows: Vec<RowRef<'w>>,
}

impl<'w> Samples<'w> {
    /// No samples of `task` so far.
    #[must_use]
    pub fn new(task: Task) -> Self {
        Self { task, rows: Vec::new() }
    }

    /// Adds a sample.
    pub fn push(&mut self, row: RowRef<'w>) {
        self.rows.push(row);
    }

    /// All samples as one batch, padded with the token `padding`.
    #[must_use]
    pub fn batch(&self, fill: Fill, padding: u32) -> Batch {
        let lengths: Vec<usize> = self.rows.iter().map(|row| row.input_ids.len()).collect();
        let samples = fill.places(&lengths);
        let rows = samples.iter().map(|place| place.row + 1).max().unwrap_or(0);
        let width = samples.iter().map(|place| place.start + place.len).max().unwrap_or(0);
        let cells = Cells { samples: &samples, width, count: rows * width };
        let zeros = |_: &RowRef<'_>, _: &mut [u32]| {};
        let types =
            |row: &RowRef<'_>, cells: &mut [u32]| row.token_type_ids.iter().for_each(|ids| copy(ids, cells));
        let any_type = self.rows.iter().any(|row| row.token_type_ids.is_some());
        Batch {
            task: self.task,
            rows,
            width,
            input_ids: cells.fill(&self.rows, padding, |row, cells| copy(row.input_ids, cells)),
            attention_mask: cells.fill(&self.rows, 0, |row, cells| match row.attention {
                Some(mask) => copy(mask, cells),
                None => cells.fill(1),
            }),
            token_type_ids: if any_type {
                cells.fill(&self.rows, 0, types)
            } else {
                cells.fill(&[], 0, zeros)
            },
            position_ids: cells
                .fill(&self.rows, 0, |_, cells| (0..).zip(cells).for_each(|(at, cell)| *cell = at)),
            segment_ids: segments(&samples, width, rows * width),
            targets: self.targets(&cells),
            samples,
        }
    }

    fn targets(&self, cells: &Cells<'_>) -> Targets {
        match self.task.answer() {
            Answer::Class => Targets::Classes(
                self.rows.iter().flat_map(|row| row.answers).map(|&c| c.cast_unsigned()).collect(),
            ),
            Answer::Tokens => Targets::Tokens(cells.fill(&self.rows, IGNORED, |row, cells: &mut [i64]| {
                cells.iter_mut().zip(row.answers).for_each(|(cell, &label)| *cell = i64::from(label));
            })),
        }
    }
}

/// The cells of a batch and the places of its samples among them.
struct Cells<'a> {
    samples: &'a [Place],
    width: usize,
    count: usize,
}

impl Cells<'_> {
    /// A matrix of `rest` into which each sample writes its cells.
    fn fill<T: Copy>(&self, rows: &[RowRef<'_>], rest: T, write: impl Fn(&RowRef<'_>, &mut [T])) -> Vec<T> {
        let mut cells = vec![rest; self.count];
        for (place, row) in self.samples.iter().zip(rows) {
            let start = place.row * self.width + place.start;
            write(row, &mut cells[start..start + place.len]);
        }
        cells
    }
}

/// The number of each sample in its row, in the order in which they stand there.
pub(crate) fn segments(samples: &[Place], width: usize, count: usize) -> Vec<u32> {
    let mut by_place: Vec<&Place> = samples.iter().collect();
    by_place.sort_unstable_by_key(|place| (place.row, place.start));
    let (mut cells, mut row, mut number) = (vec![0; count], usize::MAX, 0);
    for place in by_place {
        number = if place.row == row { number + 1 } else { 1 };
        row = place.row;
        let start = place.row * width + place.start;
        cells[start..start + place.len].fill(number);
    }
    cells
}

fn copy(from: &[i32], to: &mut [u32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = from.cast_unsigned());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>(ids: &'a [i32], answers: &'a [i32]) -> RowRef<'a> {
        RowRef { input_ids: ids, token_type_ids: None, attention: None, answers }
    }

    #[test]
    fn samples_are_padded_to_the_longest() {
        let mut samples = Samples::new(Task::Subject);
        samples.push(row(&[2, 7, 3], &[-100, 7, -100]));
        samples.push(RowRef {
            token_type_ids: Some(&[0, 1]),
            attention: Some(&[1, 0]),
            ..row(&[2, 3], &[-100, -100])
        });
        let batch = samples.batch(Fill::One, 9);
        assert_eq!((batch.rows, batch.width, batch.tokens()), (2, 3, 4));
        assert_eq!(batch.input_ids, [2, 7, 3, 2, 3, 9]);
        assert_eq!(batch.attention_mask, [1, 1, 1, 1, 0, 0]);
        assert_eq!(batch.token_type_ids, [0, 0, 0, 0, 1, 0]);
        assert_eq!(batch.position_ids, [0, 1, 2, 0, 1, 0]);
        assert_eq!(batch.segment_ids, [1, 1, 1, 1, 1, 0]);
        assert_eq!(batch.targets, Targets::Tokens(vec![-100, 7, -100, -100, -100, -100]));
    }

    #[test]
    fn packed_samples_keep_their_order_positions_and_classes() {
        let mut samples = Samples::new(Task::Relation);
        let rows: [(&[i32], [i32; 1]); 3] = [(&[2, 3], [5]), (&[2, 8, 8, 3], [6]), (&[2, 4], [7])];
        for (ids, class) in &rows {
            samples.push(row(ids, class));
        }
        let batch = samples.batch(Fill::Packed(6), 0);
        assert_eq!((batch.rows, batch.width), (2, 6));
        assert_eq!(batch.input_ids, [2, 8, 8, 3, 2, 3, 2, 4, 0, 0, 0, 0]);
        assert_eq!(batch.segment_ids, [1, 1, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0]);
        assert_eq!(batch.position_ids, [0, 1, 2, 3, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert_eq!(batch.targets, Targets::Classes(vec![5, 6, 7]), "in the order of the stream");
        assert_eq!(batch.samples[0], Place { row: 0, start: 4, len: 2 });
    }
}
