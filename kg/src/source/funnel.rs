//! What became of the rows of a source: read, dropped and why, kept, merged.

use std::collections::BTreeMap;

use base::funnel::Tally;
use serde::Serialize;

use crate::canon;

/// What became of the files of one source, up to the statements that its reader keeps. What merging makes of those is in
/// [`crate::canon::Report`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Funnel {
    /// Name of the source, as in the table's origins.
    pub source: String,
    /// The file of triples.
    pub triples: Tally,
    /// The files that name and type entities, if the source has such.
    pub supporting: Vec<Tally>,
    /// Different subjects in all rows read.
    pub subjects: u64,
    /// Different objects in all rows read.
    pub objects: u64,
    /// Kept rows by relation as stated; relations asked for are listed also with 0.
    pub relations: BTreeMap<String, u64>,
}

/// The way of every row: through its source's reader, then through merging.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// One funnel for each source, in the order in which they were read.
    pub read: Vec<Funnel>,
    /// What merging made of the statements.
    pub merged: canon::Report,
}
