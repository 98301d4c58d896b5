//! What a folder of candidates looks like on disk. Knows no ranking.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::candidates::Config;
use super::part::Part;
use super::{PassageId, QueryId};
use crate::self_check::{self, Kind, SelfChecked};

/// The format's name.
pub const FORMAT: &str = "engraft-candidates";
/// The version of rows and index. It rises when a reader of the old one would misread the new one.
pub const VERSION: u32 = 1;
/// A passage a line.
pub const PASSAGES: &str = "passages.jsonl";
/// A query a line, with its candidates.
pub const QUERIES: &str = "queries.jsonl";
/// The file that is written last.
pub const INDEX: &str = "index.json";

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
        command: "`tasks::downstream::capr::write`",
    };

    fn check_mut(&mut self) -> &mut String {
        &mut self.xxh3
    }
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its name.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
    /// Digest of its contents.
    pub blake3: String,
}

/// Why a folder of candidates cannot be written or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {source}; a folder of candidates without all its files is not finished: make it again", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is no row.
    #[error("{}: line {line}, column {}: {source}; make the candidates again", path.display(), source.column())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// The index cannot be used, or not written.
    #[error(transparent)]
    Index(#[from] self_check::Error),
    /// The index says something else than the files.
    #[error("{}: {found} {what}, but the index says {expected}; make the candidates again", path.display())]
    Count {
        /// The index.
        path: PathBuf,
        /// What was counted.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many the index says.
        expected: u64,
    },
    /// A file is not as it was written.
    #[error("{}: {found}, expected {expected} as the index says; make the candidates again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A row does not follow from those in front of it.
    #[error("{}: line {line}: {why}; make the candidates again", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is amiss.
        why: &'static str,
    },
    /// A collection, its parts and its candidates do not belong together.
    #[error("{found} lists of candidates for {expected} queries: give those of this collection")]
    Lists {
        /// Lists.
        found: usize,
        /// Queries.
        expected: usize,
    },
}
