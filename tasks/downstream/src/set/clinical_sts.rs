//! ClinicalSTS of n2c2 2019: `snippet1 snippet2 score` between tabs, without a header.

use super::fields::{Asked, Fields, Preset};
use super::separated::tabs;
use crate::example::Measure;

pub(super) const SET: Preset = Preset {
    extensions: &[".txt", ".txt.gz"],
    measure: Measure::Pearson,
    layout: || {
        Box::new(tabs(
            &["snippet1", "snippet2", "score"],
            Fields::new("snippet1", Some("snippet2"), Asked::Score(vec!["score".to_owned()])),
        ))
    },
};
