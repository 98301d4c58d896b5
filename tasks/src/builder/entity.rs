//! Entity prediction: all tokens of the subject, or of the object, are blanks (paper 000, entity prediction).

use crate::builder::spec::{MadeOf, Spec};
use crate::builder::{Blanks, Columns, Layout, Sample};
use crate::sample::Slot;
use crate::token::encode::Special;

/// Asks for the subject.
pub(crate) const SUBJECT: Spec = Spec {
    asks: "Predict all tokens of the subject from relation and object",
    label: "token to be predicted at each position, -100 where none is",
    truth: None,
    of: MadeOf::Triples {
        stated: |sample, layout, special, columns, _| build(sample, layout, special, columns, Slot::Subject),
        negative: None,
    },
};

/// Asks for the object.
pub(crate) const OBJECT: Spec = Spec {
    asks: "Predict all tokens of the object from subject and relation",
    label: "token to be predicted at each position, -100 where none is",
    truth: None,
    of: MadeOf::Triples {
        stated: |sample, layout, special, columns, _| build(sample, layout, special, columns, Slot::Object),
        negative: None,
    },
};

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
