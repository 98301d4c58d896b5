//! What a trainer takes: batches of one task, rows of tokens and semantic maps as plain row-major arrays, ready to become tensors. No file, no
//! tensor library.

pub mod family;
pub mod maps;
pub mod pack;
pub mod rows;
pub mod task;

use base::read::ReadError;

use rows::Rows;
use task::Task;

/// The label of a position that takes no part in the loss.
pub const IGNORED: i64 = -100;

/// What to do about a batch that contradicts itself.
const WRONG: &str = "the batch was put together wrongly";

/// What a batch asks to be predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Targets {
    /// One number per position, `rows * width` of them, [`IGNORED`] where nothing is asked.
    Tokens(Vec<i64>),
    /// One class per sample.
    Classes(Vec<u32>),
}

/// Where a sample stands in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its row.
    pub row: usize,
    /// Position of its first token in the row.
    pub start: usize,
    /// Positions that it takes, padding inside slots included.
    pub len: usize,
}

/// A batch of one task, padded to its own longest row. All matrices are `rows x width`, row-major.
///
/// A row holds one sample, or several when samples are packed; a token may then attend only to tokens with the same segment id in the
/// same row (block-diagonal attention).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The task that every sample belongs to.
    pub task: Task,
    /// Rows in the batch (B).
    pub rows: usize,
    /// Positions in a row (T): the longest row of the batch.
    pub width: usize,
    /// Token ids, padding included.
    pub input_ids: Vec<u32>,
    /// 1 for a token, 0 for padding.
    pub attention_mask: Vec<u32>,
    /// Segment of each token (0 or 1), BERT's token type.
    pub token_type_ids: Vec<u32>,
    /// Position of each token in its sample, from 0.
    pub position_ids: Vec<u32>,
    /// Number of the sample in its row, from 1; 0 outside of samples.
    pub segment_ids: Vec<u32>,
    /// Where each sample stands, in the order of the stream.
    pub samples: Vec<Place>,
    /// What is to be predicted.
    pub targets: Targets,
}

impl Batch {
    /// The batch with one sample in each row: what `position_ids`, `segment_ids` and `samples` say then.
    #[must_use]
    pub fn one_per_row(mut self) -> Self {
        let width = self.width;
        self.samples = (0..self.rows).map(|row| Place { row, start: 0, len: width }).collect();
        self.position_ids = (0..self.rows).flat_map(|_| (0..).take(width)).collect();
        self.segment_ids = vec![1; self.rows * width];
        self
    }

    /// The tokens of every sample as a row of its own, in the order of the stream and without padding, each at the position that the batch gives
    /// it; and for each token the cell of the `rows * width` that it stands in. Samples that share a row come apart, so packing changes nothing.
    ///
    /// # Errors
    /// Names row and position of the first number that cannot be meant.
    pub fn ragged(&self) -> Result<(Rows, Vec<usize>), ReadError> {
        self.check_lengths()?;
        let (mut rows, mut cells, mut positions) = (Rows::default(), vec![], vec![]);
        for &Place { row, start, len } in &self.samples {
            let place =
                |position: usize| format!("batch of {}, row {row}, position {position}", self.task.name());
            if row >= self.rows || start + len > self.width {
                let found = format!(
                    "a sample of {len} tokens ends beyond the {} positions of a row, or beyond the last row",
                    self.width
                );
                return Err(ReadError::new(place(start), found, "", WRONG));
            }
            let begin = row * self.width + start;
            let of = begin..begin + len;
            if let Some(cell) = of.clone().find(|&cell| self.attention_mask[cell] > 1) {
                let found = format!("attention_mask is {}", self.attention_mask[cell]);
                return Err(ReadError::new(
                    place(cell - begin + start),
                    found,
                    "1 for a token or 0 for padding",
                    WRONG,
                ));
            }
            let tokens = cells.len();
            cells.extend(of.filter(|&cell| self.attention_mask[cell] == 1));
            rows.push(cells[tokens..].iter().map(|&cell| (self.input_ids[cell], self.token_type_ids[cell])));
            positions.extend(cells[tokens..].iter().map(|&cell| self.position_ids[cell]));
        }
        rows.set_positions(positions);
        Ok((rows, cells))
    }

    fn check_lengths(&self) -> Result<(), ReadError> {
        let expected = self.rows * self.width;
        let fields = [
            ("input_ids", &self.input_ids),
            ("attention_mask", &self.attention_mask),
            ("token_type_ids", &self.token_type_ids),
            ("position_ids", &self.position_ids),
        ];
        match fields.into_iter().find(|(_, values)| values.len() != expected) {
            Some((field, values)) => Err(ReadError::new(
                format!("batch of {}", self.task.name()),
                format!("{field} has {} numbers", values.len()),
                format!("rows * width = {expected}"),
                WRONG,
            )),
            None => Ok(()),
        }
    }

    /// Positions that are not padding.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.attention_mask.iter().filter(|&&m| m == 1).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(rows: &[&[u32]]) -> Batch {
        let width = rows.iter().map(|row| row.len()).max().unwrap();
        let cells = |of: fn(Option<u32>) -> u32| -> Vec<u32> {
            rows.iter().flat_map(|row| (0..width).map(move |t| of(row.get(t).copied()))).collect()
        };
        Batch {
            task: Task::Relation,
            rows: rows.len(),
            width,
            input_ids: cells(Option::unwrap_or_default),
            attention_mask: cells(|id| u32::from(id.is_some())),
            token_type_ids: cells(|_| 0),
            position_ids: vec![],
            segment_ids: vec![],
            samples: vec![],
            targets: Targets::Classes(vec![0; rows.len()]),
        }
        .one_per_row()
    }

    #[test]
    fn padding_vanishes_and_gaps_keep_positions() {
        let (rows, cells) = batch(&[&[2, 3], &[2, 9, 3]]).ragged().unwrap();
        assert_eq!((rows.ids.as_slice(), rows.lengths.as_slice()), (&[2, 3, 2, 9, 3][..], &[2, 3][..]));
        assert_eq!((rows.positions.len(), cells), (0, vec![0, 1, 3, 4, 5]));
        let mut gap = batch(&[&[2, 0, 7, 3]]);
        gap.attention_mask[1] = 0;
        let (rows, cells) = gap.ragged().unwrap();
        assert_eq!((rows.ids, rows.positions, cells), (vec![2, 7, 3], vec![0, 2, 3], vec![0, 2, 3]));
    }

    #[test]
    fn samples_that_share_a_row_come_apart() {
        let mut packed = batch(&[&[2, 9, 3, 2, 3, 0]]);
        packed.attention_mask[5] = 0;
        packed.position_ids = vec![0, 1, 2, 0, 1, 0];
        // The stream's order is not that of the places.
        packed.samples = vec![Place { row: 0, start: 3, len: 2 }, Place { row: 0, start: 0, len: 3 }];
        let (rows, cells) = packed.ragged().unwrap();
        assert_eq!((rows.ids.as_slice(), rows.lengths.as_slice()), (&[2, 3, 2, 9, 3][..], &[2, 3][..]));
        assert_eq!((rows.positions.len(), cells), (0, vec![3, 4, 0, 1, 2]));
        packed.samples[0].len = 4;
        let error = packed.ragged().unwrap_err().to_string();
        assert!(error.contains("beyond the 6 positions"), "{error}");
    }

    #[test]
    fn what_contradicts_itself_is_named() {
        let mut short = batch(&[&[1, 2]]);
        short.token_type_ids.pop();
        let error = short.ragged().unwrap_err().to_string();
        assert!(error.contains("token_type_ids has 1 numbers, expected rows * width = 2"), "{error}");
        let mut neither = batch(&[&[1, 2]]);
        neither.attention_mask[1] = 2;
        let error = neither.ragged().unwrap_err().to_string();
        assert!(error.contains("row 0, position 1: attention_mask is 2, expected 1 for a token"), "{error}");
    }
}
