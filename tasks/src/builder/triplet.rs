//! Triplet classification: is the triple stated or corrupted (paper 000, triplet classification)?

use crate::builder::spec::{MadeOf, Spec};
use crate::builder::{Columns, Layout, Sample};
use crate::token::encode::Special;

/// Whether a triple is in the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// A triple of the graph: class 1.
    Stated,
    /// A negative: class 0.
    Corrupted,
}

/// Asks whether the triple is stated.
pub(crate) const SPEC: Spec = Spec {
    asks: "Tell stated triples from corrupted ones",
    label: "1 = stated, 0 = corrupted",
    truth: Some(["corrupted", "stated"]),
    of: MadeOf::Triples {
        stated: |sample, layout, special, columns, _| {
            build(sample, layout, special, columns, Truth::Stated);
        },
        negative: Some(|sample, layout, special, columns, _| {
            build(sample, layout, special, columns, Truth::Corrupted);
        }),
    },
};

/// Builds the sample that asks whether the triple is stated.
pub fn build(sample: &mut Sample, layout: &Layout, special: Special, columns: Columns<'_>, truth: Truth) {
    sample.lay(layout, special, columns);
    sample.class = Some(u32::from(truth == Truth::Stated));
}
