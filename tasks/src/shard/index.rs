//! The index of a shard folder: what is there, how much, from which vocabulary. Written last, so that a folder without one is not finished.

use std::collections::BTreeMap;
use std::path::Path;

use base::self_check::{self, Kind, SelfChecked};
use batch::task::Task;
use kg::split::Part;
use serde::{Deserialize, Serialize};

use super::schema::{FORMAT, VERSION};
use super::text::TextCounts;
use crate::Error;
use crate::builder::Layout;
use crate::negative;
use crate::token::encode::{EncodeCounts, Special};

/// The index's file name.
pub const FILE: &str = "index.json";

/// The folder of the vocabulary beside the shards, as `transformers.AutoTokenizer` reads it.
pub const TOKENIZER: &str = "tokenizer";

/// What a shard folder holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Always `engraft-shards`.
    pub format: String,
    /// The format's version.
    pub version: u32,
    /// XXH3 of this file as 16 digits, taken while sixteen zeros stand here.
    pub xxh3: String,
    /// How the columns of a triple stand in a row.
    pub layout: Layout,
    /// The vocabulary that the token ids belong to.
    pub tokenizer: Tokenizer,
    /// Triples of each part behind the samples.
    pub triples: BTreeMap<Part, u64>,
    /// Relation texts in class order.
    pub relations: Vec<String>,
    /// Tags in class order; empty without the tagging task.
    pub classes: Vec<String>,
    /// Where the triples come from, and under which licence levels.
    pub sources: Vec<Source>,
    /// What encoding the entities' texts did.
    pub entity_texts: EncodeCounts,
    /// The same for relations.
    pub relation_texts: EncodeCounts,
    /// What became of the texts of tasks on text.
    pub texts: BTreeMap<Task, TextCounts>,
    /// What was drawn and what was left out for tasks on names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<Task, BTreeMap<String, u64>>,
    /// How negatives were drawn and what became of it.
    pub negatives: Negatives,
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

/// A source of triples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its name in the config.
    pub name: String,
    /// Triples that it states, by licence level: a number, or `none` where it gives none.
    pub levels: BTreeMap<String, u64>,
}

/// How negatives were drawn, and what became of it in each part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Negatives {
    /// The seed.
    pub seed: u64,
    /// The settings.
    pub config: negative::Config,
    /// Counts of the draws that stand in the shards, by part.
    pub counts: BTreeMap<Part, negative::Counts>,
}

/// Maximum tokens per column; truncations are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum tokens of the subject and of the object, up to 16,383.
    ///
    /// Source: KIMERA, section 3.1.
    pub node: usize,
    /// Maximum tokens of the relation, up to 16,383.
    ///
    /// Source: KIMERA, section 3.1.
    pub edge: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { node: 100, edge: 10 }
    }
}

/// The shards of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskIndex {
    /// The task.
    pub task: Task,
    /// Its parts in order; only those that have rows.
    pub parts: Vec<PartIndex>,
}

/// The shards of one part of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartIndex {
    /// What its samples are for.
    pub part: Part,
    /// Triples, pairs of names, or chunks of text.
    pub items: u64,
    /// Rows in all files.
    pub rows: u64,
    /// Tokens in all files.
    pub tokens: u64,
    /// How many rows have each length in tokens.
    pub lengths: BTreeMap<usize, u64>,
    /// The files in row order.
    pub files: Vec<FileIndex>,
}

/// One shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileIndex {
    /// Path below the shard folder, with `/`.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// BLAKE3 of the file.
    pub blake3: String,
    /// SHA-256 of the file, for tools of others.
    pub sha256: String,
    /// XXH3 of everything after the last row group, as 16 digits.
    pub footer: String,
    /// The row groups in file order; the first begins at byte 4 and each ends where the next begins.
    pub groups: Vec<GroupIndex>,
}

/// One row group. Groups of the same number hold the same triples in every graph task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupIndex {
    /// Items behind the rows.
    pub items: u32,
    /// Rows: one per item, and one more for each negative.
    pub rows: u32,
    /// Bytes of all its pages.
    pub bytes: u64,
    /// XXH3 of these bytes, as 16 digits.
    pub xxh3: String,
}

impl Source {
    /// What stands in for a source: the names that a task on names shows, by level in place of triples.
    pub(crate) fn of_names(task: Task, levels: &BTreeMap<Option<u8>, u64>) -> Self {
        Self::of_levels(format!("names that {} shows, counted in names", task.name()), levels)
    }

    /// A source by what it has of each licence level.
    #[must_use]
    pub fn of_levels(name: String, levels: &BTreeMap<Option<u8>, u64>) -> Self {
        let level = |level: &Option<u8>| level.map_or_else(|| "none".to_owned(), |level| level.to_string());
        Self { name, levels: levels.iter().map(|(of, &count)| (level(of), count)).collect() }
    }
}

impl SelfChecked for Index {
    const KIND: &'static Kind = &Kind {
        format: FORMAT,
        version: VERSION,
        folder: "a shard folder",
        again: "build the shards again",
        command: "`engraft run shards`",
    };

    fn check_mut(&mut self) -> &mut String {
        &mut self.xxh3
    }
}

impl Index {
    /// Reads the index of `folder` and checks that it is as written and that every shard is there with the size that it had.
    ///
    /// # Errors
    /// When the index is missing, damaged or of another version, or a shard is missing or of another size.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let index: Self = self_check::read(&folder.join(FILE))?;
        for file in index.files() {
            if let Some(problem) = file.misfit(folder) {
                let problem = format!("{problem}, but the index says {} bytes", file.bytes);
                return Err(Error::at(
                    &folder.join(&file.path),
                    problem,
                    "build the shards again (`engraft run shards`)",
                ));
            }
        }
        Ok(index)
    }

    /// Reads an index from its bytes; `path` names it in messages.
    ///
    /// # Errors
    /// When it is damaged or of another version.
    pub fn parse(bytes: Vec<u8>, path: &Path) -> Result<Self, Error> {
        Ok(self_check::parse(bytes, path)?)
    }

    /// Puts its own check into the index and writes it whole; call it after every shard is in place.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&mut self, folder: &Path) -> Result<(), Error> {
        Ok(self_check::write(&folder.join(FILE), self)?)
    }

    /// What it says of some tasks only: a stream over it shows no others, and its state is none of a stream over all.
    #[must_use]
    pub fn of_tasks(&self, tasks: &[Task]) -> Self {
        let mut some = self.clone();
        some.tasks.retain(|task| tasks.contains(&task.task));
        some
    }

    /// All shards, in the order of tasks, parts and rows.
    pub fn files(&self) -> impl Iterator<Item = &FileIndex> {
        self.tasks.iter().flat_map(|task| &task.parts).flat_map(|part| &part.files)
    }

    /// The shards of one task and part, if it has rows.
    #[must_use]
    pub fn part(&self, task: Task, part: Part) -> Option<&PartIndex> {
        self.tasks.iter().find(|entry| entry.task == task)?.part(part)
    }

    /// Parts that any task has, in order.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let has = |part: &Part| self.tasks.iter().any(|task| task.part(*part).is_some());
        Part::ALL.into_iter().filter(has).collect()
    }

    /// Tokens of the longest row of any task.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.tasks.iter().flat_map(|task| &task.parts).map(PartIndex::longest).max().unwrap_or(0)
    }

    /// The digest that a stream's state carries: any change of any shard, or of how later epochs are drawn, changes it.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = digest_of(self.files());
        // The index's own check stands for all settings in it.
        hasher.update(self.xxh3.as_bytes());
        hasher.finalize().to_hex().to_string()
    }
}

/// The beginning of a digest of `files`: any change of any of them changes it.
pub(crate) fn digest_of<'f>(files: impl Iterator<Item = &'f FileIndex>) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(file.path.as_bytes()).update(&[0]).update(file.blake3.as_bytes()).update(&[0]);
    }
    hasher
}

impl TaskIndex {
    /// The shards of one part, if it has rows.
    #[must_use]
    pub fn part(&self, part: Part) -> Option<&PartIndex> {
        self.parts.iter().find(|entry| entry.part == part)
    }
}

impl PartIndex {
    /// Tokens of the longest row.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.lengths.keys().next_back().copied().unwrap_or(0)
    }
}

impl FileIndex {
    /// How the file in `folder` is when it is missing or has another size.
    pub(crate) fn misfit(&self, folder: &Path) -> Option<String> {
        match std::fs::metadata(folder.join(&self.path)) {
            Ok(found) if found.len() == self.bytes => None,
            Ok(found) => Some(format!("{} bytes", found.len())),
            Err(e) => Some(e.to_string()),
        }
    }

    /// Rows in the file.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.rows)).sum()
    }

    /// Where row group `group` begins; that of the number after the last is where the footer begins.
    #[must_use]
    pub fn start(&self, group: usize) -> u64 {
        4 + self.groups.iter().take(group).map(|group| group.bytes).sum::<u64>()
    }
}
