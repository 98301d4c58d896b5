//! Relation prediction: the relation is blank and the class is asked for (paper 000, relation prediction).

use crate::builder::spec::{MadeOf, Spec};
use crate::builder::{Columns, Layout, Sample, question};
use crate::sample::Slot;
use crate::token::encode::Special;

/// Asks for the relation.
pub(crate) const SPEC: Spec = Spec {
    asks: "Predict the relation from subject and object",
    label: "the relation, as its row in relations.parquet",
    truth: None,
    of: MadeOf::Triples {
        stated: |sample, layout, special, columns, triple| {
            build(sample, layout, special, columns, triple[Slot::Relation as usize]);
        },
        negative: None,
    },
};

/// Builds the sample that asks for `relation`. A constant number of blanks stands for it, because as many as the relation has
/// tokens would give it away (MODELS section 1.8).
pub fn build(sample: &mut Sample, layout: &Layout, special: Special, columns: Columns<'_>, relation: u32) {
    question::build(sample, layout, special, columns, Slot::Relation);
    sample.class = Some(relation);
}
