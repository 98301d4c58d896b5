//! How much of a corpus is counted: all of it, a shard, or a part that is to be joined with those before and behind it.

use serde::{Deserialize, Serialize};

use super::shard::Shard;

/// How much of a corpus is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// All of it.
    Whole,
    /// Every so-manieth document; all of them are handed over.
    Shard(Shard),
    /// A stretch of it, of which nothing else is known; its documents alone are handed over.
    Part,
}

/// What the documents are that were handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// A corpus.
    Corpus,
    /// A stretch of one.
    Part,
}

impl Share {
    /// Whether the document with that number, from 0, of those handed over is in it.
    pub(super) fn takes(self, document: u64) -> bool {
        match self {
            Share::Shard(shard) => shard.takes(document),
            Share::Whole | Share::Part => true,
        }
    }

    pub(super) fn shard(self) -> Option<Shard> {
        match self {
            Share::Shard(shard) => Some(shard),
            Share::Whole | Share::Part => None,
        }
    }

    pub(super) fn extent(self) -> Extent {
        match self {
            Share::Whole | Share::Shard(_) => Extent::Corpus,
            Share::Part => Extent::Part,
        }
    }
}
