//! What became of the rows of a source: read, dropped and why, kept, merged. Knows no format.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::table::Graph;

/// The rows of one file. `read` = the sum of `dropped` + `kept`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Name of the file without its folder.
    pub file: String,
    /// Bytes read.
    pub bytes: u64,
    /// Lines read, a header included.
    pub lines: u64,
    /// Rows, or the entries that one line holds several of.
    pub read: u64,
    /// Rows that were left out, by the first reason that applied. All reasons of the file are listed, also those with 0.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Rows that went on.
    pub kept: u64,
}

impl Tally {
    /// Starts to count a file from which rows may be dropped for `reasons`.
    #[must_use]
    pub fn new(label: &Path, reasons: &[&'static str]) -> Self {
        Self {
            file: label.file_name().unwrap_or(label.as_os_str()).to_string_lossy().into_owned(),
            bytes: 0,
            lines: 0,
            read: 0,
            dropped: reasons.iter().map(|&reason| (reason, 0)).collect(),
            kept: 0,
        }
    }

    pub(super) fn keep(&mut self) {
        self.read += 1;
        self.kept += 1;
    }

    pub(super) fn drop(&mut self, reason: &'static str) {
        self.read += 1;
        *self.dropped.entry(reason).or_insert(0) += 1;
    }
}

/// Different things at one end of a source's triples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ends {
    /// In all rows.
    pub read: u64,
    /// In the rows that were kept.
    pub kept: u64,
}

/// What became of one source. `triples.kept` = `merged` + `distinct`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Funnel {
    /// Name of the source, as in the table's origins.
    pub source: &'static str,
    /// The file of triples.
    pub triples: Tally,
    /// The files that name and type entities, if the source has such.
    pub supporting: Vec<Tally>,
    /// Kept rows that repeat another kept row's subject, relation and object.
    pub merged: u64,
    /// Different triples.
    pub distinct: u64,
    /// Different subjects.
    pub subjects: Ends,
    /// Different objects.
    pub objects: Ends,
    /// Entities that the source names, but in no kept triple; they are not in the table.
    pub unused_entities: u64,
    /// Kept rows by relation; relations asked for are listed also with 0.
    pub relations: BTreeMap<String, u64>,
}

/// The funnels of all sources and what they came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// One funnel for each source, in the order in which they were read.
    pub sources: Vec<Funnel>,
    /// Triples that more than one source states, counted once less than they were stated.
    pub merged_across_sources: u64,
    /// Entities in the table.
    pub entities: u64,
    /// Relations in the table.
    pub relations: u64,
    /// Triples in the table.
    pub triples: u64,
}

impl Report {
    /// Sums up what `sources` put into `graph`.
    #[must_use]
    pub fn new(sources: Vec<Funnel>, graph: &Graph) -> Self {
        let stated: u64 = sources.iter().map(|funnel| funnel.distinct).sum();
        let triples = graph.triples().len() as u64;
        Self {
            sources,
            merged_across_sources: stated.saturating_sub(triples),
            entities: graph.entities().len() as u64,
            relations: graph.relations().len() as u64,
            triples,
        }
    }
}
