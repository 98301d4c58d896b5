//! STS-B (Cer et al. 2017): `genre file year id score sentence1 sentence2` between tabs, without a header, at times with sources behind them.

use super::fields::{Asked, Fields, Preset};
use super::separated::{Config, tabs};
use crate::example::Measure;

pub(super) const SET: Preset = Preset {
    extensions: &[".tsv", ".tsv.gz"],
    measure: Measure::Pearson,
    layout: || {
        Box::new(Config {
            more: true,
            ..tabs(
                &["genre", "file", "year", "id", "score", "sentence1", "sentence2"],
                Fields::new("sentence1", Some("sentence2"), Asked::Score(vec!["score".to_owned()])),
            )
        })
    },
};
