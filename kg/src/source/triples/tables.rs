//! The tables of one source: what is counted of each while it is read, where its rows come from, and their sum.

use std::path::Path;

use base::funnel::{BLANK_LINES, Tally};

use crate::table::builder::DraftOrigin;
use crate::table::{Builder, Origin};

/// A table while it is read.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) tally: Tally,
    origin: Origin,
    unweighted: Option<DraftOrigin>,
}

impl Table {
    pub(super) fn new(label: &Path, part: Option<&str>, source: &str, level: Option<u8>) -> Self {
        let (source, vocabulary) = (source.to_owned(), part.map(str::to_owned));
        let origin = Origin { source, vocabulary, weight: None, count: None, level };
        Self { tally: Tally::new(label, &[BLANK_LINES]), origin, unweighted: None }
    }

    pub(super) fn origin(&mut self, weight: Option<f64>, builder: &mut Builder) -> DraftOrigin {
        match weight {
            Some(_) => builder.origin(Origin { weight, ..self.origin.clone() }),
            None => *self.unweighted.get_or_insert_with(|| builder.origin(self.origin.clone())),
        }
    }
}

/// The sum of all tables, under the name of the one or of the folder.
pub(super) fn together(tables: &[Tally], label: &Path) -> Tally {
    if let [only] = tables {
        return only.clone();
    }
    let mut sum = Tally::new(label, &[]);
    tables.iter().for_each(|table| sum.add(table));
    sum
}
