//! What a folder of candidates looks like on disk.

use base::self_check::{Kind, SelfChecked};
use serde::{Deserialize, Serialize};

use super::candidates::Config;
use super::part::Part;
use super::{PassageId, QueryId};
use crate::lines::File;

/// The format's name.
pub const FORMAT: &str = "engraft-candidates";
/// The version of rows and index. It rises when a reader of the old one would misread the new one.
pub const VERSION: u32 = 2;
/// A passage a line.
pub const PASSAGES: &str = "passages.jsonl";
/// A query a line, with its candidates.
pub const QUERIES: &str = "queries.jsonl";

/// A line of [`PASSAGES`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassageRow {
    /// Its number: the line, from 0.
    pub passage: PassageId,
    /// What its publisher calls it.
    pub key: String,
    /// What its publisher calls its document; the passages of a document stand one behind the other.
    pub document: String,
    /// What the document is about.
    pub title: String,
    /// What the document is for.
    pub part: Part,
    /// Its text as published.
    pub text: String,
}

/// A line of [`QUERIES`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryRow {
    /// Its number: the line, from 0.
    pub query: QueryId,
    /// The entity.
    pub entity: String,
    /// The aspect's label.
    pub aspect: String,
    /// The aspect in more words.
    pub heading: String,
    /// What the query is for: that of the documents that answer it.
    pub part: Part,
    /// Candidates, rising.
    pub candidates: Vec<PassageId>,
    /// Those that answer it, rising.
    pub relevant: Vec<PassageId>,
}

/// What `index.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Always `engraft-candidates`.
    pub format: String,
    /// The format's version.
    pub version: u32,
    /// XXH3 of this file as 16 digits, taken while sixteen zeros stand here.
    pub xxh3: String,
    /// What the collection is called.
    pub name: String,
    /// How lists were made.
    pub config: Config,
    /// Documents.
    pub documents: u64,
    /// Lines of [`PASSAGES`].
    pub passages: u64,
    /// Lines of [`QUERIES`].
    pub queries: u64,
    /// All candidates of all queries.
    pub candidates: u64,
    /// The files, in order of names.
    pub files: Vec<File>,
}

impl SelfChecked for Index {
    const KIND: &'static Kind = &Kind {
        format: FORMAT,
        version: VERSION,
        folder: "a folder of candidates",
        again: "make the candidates again",
        command: "`engraft run`, or `downstream::capr::write`",
    };

    fn check_mut(&mut self) -> &mut String {
        &mut self.xxh3
    }
}
