//! Relation prediction: the relation is one blank and the class is asked for (paper 000, relation prediction).

use crate::builder::{Columns, Sample};
use crate::token::encode::Special;

/// Builds the sample that asks for `relation`. A constant single blank stands for it, because as many blanks as the
/// relation has tokens would give it away (MODELS section 1.8).
pub fn build(sample: &mut Sample, special: Special, [subject, _, object]: Columns<'_>, relation: u32) {
    sample.pack(special, [subject, &[special.blank], object]);
    sample.class = Some(relation);
}
