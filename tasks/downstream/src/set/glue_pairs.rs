//! RTE, WNLI and their like (Wang et al. 2019): a header with `sentence1`, `sentence2`, `label`, between tabs.

use super::fields::{Asked, Fields, Preset};
use super::separated::tabs;
use crate::example::Measure;

pub(super) const SET: Preset = Preset {
    extensions: &[".tsv", ".tsv.gz"],
    measure: Measure::Accuracy,
    layout: || {
        Box::new(tabs(&[], Fields::new("sentence1", Some("sentence2"), Asked::Class("label".to_owned()))))
    },
};
