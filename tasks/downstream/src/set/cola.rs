//! CoLA (Warstadt et al. 2019): `source label mark sentence` between tabs, without a header.

use super::fields::{Asked, Fields, Preset};
use super::separated::tabs;
use crate::example::Measure;

pub(super) const SET: Preset = Preset {
    extensions: &[".tsv", ".tsv.gz"],
    measure: Measure::Matthews,
    layout: || {
        Box::new(tabs(
            &["source", "label", "mark", "sentence"],
            Fields::new("sentence", None, Asked::Class("label".to_owned()))
                .named([("0", "unacceptable"), ("1", "acceptable")]),
        ))
    },
};
