//! Triples and texts to samples, one builder per task, in any [`Layout`].
//!
//! Packed: `[CLS] subject [SEP] relation [SEP] object [SEP]`, without gaps; slotted: the same with padding behind each column up to
//! its limit, which no token attends to (MODELS section 1.8). Each column is cut for itself, so the closing `[SEP]` always stands;
//! encoding has cut the columns already and counted what it cut.

pub mod entity;
pub mod gathered;
pub mod layout;
pub mod masked_lm;
pub mod passage;
pub mod question;
pub mod relation;
pub(crate) mod spec;
pub(crate) mod synonyms;
pub mod tagging;
pub mod triplet;

use std::ops::Range;

use batch::IGNORED;

pub use self::layout::{Blanks, Form, Layout, Limits, TokenTypes};
use crate::builder::passage::Token;
use crate::sample::Slot;
use crate::token::encode::Special;

/// Positions in front of a text: `[CLS]`.
pub(crate) const BEFORE: usize = 1;

/// The token ids of a triple's three columns.
pub type Columns<'a> = [&'a [u32]; 3];

/// One sample before it is stored; reused from row to row. The first three have one entry per position (T).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// Token ids.
    pub input_ids: Vec<u32>,
    /// 1 for a token or a blank, 0 for padding inside the row.
    pub attention: Vec<u32>,
    /// Segment of each token, 0 or 1.
    pub token_type_ids: Vec<u32>,
    /// Token to be predicted at each position, [`IGNORED`] where none is; empty for tasks with a class.
    pub labels: Vec<i64>,
    /// Class to be predicted; `None` for tasks with tokens.
    pub class: Option<u32>,
}

/// A column before it stands in a row.
#[derive(Debug, Clone, Copy)]
struct Column<'a> {
    ids: &'a [u32],
    /// Most tokens of it, and the width of its slot.
    width: usize,
    /// The token type of the column and of the separator after it.
    token_type: u32,
}

/// Where a column stands in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// Its tokens.
    column: Range<usize>,
    /// Its tokens and the padding behind them.
    slot: Range<usize>,
}

impl Sample {
    /// How many tokens are no padding.
    #[must_use]
    pub fn seen(&self) -> usize {
        self.attention.iter().filter(|seen| **seen == 1).count()
    }

    /// Fills the sample with the columns of a triple and returns where each of them stands.
    fn lay(&mut self, layout: &Layout, special: Special, columns: Columns<'_>) -> [Place; 3] {
        let columns = Slot::ALL.map(|slot| Column {
            ids: columns[slot as usize],
            width: layout.width(slot),
            token_type: layout.token_type(slot),
        });
        self.lay_columns(layout.form, special, columns)
    }

    /// Fills the sample with columns, `[SEP]` behind each (RoBERTa: and one more in front of the next), and returns where each of them stands.
    fn lay_columns<const N: usize>(
        &mut self,
        form: Form,
        special: Special,
        columns: [Column<'_>; N],
    ) -> [Place; N] {
        self.labels.clear();
        self.class = None;
        for cleared in [&mut self.input_ids, &mut self.attention, &mut self.token_type_ids] {
            cleared.clear();
        }
        self.push(special.cls, 0);
        let more = special.family.between() - 1;
        columns.map(|Column { ids, width, token_type }| {
            let token_type = special.family.segment(token_type);
            if self.input_ids.len() > 1 {
                (0..more).for_each(|_| self.push(special.sep, token_type));
            }
            let start = self.input_ids.len();
            self.input_ids.extend_from_slice(&ids[..ids.len().min(width)]);
            let end = self.input_ids.len();
            self.attention.resize(end, 1);
            if form == Form::Slotted {
                self.input_ids.resize(start + width, special.padding);
                self.attention.resize(start + width, 0);
            }
            let place = Place { column: start..end, slot: start..self.input_ids.len() };
            self.token_type_ids.resize(place.slot.end, token_type);
            self.push(special.sep, token_type);
            place
        })
    }

    /// Fills the sample with the tokens of a text, `[CLS] text [SEP]`; nothing is asked for yet.
    pub(crate) fn lay_text(&mut self, special: Special, text: &[Token]) {
        self.class = None;
        self.input_ids.clear();
        self.input_ids.push(special.cls);
        self.input_ids.extend(text.iter().map(|token| token.id));
        self.input_ids.push(special.sep);
        let length = self.input_ids.len();
        for (column, value) in [(&mut self.attention, 1), (&mut self.token_type_ids, 0)] {
            column.clear();
            column.resize(length, value);
        }
        self.labels.clear();
        self.labels.resize(length, IGNORED);
    }

    fn push(&mut self, token: u32, token_type: u32) {
        self.input_ids.push(token);
        self.attention.push(1);
        self.token_type_ids.push(token_type);
    }

    /// Turns positions into blanks, which are seen whatever stood there.
    fn blank(&mut self, special: Special, place: Range<usize>) {
        self.input_ids[place.clone()].fill(special.blank);
        self.attention[place].fill(1);
    }

    /// Turns positions into blanks and asks for what stood there.
    fn ask(&mut self, special: Special, place: Range<usize>) {
        self.labels.resize(self.input_ids.len(), IGNORED);
        for at in place.clone() {
            self.labels[at] = i64::from(self.input_ids[at]);
        }
        self.blank(special, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use batch::family::Family;

    const SPECIAL: Special =
        Special { padding: 0, unknown: 1, cls: 2, sep: 3, blank: 4, family: Family::Bert };
    const N: i64 = IGNORED;
    const PACKED: Layout = Layout {
        form: Form::Packed,
        token_types: TokenTypes::Zero,
        blanks: Blanks::TrueLength,
        limits: Limits { node: 3, edge: 2 },
    };
    const SLOTTED: Layout = Layout { form: Form::Slotted, token_types: TokenTypes::ByColumn, ..PACKED };
    const COLUMNS: Columns<'_> = [&[10, 11], &[20, 21], &[30]];

    #[test]
    fn every_task_builds_its_packed_row() {
        let mut sample = Sample::default();
        entity::build(&mut sample, &PACKED, SPECIAL, COLUMNS, Slot::Subject);
        assert_eq!(sample.input_ids, [2, 4, 4, 3, 20, 21, 3, 30, 3]);
        assert_eq!(sample.labels, [N, 10, 11, N, N, N, N, N, N]);
        assert_eq!((&sample.attention, &sample.token_type_ids), (&vec![1; 9], &vec![0; 9]));
        assert_eq!(sample.class, None);
        entity::build(&mut sample, &PACKED, SPECIAL, COLUMNS, Slot::Object);
        assert_eq!(sample.input_ids, [2, 10, 11, 3, 20, 21, 3, 4, 3]);
        assert_eq!(sample.labels, [N, N, N, N, N, N, N, 30, N]);
        relation::build(&mut sample, &PACKED, SPECIAL, COLUMNS, 7);
        assert_eq!(sample.input_ids, [2, 10, 11, 3, 4, 3, 30, 3], "one blank whatever the relation's length");
        assert_eq!((sample.class, sample.labels.len(), sample.attention.len()), (Some(7), 0, 8));
        triplet::build(&mut sample, &PACKED, SPECIAL, COLUMNS, triplet::Truth::Stated);
        assert_eq!(sample.input_ids, [2, 10, 11, 3, 20, 21, 3, 30, 3]);
        assert_eq!(sample.class, Some(1));
        triplet::build(&mut sample, &PACKED, SPECIAL, COLUMNS, triplet::Truth::Corrupted);
        assert_eq!(sample.class, Some(0));
    }

    #[test]
    fn slotted_rows_have_fixed_places_and_pads_that_nobody_attends_to() {
        let mut sample = Sample::default();
        triplet::build(&mut sample, &SLOTTED, SPECIAL, COLUMNS, triplet::Truth::Stated);
        assert_eq!(sample.input_ids, [2, 10, 11, 0, 3, 20, 21, 3, 30, 0, 0, 3]);
        assert_eq!(sample.attention, [1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1]);
        assert_eq!(sample.token_type_ids, [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0]);
        entity::build(&mut sample, &SLOTTED, SPECIAL, COLUMNS, Slot::Object);
        assert_eq!(sample.input_ids, [2, 10, 11, 0, 3, 20, 21, 3, 4, 0, 0, 3]);
        assert_eq!(sample.labels, [N, N, N, N, N, N, N, N, 30, N, N, N]);
        let columns: Columns<'_> = [&[10, 11], &[20], &[30]];
        relation::build(&mut sample, &SLOTTED, SPECIAL, columns, 7);
        assert_eq!(sample.input_ids, [2, 10, 11, 0, 3, 4, 4, 3, 30, 0, 0, 3], "the whole slot is blank");
        assert_eq!(sample.attention, [1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1]);
        assert_eq!(sample.input_ids.len(), SLOTTED.longest(Family::Bert));
    }

    #[test]
    fn a_row_of_robertas_has_two_separators_and_one_segment() {
        let special = Special { family: Family::Roberta, ..SPECIAL };
        let mut sample = Sample::default();
        entity::build(&mut sample, &PACKED, special, COLUMNS, Slot::Object);
        assert_eq!(sample.input_ids, [2, 10, 11, 3, 3, 20, 21, 3, 3, 4, 3]);
        assert_eq!(sample.labels, [N, N, N, N, N, N, N, N, N, 30, N]);
        assert_eq!((&sample.attention, &sample.token_type_ids), (&vec![1; 11], &vec![0; 11]));
        triplet::build(&mut sample, &SLOTTED, special, COLUMNS, triplet::Truth::Stated);
        assert_eq!(sample.input_ids, [2, 10, 11, 0, 3, 3, 20, 21, 3, 3, 30, 0, 0, 3]);
        assert_eq!(sample.input_ids.len(), SLOTTED.longest(Family::Roberta));
        assert_eq!(sample.token_type_ids, [0; 14]);
        question::name(&mut sample, special, &[7, 8]);
        assert_eq!(sample.input_ids, [2, 7, 8, 3]);
    }

    #[test]
    fn whole_slots_hide_how_long_an_entity_is() {
        let layout = Layout { blanks: Blanks::WholeSlot, ..SLOTTED };
        let mut sample = Sample::default();
        entity::build(&mut sample, &layout, SPECIAL, COLUMNS, Slot::Object);
        assert_eq!(sample.input_ids, [2, 10, 11, 0, 3, 20, 21, 3, 4, 4, 4, 3]);
        assert_eq!(sample.attention, [1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1], "blanks are seen");
        assert_eq!(sample.labels, [N, N, N, N, N, N, N, N, 30, 0, 0, N], "padding is asked for as well");
        let shorter: Columns<'_> = [&[10, 11], &[20, 21], &[30, 31, 32]];
        let mut other = Sample::default();
        entity::build(&mut other, &layout, SPECIAL, shorter, Slot::Object);
        assert_eq!((sample.input_ids, sample.attention), (other.input_ids, other.attention));
    }

    #[test]
    fn columns_are_cut_each_for_itself() {
        let long: Columns<'_> = [&[10, 11, 12, 13], &[20, 21, 22], &[30, 31, 32, 33, 34]];
        let mut sample = Sample::default();
        for layout in [PACKED, SLOTTED] {
            triplet::build(&mut sample, &layout, SPECIAL, long, triplet::Truth::Stated);
            assert_eq!(sample.input_ids, [2, 10, 11, 12, 3, 20, 21, 3, 30, 31, 32, 3]);
        }
    }
}
