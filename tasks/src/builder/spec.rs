//! What the rows of a task are, as its builder's file says it; [`crate::task`] is the table.

use std::collections::BTreeMap;

use base::rng::RngKey;
use kg::split::Part;

use crate::Error;
use crate::builder::{Columns, Layout, Sample};
use crate::names::Names;
use crate::sample::Triple;
use crate::token::encode::Special;

/// What the rows of a task are.
#[derive(Debug)]
pub(crate) struct Spec {
    /// What they ask for: a sentence without its full stop.
    pub(crate) asks: &'static str,
    /// What the column of labels holds.
    pub(crate) label: &'static str,
    /// What the classes 0 and 1 are called, where a row is true or false.
    pub(crate) truth: Option<[&'static str; 2]>,
    /// What they are made of.
    pub(crate) of: MadeOf,
}

/// What rows are made of.
#[derive(Debug)]
pub(crate) enum MadeOf {
    /// Stated triples, a row each; behind it its negatives, where a task has a row for such.
    Triples { stated: Build, negative: Option<Build> },
    /// Pairs of names, if the task draws such ([`crate::shard::pairs`]); else items that the caller has ([`crate::shard::text`]).
    Items { pairs: Option<Pairs> },
}

/// Fills a row with the columns of a triple.
pub(crate) type Build = fn(&mut Sample, &Layout, Special, Columns<'_>, Triple);

/// How pairs of names become rows.
#[derive(Debug)]
pub(crate) struct Pairs {
    /// Draws the pairs of a part, as a function of the names and the key alone.
    pub(crate) draw: fn(&Names, Part, RngKey) -> Result<Drawn, Error>,
    /// Fills a row with the tokens of two names and its class, 1 for true and 0 for false.
    pub(crate) build: fn(&mut Sample, &Layout, Special, [&[u32]; 2], u32),
}

/// The pairs of a part.
#[derive(Debug, Default)]
pub(crate) struct Drawn {
    pub(crate) pairs: Vec<Pair>,
    /// What was drawn and what was refused, by name, for the index.
    pub(crate) counts: BTreeMap<String, u64>,
}

/// Names by their places in [`Names`]: a row that is true, and one that is false, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) first: u32,
    /// What stands beside it in the true row.
    pub(crate) second: u32,
    /// What stands beside it in the false row.
    pub(crate) negative: Option<u32>,
}

/// A column of numbers, uint32.
#[derive(Debug)]
pub(crate) struct Number {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
}

const OF_TRIPLE: &[Number] = &[Number { name: "triple", meaning: "row of the triple in triples.parquet" }];

const OF_NAMES: &[Number] = &[
    Number { name: "entity", meaning: "row of the first name's entity in entities.parquet" },
    Number { name: "name", meaning: "row of the first name in terms.parquet" },
    Number { name: "other", meaning: "row of the second name in terms.parquet" },
];

const OF_TEXT: &[Number] = &[
    Number { name: "document", meaning: "number of the document in the order of reading, from 0" },
    Number { name: "chunk", meaning: "part of the document, from 0" },
];

impl MadeOf {
    /// The columns that say where a row comes from.
    pub(crate) fn origin(&self) -> &'static [Number] {
        match self {
            MadeOf::Triples { .. } => OF_TRIPLE,
            MadeOf::Items { pairs: Some(_) } => OF_NAMES,
            MadeOf::Items { pairs: None } => OF_TEXT,
        }
    }

    /// How a row is laid out.
    pub(crate) fn row(&self) -> &'static str {
        match self {
            MadeOf::Triples { .. } => {
                "[CLS] subject [SEP] relation [SEP] object [SEP]; what is asked for is [MASK]"
            }
            MadeOf::Items { pairs: Some(_) } => "[CLS] name [SEP] name [SEP]",
            MadeOf::Items { pairs: None } => "[CLS] text [SEP]",
        }
    }
}
