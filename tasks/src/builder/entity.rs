//! Entity prediction: all tokens of the subject, or of the object, are blanks (paper 000, entity prediction).

use crate::builder::{Columns, Sample, place};
use crate::sample::Slot;
use crate::token::encode::Special;

/// Builds the sample that asks for `slot`, the subject or the object: every token of it is a blank and a target, and no
/// other position is (no 80/10/10 corruption).
pub fn build(sample: &mut Sample, special: Special, columns: Columns<'_>, slot: Slot) {
    let places = sample.pack(special, columns);
    sample.blank(special, place(&places, slot));
}
