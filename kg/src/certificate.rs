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
    /// Share of a relation's typed triples from which on a pair of semantic types belongs to its signature, such as Pharmacologic Substance
    /// -> Disease or Syndrome for `may_treat`: 0 to 1.
    ///
    /// Source: ours: because a few mistyped entities must not widen a signature.
    pub min_share: f64,
    /// Share, relative to the pair of types that it swaps, up to which a swapped pair counts as inverted triples rather than as a part of
    /// the signature: 0 to 1. Without this, a few percent of inverted triples would make themselves valid.
    ///
    /// Source: ours: because of two swapped pairs that are both valid, we expect neither to be ten times as frequent as the other.
    pub max_reversed: f64,
    /// How many violations to list in the report, for each relation and kind of violation: up to 1,000,000. The file of violations has all
    /// of them.
    ///
    /// Source: ours: because five show what is wrong.
    pub examples: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { min_share: 0.01, max_reversed: 0.1, examples: 5 }
    }
}
