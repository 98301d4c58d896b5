//! What the rows of a task are, as its builder's file says it; [`crate::task`] is the table.

use crate::builder::{Columns, Layout, Sample};
use crate::sample::Triple;
use crate::token::encode::Special;

/// What the rows of a task are.
#[derive(Debug)]
pub(crate) struct Spec {
    /// What they ask for: a sentence without its full stop.
    pub(crate) asks: &'static str,
    /// What the column of labels holds.
    pub(crate) label: &'static str,
    /// What they are made of.
    pub(crate) of: MadeOf,
}

/// What rows are made of.
#[derive(Debug)]
pub(crate) enum MadeOf {
    /// Stated triples, a row each; behind it its negatives, where a task has a row for such.
    Triples { stated: Build, negative: Option<Build> },
    /// Chunks of texts, by items of the task's own ([`crate::shard::text`]).
    Texts,
}

/// Fills a row with the columns of a triple.
pub(crate) type Build = fn(&mut Sample, &Layout, Special, Columns<'_>, Triple);
