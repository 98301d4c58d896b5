//! The index of a shard folder: what is there, how much, from which vocabulary. Written last, so that a folder without
//! one is not finished. Knows no row.

use std::path::{Path, PathBuf};

use kg::whole::write_whole;
use serde::{Deserialize, Serialize};

use super::schema::{FORMAT, VERSION};
use crate::negative::uniform;
use crate::task::Task;
use crate::token::encode::{EncodeCounts, Special};

/// The index's file name.
pub const FILE: &str = "index.json";

/// What a shard folder holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Always `engraft-shards`.
    pub format: String,
    /// The format's version.
    pub version: u32,
    /// The layout of the columns in a row: `packed`.
    pub layout: String,
    /// The vocabulary that the token ids belong to.
    pub tokenizer: Tokenizer,
    /// Most tokens of an entity and of a relation.
    pub limits: Limits,
    /// Triples behind the samples.
    pub triples: u64,
    /// Relation texts in class order.
    pub relations: Vec<String>,
    /// What encoding the entities' and the relations' texts did.
    pub entity_texts: EncodeCounts,
    /// The same for relations.
    pub relation_texts: EncodeCounts,
    /// What drawing negatives did.
    pub negatives: uniform::Counts,
    /// One entry per task, in task order.
    pub tasks: Vec<TaskIndex>,
}

/// The vocabulary of a shard folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokenizer {
    /// BLAKE3 of the vocabulary file.
    pub blake3: String,
    /// Number of entries (V).
    pub size: usize,
    /// Ids of the special tokens.
    pub special: Special,
}

/// Where columns are cut, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Subject and object.
    pub node: usize,
    /// Relation.
    pub edge: usize,
}

/// The shards of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskIndex {
    /// The task.
    pub task: Task,
    /// Rows in all files.
    pub rows: u64,
    /// Tokens in all files.
    pub tokens: u64,
    /// Tokens of the longest row.
    pub longest: usize,
    /// The files in row order.
    pub files: Vec<FileIndex>,
}

/// One shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileIndex {
    /// Path below the shard folder, with `/`.
    pub path: String,
    /// The row groups in file order.
    pub groups: Vec<GroupIndex>,
    /// Tokens in the file.
    pub tokens: u64,
    /// Tokens of the longest row.
    pub longest: usize,
    /// Size in bytes.
    pub bytes: u64,
    /// BLAKE3 of the file.
    pub blake3: String,
}

/// One row group. Groups of the same number hold the same triples in every task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupIndex {
    /// Triples behind the rows.
    pub triples: u32,
    /// Rows: one per triple, or two in the triplet task.
    pub rows: u32,
}

/// Why an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error("{}: {source}; a shard folder without its index is not finished: build it again (`engraft run shards`)", path.display())]
    Io {
        /// The index.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no index.
    #[error("{}: line {}, column {}: {source}; build the shards again (`engraft run shards`)", path.display(), source.line(), source.column())]
    Parse {
        /// The index.
        path: PathBuf,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// The index is of another format or version.
    #[error("{}: format {format:?} version {version}, but this engraft reads {FORMAT:?} version {VERSION}; build the shards again", path.display())]
    Version {
        /// The index.
        path: PathBuf,
        /// The format it names.
        format: String,
        /// The version it names.
        version: u32,
    },
    /// A shard is not as the index says.
    #[error("{}: {problem}, but the index says {expected}; build the shards again (`engraft run shards`)", path.display())]
    Shard {
        /// The shard.
        path: PathBuf,
        /// How it is.
        problem: String,
        /// How it should be.
        expected: String,
    },
}

/// Format and version, read before the rest so that another version gets a clear answer.
#[derive(Deserialize)]
struct Stamp {
    format: String,
    version: u32,
}

impl Index {
    /// Reads the index of `folder` and checks that every shard is there with the size that it had when written.
    ///
    /// # Errors
    /// When the index is missing, damaged or of another version, or a shard is missing or of another size.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let bytes = std::fs::read(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
        let parse = |source| Error::Parse { path: path.clone(), source };
        let Stamp { format, version } = serde_json::from_slice(&bytes).map_err(parse)?;
        if format != FORMAT || version != VERSION {
            return Err(Error::Version { path, format, version });
        }
        let index: Index = serde_json::from_slice(&bytes).map_err(parse)?;
        index.tasks.iter().flat_map(|task| &task.files).try_for_each(|file| file.check(folder))?;
        Ok(index)
    }

    /// Writes the index whole; call it after every shard is in place.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(FILE);
        let io = |source: std::io::Error| Error::Io { path: path.clone(), source };
        let mut json = serde_json::to_vec_pretty(self).map_err(|e| io(e.into()))?;
        json.push(b'\n');
        write_whole(&path, &json).map_err(io)
    }

    /// Tokens of the longest row of any task.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.tasks.iter().map(|task| task.longest).max().unwrap_or(0)
    }

    /// The digest that a stream's state carries: any change of any shard changes it.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for file in self.tasks.iter().flat_map(|task| &task.files) {
            hasher.update(file.path.as_bytes()).update(&[0]).update(file.blake3.as_bytes()).update(&[0]);
        }
        hasher.update(self.tokenizer.blake3.as_bytes());
        hasher.finalize().to_hex().to_string()
    }
}

impl FileIndex {
    fn check(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(&self.path);
        let expected = format!("{} bytes", self.bytes);
        match std::fs::metadata(&path) {
            Ok(found) if found.len() == self.bytes => Ok(()),
            Ok(found) => Err(Error::Shard { path, problem: format!("{} bytes", found.len()), expected }),
            Err(e) => Err(Error::Shard { path, problem: e.to_string(), expected }),
        }
    }

    /// Rows in the file.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.rows)).sum()
    }
}
