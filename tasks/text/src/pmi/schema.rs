//! What a folder of scores looks like on disk.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};
use base::self_check::{self, Kind, SelfChecked};
use serde::{Deserialize, Serialize};

use super::Config;
use crate::count;
use crate::count::table::{self, field};

/// The version of the format.
pub const VERSION: u32 = 3;
/// The matrix for look-ups.
pub const MATRIX: &str = "matrix.csr";
pub(super) const FORMAT: &str = "engraft-pmi";
pub(super) const INDEX: &str = "index.json";

/// The tables of a folder of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// A word a row, by rank among the words that may have a score.
    Words,
    /// A pair of ranks a row, in order.
    Pairs,
}

impl Table {
    /// Its file.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Table::Words => "words.parquet",
            Table::Pairs => "pairs.parquet",
        }
    }

    pub(super) fn columns(self) -> SchemaRef {
        let or_null = |name: &str, kind| field(name, kind).with_nullable(true);
        Arc::new(Schema::new(match self {
            Table::Words => table::words(),
            Table::Pairs => [
                table::pairs(),
                vec![
                    field("score", DataType::Float64),
                    field("relevance", DataType::Float32),
                    or_null("score_turned", DataType::Float64),
                    or_null("relevance_turned", DataType::Float32),
                ],
            ]
            .concat(),
        }))
    }

    pub(super) fn footer(self) -> [(&'static str, String); 3] {
        let name = match self {
            Table::Words => "words",
            Table::Pairs => "pairs",
        };
        table::footer(FORMAT, VERSION, name)
    }
}

/// What `index.json` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// The name of the format.
    pub format: String,
    /// Its version.
    pub version: u32,
    /// XXH3 of this file as 16 digits, taken while sixteen zeros stand here.
    pub xxh3: String,
    /// How scores were computed.
    pub config: Config,
    /// What they were computed of.
    pub counts: count::Index,
    /// What became of the words.
    pub words: Funnel,
    /// What became of the pairs.
    pub pairs: Funnel,
    /// What a score was divided by to become a relevance.
    pub scale: f64,
    /// Entries of the matrix: pairs with a relevance, those without order twice.
    pub entries: u64,
}

impl SelfChecked for Index {
    const KIND: &'static Kind = &Kind {
        format: FORMAT,
        version: VERSION,
        folder: "a folder of scores",
        again: "score the counts again",
        command: "`engraft run pmi`",
    };

    fn check_mut(&mut self) -> &mut String {
        &mut self.xxh3
    }
}

impl Index {
    /// Reads the index of `folder` and checks that it is as it was written.
    ///
    /// # Errors
    /// When it is missing, damaged or of another version.
    pub fn read(folder: &Path) -> Result<Self, self_check::Error> {
        self_check::read(&folder.join(INDEX))
    }
}

/// What became of words or pairs. `read` = the sum of `dropped` + `kept`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Funnel {
    /// Rows of the counts.
    pub read: u64,
    /// Rows left out, by the first reason that applied.
    pub dropped: std::collections::BTreeMap<String, u64>,
    /// Rows kept.
    pub kept: u64,
}

impl Funnel {
    pub(super) fn new(reasons: &[&str]) -> Self {
        Self { read: 0, dropped: reasons.iter().map(|r| ((*r).to_owned(), 0)).collect(), kept: 0 }
    }

    pub(super) fn keep(&mut self) {
        self.read += 1;
        self.kept += 1;
    }

    pub(super) fn drop(&mut self, reason: &str) {
        self.read += 1;
        if let Some(count) = self.dropped.get_mut(reason) {
            *count += 1;
        }
    }
}
