//! What became of the rows of a file: read, dropped and why, kept.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use serde::Serialize;

use crate::line::Lines;

/// Why blank lines are dropped, by its name in funnels.
pub const BLANK_LINES: &str = "blank_lines";

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

    /// One more row goes on.
    pub fn keep(&mut self) {
        self.read += 1;
        self.kept += 1;
    }

    /// One more row is left out for `reason`.
    pub fn drop(&mut self, reason: &'static str) {
        self.drop_all(reason, 1);
    }

    /// Notes what was read of a file whose blank lines were passed.
    pub fn account<R: BufRead>(&mut self, lines: &Lines<'_, R>) {
        (self.lines, self.bytes) = (lines.lines(), lines.bytes());
        self.drop_all(BLANK_LINES, lines.blank());
    }

    /// Adds what was read of another file, which is counted under this name; unused columns are listed once.
    pub fn add(&mut self, other: &Tally) {
        self.bytes += other.bytes;
        self.lines += other.lines;
        self.read += other.read;
        self.kept += other.kept;
        for (sums, more) in [(&mut self.dropped, &other.dropped), (&mut self.mended, &other.mended)] {
            more.iter().for_each(|(reason, rows)| *sums.entry(reason).or_insert(0) += rows);
        }
        for column in &other.columns_not_used {
            if !self.columns_not_used.contains(column) {
                self.columns_not_used.push(column.clone());
            }
        }
    }

    /// Drops several rows for one reason, which is listed even if there are none.
    pub fn drop_all(&mut self, reason: &'static str, rows: u64) {
        self.read += rows;
        *self.dropped.entry(reason).or_insert(0) += rows;
    }
}
