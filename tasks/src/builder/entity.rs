//! Entity prediction: all tokens of the subject, or of the object, are blanks (paper 000, entity prediction).

use crate::builder::{Blanks, Columns, Layout, Sample};
use crate::sample::Slot;
use crate::token::encode::Special;

/// Builds the sample that asks for `slot`, the subject or the object: every token of it is a blank and a target, and no
/// other position is (no 80/10/10 corruption). With [`Blanks::WholeSlot`] the padding of its slot is a blank and a target too,
/// so that the number of blanks does not tell its length.
pub fn build(sample: &mut Sample, layout: &Layout, special: Special, columns: Columns<'_>, slot: Slot) {
    let place = &sample.lay(layout, special, columns)[slot as usize];
    let asked = match layout.blanks {
        Blanks::TrueLength => &place.column,
        Blanks::WholeSlot => &place.slot,
    };
    sample.ask(special, asked.clone());
}
