//! SST-2 (Socher et al. 2013): the header `sentence label`, between tabs.

use super::fields::{Asked, Fields, Preset};
use super::separated::tabs;
use crate::example::Measure;

pub(super) const SET: Preset = Preset {
    extensions: &[".tsv", ".tsv.gz"],
    measure: Measure::Accuracy,
    layout: || {
        Box::new(tabs(
            &[],
            Fields::new("sentence", None, Asked::Class("label".to_owned()))
                .named([("0", "negative"), ("1", "positive")]),
        ))
    },
};
