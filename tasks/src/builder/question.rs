//! Questions and answers that are encoded apart, to be compared as vectors: a triple with one column as a blank, and the name that may stand there.

use crate::builder::{Column, Columns, Form, Layout, Sample};
use crate::sample::Slot;
use crate::token::encode::Special;

/// Builds the row of a triple in which a constant number of blanks stands for `slot`, so that nothing tells the length of the answer: one in a packed row, the whole
/// slot in a slotted one. Nothing is asked of a single token.
pub fn build(sample: &mut Sample, layout: &Layout, special: Special, columns: Columns<'_>, slot: Slot) {
    let (blank, mut columns) = ([special.blank], columns);
    columns[slot as usize] = &blank;
    let places = sample.lay(layout, special, columns);
    sample.blank(special, places[slot as usize].slot.clone());
}

/// Builds the row of a name alone, `[CLS] name [SEP]`.
pub fn name(sample: &mut Sample, special: Special, ids: &[u32]) {
    sample.lay_columns(Form::Packed, special, [Column { ids, width: ids.len(), token_type: 0 }]);
}
