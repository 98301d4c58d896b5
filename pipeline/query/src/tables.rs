//! The tables of an output folder: which there are, what is in them, and which stage makes one that is not there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use polars::lazy::dsl::len;
use polars::prelude::{Column as Stacked, DataFrame, DataType, IntoLazy, LazyFrame, PlSmallStr, Series};
use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};
use serde_json::Value;

use crate::artifact::{Artifact, Check, File};
use crate::catalog::{self, Each, Field, Rows, Stored, Table, What};
use crate::error::Error;
use crate::files::matched;
use crate::json::{self, About};
use crate::lookup::Lookup;
use crate::parquet;

/// The finished artifacts of an output folder, as tables.
#[derive(Debug)]
pub struct Tables {
    artifacts: Vec<Artifact>,
    check: Check,
    /// Columns that names are looked up in, by file and column: two columns of names share one reading.
    looked_up: Mutex<BTreeMap<(PathBuf, &'static str), Values>>,
}

/// A column that is read once.
type Values = Arc<OnceLock<Result<Series, String>>>;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type, as polars spells it.
    pub dtype: String,
}

/// What is told of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its name.
    pub name: String,
    /// What a row is.
    pub row: String,
    /// How many rows it has.
    pub rows: u64,
    /// Its columns.
    pub columns: Vec<Column>,
    /// The files that it is made of, from the output folder.
    pub files: Vec<String>,
}

/// A file of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub artifact: &'a Artifact,
    pub file: &'a File,
}

impl Source<'_> {
    pub(crate) fn path(&self) -> PathBuf {
        self.artifact.folder.join(&self.file.path)
    }
}

/// A table that is there.
#[derive(Debug)]
struct Present<'a> {
    of: &'static Table,
    sources: Vec<Source<'a>>,
}

/// Tables about the folder itself.
const STAGES: &str = "stages";
const FILES: &str = "files";

impl Tables {
    /// The tables of `artifacts`. No file is opened that `check` has not passed.
    #[must_use]
    pub fn new(artifacts: Vec<Artifact>, check: Check) -> Self {
        Self { artifacts, check, looked_up: Mutex::default() }
    }

    /// Every table that is there.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn list(&self) -> Result<Vec<Told>, Error> {
        let mut told = vec![];
        for (name, present) in self.present() {
            let files = present.sources.iter().map(|s| format!("{}/{}", s.artifact.stage, s.file.path));
            told.push(self.tell(name, present.of.row, files.collect())?);
        }
        told.push(self.tell(STAGES.to_owned(), "a finished stage", vec!["ledger.jsonl".to_owned()])?);
        told.push(self.tell(FILES.to_owned(), "a file of an artifact", vec!["ledger.jsonl".to_owned()])?);
        Ok(told)
    }

    fn tell(&self, name: String, row: &str, files: Vec<String>) -> Result<Told, Error> {
        let Some(mut frame) = self.frame(&name)? else {
            return Err(Error::new(format!("no table `{name}`")));
        };
        let schema = frame.collect_schema()?;
        let column = |(name, dtype): (&PlSmallStr, &DataType)| Column {
            name: name.to_string(),
            dtype: dtype.to_string(),
        };
        let columns = schema.iter().map(column).collect();
        let counted = frame.select([len().cast(DataType::UInt64).alias("rows")]).collect()?;
        let rows = counted.column("rows")?.u64()?.get(0).unwrap_or_default();
        Ok(Told { name, row: row.to_owned(), rows, columns, files })
    }

    /// The names of all tables that are there.
    pub(crate) fn names(&self) -> Vec<String> {
        self.present().into_keys().chain([STAGES.to_owned(), FILES.to_owned()]).collect()
    }

    /// The table of this name, its files verified; nothing if it is not there.
    pub(crate) fn frame(&self, name: &str) -> Result<Option<LazyFrame>, Error> {
        match name {
            STAGES => return self.stages().map(|frame| Some(frame.lazy())),
            FILES => return self.files().map(|frame| Some(frame.lazy())),
            _ => {}
        }
        let Some(Present { of, sources }) = self.present().remove(name) else { return Ok(None) };
        let refused = sources.par_iter().map(|source| self.check.verify(&source.path(), source.file));
        if let Some(text) = refused.find_map_first(Result::err) {
            return Err(Error::new(text));
        }
        if let Some(frame) = parquet::frame(self, &sources, of.rows)? {
            return Ok(Some(frame));
        }
        let frames = sources.iter().map(|source| read(*source, of)).collect::<Result<Vec<_>, _>>()?;
        // One frame, and no union of frames, whose rows polars cannot count.
        let mut frames = frames.into_iter();
        let Some(mut all) = frames.next() else { return Ok(None) };
        frames.try_for_each(|frame| all.vstack_mut(&frame).map(|_| ()))?;
        Ok(Some(all.lazy()))
    }

    pub(crate) fn has_finished(&self, stage: &str) -> bool {
        self.artifacts.iter().any(|artifact| artifact.stage == stage)
    }

    /// What is known of a table, whether it is there or not.
    pub(crate) fn made_by(name: &str) -> Option<&'static Table> {
        catalog::all().find(|table| matched(table.name, name).is_some())
    }

    /// Where the ids of `sources` lead. What cannot be looked up is an error once a query asks for it.
    pub(crate) fn lookup(&self, sources: &[Source], stored: &Stored) -> Lookup {
        let dtype = match stored.what {
            What::Text => DataType::String,
            What::Ids => DataType::UInt32,
        };
        let found = self.stored(sources, stored);
        let (source, failed) = match found {
            Ok(source) => (Some(source), None),
            Err(text) => (None, Some(text)),
        };
        let path = source.map(|source| source.path()).unwrap_or_default();
        let file = source.map_or_else(none, |source| source.file.clone());
        let values = match failed {
            Some(text) => Arc::new(OnceLock::from(Err(text))),
            None => {
                let mut known = self.looked_up.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(known.entry((path.clone(), stored.column)).or_default())
            }
        };
        Lookup { path, file, column: stored.column, dtype, check: self.check.clone(), values }
    }

    fn stored<'a>(&'a self, sources: &[Source<'a>], stored: &Stored) -> Result<Source<'a>, String> {
        let Stored { stage, file, .. } = stored;
        let artifact = self.artifacts.iter().find(|artifact| artifact.stage == *stage);
        let artifact = artifact.ok_or_else(|| {
            format!("names are in {stage}/{file}, which is not there: make it with `engraft run {stage}`")
        })?;
        for Source { artifact: of, .. } in sources {
            if of.inputs.get(*stage).is_some_and(|digest| *digest != artifact.digest) {
                return Err(format!(
                    "the ids of `{of}` are those of an earlier `{stage}`, so their names are not known: bring it up to date with \
                     `engraft run {of}`",
                    of = of.stage
                ));
            }
        }
        let file = artifact.files.iter().find(|found| found.path == *file);
        let file = file.ok_or_else(|| format!("{stage} has no file {}", stored.file))?;
        Ok(Source { artifact, file })
    }

    /// The tables that are there, by name.
    fn present(&self) -> BTreeMap<String, Present<'_>> {
        let mut found: BTreeMap<String, Present<'_>> = BTreeMap::new();
        for of in catalog::all() {
            for artifact in self.artifacts.iter().filter(|a| matched(of.stage, &a.stage).is_some()) {
                for file in &artifact.files {
                    let Some(star) = matched(of.file, &file.path) else { continue };
                    let present = found.entry(of.name.replace('*', star));
                    present
                        .or_insert_with(|| Present { of, sources: vec![] })
                        .sources
                        .push(Source { artifact, file });
                }
            }
        }
        found
    }

    fn stages(&self) -> Result<DataFrame, Error> {
        let all = &self.artifacts;
        fn text<'a>(name: &str, all: &'a [Artifact], of: impl Fn(&'a Artifact) -> &'a str) -> Stacked {
            Stacked::new(name.into(), all.iter().map(of).collect::<Vec<_>>())
        }
        let count = |name: &str, of: &dyn Fn(&Artifact) -> u64| {
            Stacked::new(name.into(), all.iter().map(of).collect::<Vec<_>>())
        };
        let columns = vec![
            text("stage", all, |artifact| &artifact.stage),
            count("files", &|artifact| artifact.files.len() as u64),
            count("bytes", &|artifact| artifact.files.iter().map(|file| file.bytes).sum()),
            Stacked::new("seconds".into(), all.iter().map(|artifact| artifact.seconds).collect::<Vec<_>>()),
            count("started_ms", &|artifact| artifact.started_ms),
            text("engraft", all, |artifact| &artifact.engraft),
            text("fingerprint", all, |artifact| &artifact.fingerprint),
            text("digest", all, |artifact| &artifact.digest),
        ];
        Ok(DataFrame::new(all.len(), columns)?)
    }

    fn files(&self) -> Result<DataFrame, Error> {
        let all: Vec<(&str, &File)> = self
            .artifacts
            .iter()
            .flat_map(|artifact| artifact.files.iter().map(|file| (artifact.stage.as_str(), file)))
            .collect();
        let text = |name: &str, of: &dyn Fn(&(&'_ str, &File)) -> String| {
            Stacked::new(name.into(), all.iter().map(of).collect::<Vec<_>>())
        };
        let columns = vec![
            text("stage", &|(stage, _)| (*stage).to_owned()),
            text("path", &|(_, file)| file.path.clone()),
            Stacked::new("bytes".into(), all.iter().map(|(_, file)| file.bytes).collect::<Vec<_>>()),
            text("blake3", &|(_, file)| file.blake3.clone()),
        ];
        Ok(DataFrame::new(all.len(), columns)?)
    }
}

fn none() -> File {
    File { path: String::new(), bytes: 0, blake3: String::new() }
}

/// Reads a file that is no Parquet.
fn read(source: Source, of: &Table) -> Result<DataFrame, Error> {
    let path = source.path();
    let text =
        fs::read_to_string(&path).map_err(|cause| Error::new(format!("{}: {cause}", path.display())))?;
    let about = about(source, of);
    match of.rows {
        Rows::Lines(each, fields) => {
            let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
            records(&path, &about, each, fields, lines)
        }
        Rows::Document(each, fields) => records(&path, &about, each, fields, [(0, text.as_str())]),
        Rows::Words => {
            let words: Vec<&str> = text.lines().collect();
            let ids = Stacked::new("id".into(), (0..).take(words.len()).collect::<Vec<u32>>());
            let tokens = Stacked::new("token".into(), &words);
            Ok(DataFrame::new(words.len(), vec![ids, tokens])?)
        }
        Rows::Parquet(_) | Rows::Exploded(..) => Ok(DataFrame::empty()),
    }
}

fn records<'t>(
    path: &Path,
    about: &About,
    each: Each,
    fields: &[Field],
    texts: impl IntoIterator<Item = (usize, &'t str)>,
) -> Result<DataFrame, Error> {
    let mut found = vec![];
    for (line, text) in texts {
        let value: Value = serde_json::from_str(text).map_err(|cause| {
            Error::new(format!("{}:{}: expected JSON: {cause}", path.display(), line + cause.line()))
        })?;
        found.extend(each(&value));
    }
    json::frame(path, about, fields, &found)
}

/// What a record's place tells of it.
fn about(source: Source, of: &Table) -> About {
    let stage = &source.artifact.stage;
    let mut about = About::from([("@stage", stage.clone())]);
    about.insert("@star", matched(of.stage, stage).unwrap_or_default().to_owned());
    about.insert("@folder", matched(of.file, &source.file.path).unwrap_or_default().to_owned());
    // A fine-tuning of several benchmarks is a recipe's: each of its records says whose it is.
    let benchmarks = source.artifact.inputs.keys().filter_map(|input| input.strip_prefix("benchmark-"));
    if let [benchmark] = benchmarks.collect::<Vec<_>>()[..] {
        about.insert(json::BENCHMARK, benchmark.to_owned());
    }
    if let Some(variant) = variant(stage, about.get(json::BENCHMARK).map(String::as_str)) {
        about.insert("@variant", variant.to_owned());
    }
    about
}

/// `base` of `finetune-base-ner-1`, `mt` of `recipe-mt-1`.
fn variant<'s>(stage: &'s str, benchmark: Option<&str>) -> Option<&'s str> {
    let (kind, rest) = stage.split_once('-')?;
    match (kind, benchmark) {
        ("recipe", _) => Some(rest.rsplit_once('-')?.0),
        ("pruned", _) => Some("pruned"),
        (_, Some(benchmark)) => Some(rest.split_once(&format!("-{benchmark}-"))?.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_says_which_variant_it_fine_tuned() {
        assert_eq!(variant("finetune-base-ner-1", Some("ner")), Some("base"));
        assert_eq!(variant("trial-kam-bc5-cdr-3-1", Some("bc5-cdr")), Some("kam"));
        assert_eq!(variant("recipe-mt-clinical-2", None), Some("mt-clinical"));
        assert_eq!(variant("retrain", None), None);
    }
}
