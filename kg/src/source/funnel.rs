//! What became of the rows of a source: read, dropped and why, kept, merged. Knows no format.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use serde::Serialize;

use super::line::Lines;
use super::separated::BLANK_LINES;
use crate::canon;

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
    /// Of those, rows that went on other than as published, by what was done to them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mended: BTreeMap<&'static str, u64>,
    /// Columns that nobody asked for, by name, or by number where they have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns_not_used: Vec<String>,
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
            mended: BTreeMap::new(),
            columns_not_used: Vec::new(),
        }
    }

    pub(crate) fn keep(&mut self) {
        self.read += 1;
        self.kept += 1;
    }

    pub(crate) fn drop(&mut self, reason: &'static str) {
        self.drop_all(reason, 1);
    }

    /// Notes what was read of a file whose blank lines were passed.
    pub(crate) fn account<R: BufRead>(&mut self, lines: &Lines<'_, R>) {
        (self.lines, self.bytes) = (lines.lines(), lines.bytes());
        self.drop_all(BLANK_LINES, lines.blank());
    }

    /// Drops several rows for one reason, which is listed even if there are none.
    pub(crate) fn drop_all(&mut self, reason: &'static str, rows: u64) {
        self.read += rows;
        *self.dropped.entry(reason).or_insert(0) += rows;
    }
}

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
