//! Whether the triples of each relation point the way they say: how they were stated, what contradicts them, and between which types of entities they run.
//!
//! A triple can be the wrong way round without any row being malformed; an inverse relation that was read as its opposite does it to
//! all rows at once. Three things show it. The table may hold a triple *and* its exchange. The semantic types of most triples of a
//! relation form its *signature*, such as `may_treat`: Pharmacologic Substance -> Disease, and a turned triple runs against it. And the
//! signature itself can be read by a person who knows what the relation means.

pub mod direction;
mod report;
pub mod schema;
pub mod signature;
pub mod violation;

use serde::{Deserialize, Serialize};

pub use report::{Certificate, OfRelation, Verdict, certify};

/// How to judge.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// A pair of types belongs to a relation's signature from this share of its typed triples on.
    pub min_share: f64,
    /// Unless it is the exchange of another pair and has at most this share of that pair's triples: then it counts as inverted,
    /// so that some percent of turned triples do not make themselves lawful.
    pub max_reversed: f64,
    /// Most examples of violations to list in the report for each relation and kind; all are in the file of violations.
    pub examples: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { min_share: 0.01, max_reversed: 0.1, examples: 5 }
    }
}
