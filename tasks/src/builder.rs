//! Triples to samples, one builder per task, in KIMERA's packed layout. Knows no vocabulary file and no shard.
//!
//! Packed: `[CLS] subject [SEP] relation [SEP] object [SEP]`, without gaps (MODELS section 1.8). Columns are cut before
//! they come here, so the closing `[SEP]` always stands.

pub mod entity;
pub mod relation;
pub mod triplet;

use std::ops::Range;

use crate::sample::Slot;
use crate::stream::batch::IGNORED;
use crate::token::encode::Special;

/// The token ids of a triple's three columns.
pub type Columns<'a> = [&'a [u32]; 3];

/// One sample before it is stored; reused from row to row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// Token ids.
    pub input_ids: Vec<u32>,
    /// Token to be predicted at each position, [`IGNORED`] where none is; empty for tasks with a class.
    pub labels: Vec<i64>,
    /// Class to be predicted; `None` for tasks with tokens.
    pub class: Option<u32>,
}

impl Sample {
    /// Fills the sample with the packed columns and returns where each column stands.
    fn pack(&mut self, special: Special, columns: Columns<'_>) -> [Range<usize>; 3] {
        self.labels.clear();
        self.class = None;
        self.input_ids.clear();
        self.input_ids.push(special.cls);
        columns.map(|column| {
            let start = self.input_ids.len();
            self.input_ids.extend_from_slice(column);
            self.input_ids.push(special.sep);
            start..start + column.len()
        })
    }

    /// Turns a column into blanks and asks for what stood there.
    fn blank(&mut self, special: Special, place: Range<usize>) {
        self.labels.resize(self.input_ids.len(), IGNORED);
        for at in place {
            self.labels[at] = i64::from(self.input_ids[at]);
            self.input_ids[at] = special.blank;
        }
    }
}

/// Which of a triple's columns an entity task asks for.
pub(crate) fn place(places: &[Range<usize>; 3], slot: Slot) -> Range<usize> {
    places[slot as usize].clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const SPECIAL: Special = Special { padding: 0, unknown: 1, cls: 2, sep: 3, blank: 4 };
    const N: i64 = IGNORED;

    #[test]
    fn every_task_builds_its_row() {
        let columns: Columns<'_> = [&[10, 11], &[20, 21], &[30]];
        let mut sample = Sample::default();
        entity::build(&mut sample, SPECIAL, columns, Slot::Subject);
        assert_eq!(sample.input_ids, [2, 4, 4, 3, 20, 21, 3, 30, 3]);
        assert_eq!(sample.labels, [N, 10, 11, N, N, N, N, N, N]);
        assert_eq!(sample.class, None);
        entity::build(&mut sample, SPECIAL, columns, Slot::Object);
        assert_eq!(sample.input_ids, [2, 10, 11, 3, 20, 21, 3, 4, 3]);
        assert_eq!(sample.labels, [N, N, N, N, N, N, N, 30, N]);
        relation::build(&mut sample, SPECIAL, columns, 7);
        assert_eq!(sample.input_ids, [2, 10, 11, 3, 4, 3, 30, 3], "one blank whatever the relation's length");
        assert_eq!((sample.class, sample.labels.len()), (Some(7), 0));
        triplet::build(&mut sample, SPECIAL, columns, triplet::Truth::Stated);
        assert_eq!(sample.input_ids, [2, 10, 11, 3, 20, 21, 3, 30, 3]);
        assert_eq!(sample.class, Some(1));
        triplet::build(&mut sample, SPECIAL, columns, triplet::Truth::Corrupted);
        assert_eq!(sample.class, Some(0));
    }
}
