//! What a folder of counts looks like on disk.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use base::self_check::{Kind, SelfChecked};
use serde::{Deserialize, Serialize};

use super::part::Extent;
use super::shard::Shard;
use super::{Config, table};

/// The version of the format.
pub const VERSION: u32 = 4;
/// The name of the format.
pub(super) const FORMAT: &str = "engraft-counts";
/// The file that is written last.
pub const INDEX: &str = "index.json";

/// The tables of a folder of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// A word a row, by rank: the most frequent first, equally frequent ones by their letters.
    Words,
    /// A pair of ranks a row, in order.
    Pairs,
    /// Two neighbours a row, in order, the left one first.
    Adjacent,
}

impl Table {
    /// Its file.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Table::Words => "words.parquet",
            Table::Pairs => "pairs.parquet",
            Table::Adjacent => "adjacent.parquet",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Table::Words => "words",
            Table::Pairs => "pairs",
            Table::Adjacent => "adjacent",
        }
    }

    pub(super) fn columns(self) -> SchemaRef {
        Arc::new(Schema::new(match self {
            Table::Words => table::words(),
            Table::Pairs | Table::Adjacent => table::pairs(),
        }))
    }

    pub(super) fn footer(self) -> [(&'static str, String); 3] {
        table::footer(FORMAT, VERSION, self.name())
    }
}

/// What `index.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// The name of the format.
    pub format: String,
    /// Its version.
    pub version: u32,
    /// XXH3 of this file as 16 digits, taken while sixteen zeros stand here.
    pub xxh3: String,
    /// What was counted.
    pub config: Config,
    /// Digest of all documents in order (texts, and sentences where files tell them), those of other shards included, those of other parts not:
    /// the digests of parts add up to that of the whole.
    pub corpus: String,
    /// Which of the corpus's documents were counted, if only every so-manieth.
    pub shard: Option<Shard>,
    /// Whether the documents are a corpus or a part of one.
    pub extent: Extent,
    /// Documents counted.
    pub documents: u64,
    /// Sentences, or documents, that no pair reaches beyond.
    pub segments: u64,
    /// What words and pairs count once in: sentences, documents or windows; segments where pairs are counted by distance.
    pub units: u64,
    /// Sentences or documents that are no units since they have more different words than `config.max_distinct`: their words are in no pair.
    pub skipped: u64,
    /// All words, each as often as it occurs.
    pub occurrences: u64,
    /// Different words, those left out included.
    pub distinct: u64,
    /// How many units of a count make 1: more than 1 where a pair counts 1 over its distance.
    pub weight_unit: u64,
    /// Words that were kept.
    pub words: u64,
    /// Pairs.
    pub pairs: Total,
    /// Neighbours, if they were counted.
    pub adjacent: Option<Total>,
}

impl SelfChecked for Index {
    const KIND: &'static Kind = &Kind {
        format: FORMAT,
        version: VERSION,
        folder: "a folder of counts",
        again: "count again",
        command: "`engraft run counts`",
    };

    fn check_mut(&mut self) -> &mut String {
        &mut self.xxh3
    }
}

/// A table of pairs in two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Total {
    /// Its rows.
    pub rows: u64,
    /// The sum of their counts.
    pub count: u64,
}
