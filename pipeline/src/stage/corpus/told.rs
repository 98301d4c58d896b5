//! What became of a corpus's texts, which those of its parts add up to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base::funnel::Tally;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Corpus, beside};
use crate::engine::context::Context;

/// The file with it, in a part's artifact.
const FILE: &str = "texts.json";

/// What became of texts, by their names, in the order of a config.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Told {
    texts: Vec<Read>,
}

/// What became of the texts of one name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    texts: String,
    files: u64,
    bytes: u64,
    read: u64,
    kept: u64,
    dropped: BTreeMap<String, u64>,
    mended: BTreeMap<String, u64>,
}

impl Read {
    pub(super) fn new(texts: &str) -> Self {
        Self { texts: texts.to_owned(), ..Self::default() }
    }

    /// Counts a file.
    pub(super) fn add(&mut self, tally: &Tally) {
        let owned = |reasons: &BTreeMap<&'static str, u64>| -> BTreeMap<String, u64> {
            reasons.iter().map(|(reason, rows)| ((*reason).to_owned(), *rows)).collect()
        };
        self.put_together(Read {
            texts: String::new(),
            files: 1,
            bytes: tally.bytes,
            read: tally.read,
            kept: tally.kept,
            dropped: owned(&tally.dropped),
            mended: owned(&tally.mended),
        });
    }

    fn put_together(&mut self, other: Read) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.read += other.read;
        self.kept += other.kept;
        for (sums, more) in [(&mut self.dropped, other.dropped), (&mut self.mended, other.mended)] {
            for (reason, rows) in more.into_iter().filter(|(_, rows)| *rows > 0) {
                *sums.entry(reason).or_default() += rows;
            }
        }
    }
}

impl Told {
    pub(super) fn push(&mut self, read: Read) {
        self.texts.push(read);
    }

    /// Documents that were kept.
    #[must_use]
    pub(crate) fn kept(&self) -> u64 {
        self.texts.iter().map(|sum| sum.kept).sum()
    }

    /// What a part left in this folder.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn of_part(folder: &Path) -> anyhow::Result<Self> {
        beside::read(folder, FILE)
    }

    /// The artifacts of the stages of parts, and what each left in it.
    ///
    /// # Errors
    /// When one cannot be read, or its stage was not declared.
    pub(crate) fn of_parts(
        context: &Context,
        stages: &[String],
    ) -> anyhow::Result<(Vec<PathBuf>, Vec<Self>)> {
        let read = |stage: &String| {
            let folder = context.artifact(stage)?;
            Ok((folder.to_owned(), Self::of_part(folder)?))
        };
        stages.iter().map(read).collect()
    }

    /// What parts left, added up.
    #[must_use]
    pub(crate) fn joined(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for read in parts.into_iter().flat_map(|part| part.texts) {
            match all.texts.iter_mut().find(|sum| sum.texts == read.texts) {
                Some(sum) => sum.put_together(read),
                None => all.texts.push(read),
            }
        }
        all
    }

    /// Writes it beside what was made of a part.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        beside::write(folder, FILE, self)
    }

    /// Leaves it as facts.
    pub(crate) fn record(&self, context: &Context) {
        let (mut facts, mut dropped, mut fixed) = (Vec::new(), Vec::new(), Vec::new());
        for Read { texts, files, bytes, read, kept, dropped: left_out, mended } in &self.texts {
            facts.push(json!({"texts": texts, "files": files, "bytes": bytes, "read": read, "dropped": read - kept, "kept": kept}));
            dropped.extend(
                left_out
                    .iter()
                    .map(|(why, rows)| json!({"texts": texts, "dropped_because": why, "documents": rows})),
            );
            // What was not read as published is said, even if it stayed.
            fixed.extend(
                mended
                    .iter()
                    .map(|(why, rows)| json!({"texts": texts, "fixed_because": why, "documents": rows})),
            );
        }
        context.record("corpus", facts);
        context.record("dropped", dropped);
        context.record("fixed", fixed);
    }

    /// Refuses a corpus of which nothing is kept of some name.
    ///
    /// # Errors
    /// Names it, and why nothing is.
    pub(crate) fn check(&self, corpus: &Corpus) -> anyhow::Result<()> {
        let Some(Read { texts, files, read, dropped, .. }) = self.texts.iter().find(|sum| sum.kept == 0)
        else {
            return Ok(());
        };
        let why: Vec<_> = dropped.iter().map(|(reason, rows)| format!("{reason} {rows}")).collect();
        anyhow::bail!(
            "{} {texts:?}: none of {read} documents in {files} files is kept ({}); expected one at least: see whether these are the right files",
            corpus.key,
            why.join(", ")
        )
    }
}
