//! The texts of a corpus: where they lie, what they look like, how each is handed on.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use text::file::{Format, documents_of};
use text::{Document, Labels};

use super::folder;
use super::location::{self, Location, Place, Places};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::Input;

/// The corpus's part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// At least one, each of one format, read in this order; documents are numbered across all of them.
    pub texts: Vec<Texts>,
}

/// Texts of one format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Texts {
    /// The name used in facts; unique.
    pub name: String,
    /// Files, or folders, read recursively in path order for files with the format's extensions.
    #[serde(skip_serializing)]
    pub paths: Vec<Location>,
    /// Their format, see Formats of texts.
    pub format: Format,
}

/// A corpus that a stage reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Corpus {
    /// Where it stands in a config.
    key: String,
    config: Config,
    places: Vec<Vec<Place>>,
}

/// What became of the texts of one name.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Read {
    texts: String,
    files: u64,
    bytes: u64,
    read: u64,
    dropped: u64,
    kept: u64,
}

/// The reasons that applied to something.
fn told<'r>(reasons: &'r BTreeMap<&'r str, u64>) -> impl Iterator<Item = (&'r str, u64)> {
    reasons.iter().filter(|(_, rows)| **rows > 0).map(|(reason, rows)| (*reason, *rows))
}

impl Texts {
    /// Where its files are, `key` naming its table.
    fn places(&self, key: &str, places: &Places<'_>) -> anyhow::Result<Vec<Place>> {
        anyhow::ensure!(!self.paths.is_empty(), "{key}.paths names no file");
        let paths = self.paths.iter().enumerate();
        paths.map(|(i, path)| path.place(&format!("{key}.paths.{i}"), places)).collect()
    }
}

impl Corpus {
    /// The corpus that `config` names, its files below `places`.
    ///
    /// # Errors
    /// When there is no text, a name stands twice, or a place is invalid.
    pub(crate) fn new(config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        anyhow::ensure!(!config.texts.is_empty(), "corpus.texts names no text: add a table [[corpus.texts]]");
        let mut all = Vec::new();
        for (i, texts) in config.texts.iter().enumerate() {
            let key = format!("corpus.texts.{i}");
            let twice = config.texts[..i].iter().any(|other| other.name == texts.name);
            anyhow::ensure!(!twice, "{key}.name = {:?} stands twice: give each its own name", texts.name);
            all.push(texts.places(&key, places)?);
        }
        Ok(Self { key: "[[corpus.texts]]".to_owned(), config: config.clone(), places: all })
    }

    /// Texts of one format, which the table `key` names.
    ///
    /// # Errors
    /// When there is none, or a place is invalid.
    pub(crate) fn of(key: &str, texts: &Texts, places: &Places<'_>) -> anyhow::Result<Self> {
        let config = Config { texts: vec![texts.clone()] };
        Ok(Self { key: key.to_owned(), config, places: vec![texts.places(key, places)?] })
    }

    /// The formats of its texts.
    pub(crate) fn formats(&self) -> impl Iterator<Item = &Format> {
        self.config.texts.iter().map(|texts| &texts.format)
    }

    /// Describes formats and files.
    pub(crate) fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "corpus", &self.config);
        self.places.iter().flatten().for_each(|place| place.describe(to));
    }

    /// What a stage that reads it declares.
    #[must_use]
    pub(crate) fn inputs(&self) -> Vec<Input> {
        let places: Vec<Place> = self.places.iter().flatten().cloned().collect();
        location::inputs(&places)
    }

    /// Hands each document to `take`, in order, with the texts that it is of, and leaves what became of the files as a fact. Returns the names of labels.
    ///
    /// # Errors
    /// When a file is missing or damaged, `take` fails, or the run is to stop.
    pub(crate) fn each(
        &self,
        context: &Context,
        mut take: impl FnMut(&Texts, &Document) -> anyhow::Result<()>,
    ) -> anyhow::Result<Labels> {
        let (mut labels, mut facts) = (Labels::default(), Vec::new());
        let (mut dropped, mut changed, progress) = (Vec::new(), Vec::new(), context.progress());
        progress.unit("documents");
        for (texts, places) in self.config.texts.iter().zip(&self.places) {
            let mut sum = Read { texts: texts.name.clone(), ..Read::default() };
            let mut reasons = BTreeMap::<&str, u64>::new();
            let mut fixed = BTreeMap::<&str, u64>::new();
            for file in self.files(texts, places, context)? {
                context.check()?;
                let counted = documents_of(&file, &texts.format, &mut labels, |document| {
                    progress.add_rows(1);
                    context.check()?;
                    take(texts, document)
                });
                let tally = counted?.documents;
                progress.add_bytes(tally.bytes);
                sum.files += 1;
                sum.bytes += tally.bytes;
                sum.read += tally.read;
                sum.kept += tally.kept;
                sum.dropped += tally.read - tally.kept;
                for (sums, of_file) in [(&mut reasons, &tally.dropped), (&mut fixed, &tally.mended)] {
                    of_file.iter().for_each(|(reason, rows)| *sums.entry(reason).or_insert(0) += rows);
                }
            }
            anyhow::ensure!(
                sum.kept > 0,
                "{} {:?}: none of {} documents in {} files is kept ({}); expected one at least: see whether these are the right files",
                self.key,
                texts.name,
                sum.read,
                sum.files,
                told(&reasons)
                    .map(|(reason, rows)| format!("{reason} {rows}"))
                    .collect::<Vec<_>>()
                    .join(", "),
            );
            dropped.extend(told(&reasons).map(
                |(reason, rows)| json!({"texts": texts.name, "dropped_because": reason, "documents": rows}),
            ));
            changed.extend(
                told(&fixed).map(
                    |(what, rows)| json!({"texts": texts.name, "fixed_because": what, "documents": rows}),
                ),
            );
            facts.push(json!(sum));
        }
        context.record("corpus", facts);
        context.record("dropped", dropped);
        // What was not read as published is said, even if it stayed.
        context.record("fixed", changed);
        Ok(labels)
    }

    fn files(
        &self,
        texts: &Texts,
        places: &[Place],
        context: &Context,
    ) -> anyhow::Result<Vec<std::path::PathBuf>> {
        let mut files = Vec::new();
        for place in places {
            let path = place.path(context)?;
            let found = folder::ending(&path, texts.format.extensions())
                .with_context(|| format!("{} of {} {:?}", place.label(), self.key, texts.name))?;
            anyhow::ensure!(
                !found.is_empty(),
                "{}: no file there ends in {}, which is what the format of {} {:?} looks for",
                path.display(),
                texts.format.extensions().join(" or "),
                self.key,
                texts.name
            );
            // Its neighbour with the entities would be no input of the stage.
            let alone = matches!(texts.format, Format::Brat(_)) && !path.is_dir();
            anyhow::ensure!(
                !alone,
                "{}: a text of brat goes with the .ann file beside it: name their folder in {} {:?}",
                path.display(),
                self.key,
                texts.name
            );
            files.extend(found);
        }
        Ok(files)
    }
}
