//! Stage `triples`: every configured source into one canonical triple table, with a funnel that accounts for every row.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use base::funnel::Tally;
use base::whole::write_whole;
use kg::canon;
use kg::source::{Config as Sources, Funnel, Report, SourceReport};
use kg::table::level::highest_level;
use kg::table::{Builder, Graph};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::location::{self, Place, Places};
use super::source::{self, Located};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence;
use crate::engine::stage::{Input, Stage};

/// The file with the way of every row.
pub(crate) const FUNNEL: &str = "funnel.json";

/// How statements become one graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// What to do with statements of a relation whose inverse is known.
    ///
    /// Source: ours: each fact counts once.
    pub(crate) inverses: canon::Inverses,
    /// What to do with statements that relate an entity to itself, after the crosswalk.
    ///
    /// Source: ours: most come of merging two keys of one thing.
    pub(crate) self_loops: canon::SelfLoops,
    /// What to do with a name or key that matches several entities; it is listed in `crosswalk.parquet` either way.
    ///
    /// Source: ours: a wrong merge falsifies every triple of both.
    pub(crate) ambiguous: canon::Ambiguous,
    /// What to do with statements about an entity for which no source has a name though its own names others, and with those of a relation that is called by a code (`RO:0002211`).
    ///
    /// Source: ours: a missing name is more often a wrong file than a nameless thing.
    pub(crate) unnamed: canon::Unnamed,
    /// What to do with things that a source names and no triple mentions, as a subset of an ontology has them.
    ///
    /// Source: ours: a graph is of triples; a dictionary of names (`engraft tag`, `align`, `link`) wants them, too.
    pub(crate) unrelated: canon::Unrelated,
    /// Key prefixes (before the colon), most preferred first: a name that matches one entity in each of two namespaces means the one in the
    /// earlier.
    ///
    /// Source: ours: the UMLS covers the most, MeSH included.
    pub(crate) namespaces: Vec<String>,
    /// Pairs of inverse relations, from any source, that no source declares; a relation paired with itself is symmetric.
    ///
    /// Source: none: sources declare their own.
    #[serde(default)]
    pub(crate) declared: BTreeSet<[String; 2]>,
    /// Statements (16 bytes each) in memory, from 1 to 2^40; the rest spill to temporary files. A statement with its own weight takes about 180
    /// bytes more, which stay in memory. Not part of any fingerprint: it does not affect the output.
    ///
    /// Source: ours: 64 MB without weights.
    #[serde(skip_serializing)]
    #[schemars(extend("default" = 4_000_000))]
    pub(crate) rows_in_memory: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            inverses: canon::Inverses::default(),
            self_loops: canon::SelfLoops::default(),
            ambiguous: canon::Ambiguous::default(),
            unnamed: canon::Unnamed::default(),
            unrelated: canon::Unrelated::default(),
            namespaces: vec!["umls".to_owned(), "mesh".to_owned()],
            declared: BTreeSet::new(),
            rows_in_memory: 4_000_000,
        }
    }
}

/// The stage.
#[derive(Debug)]
pub(crate) struct Triples {
    sources: Sources,
    config: Config,
    /// Where the files of each source lie.
    located: Vec<Located>,
}

impl Triples {
    /// The stage for `config`.
    ///
    /// # Errors
    /// When the config names no source, or a place that is invalid.
    pub(crate) fn new(sources: &Sources, config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        anyhow::ensure!(config.rows_in_memory > 0, "canon.rows_in_memory = 0: expected at least 1");
        let located = source::locate(sources, places)?;
        Ok(Self { sources: sources.clone(), config: config.clone(), located })
    }

    fn places(&self) -> Vec<&Place> {
        self.located.iter().flat_map(Located::places).collect()
    }

    fn policy(&self) -> canon::Policy {
        canon::Policy {
            inverses: self.config.inverses,
            self_loops: self.config.self_loops,
            ambiguous: self.config.ambiguous,
            unnamed: self.config.unnamed,
            unrelated: self.config.unrelated,
            namespaces: self.config.namespaces.clone(),
        }
    }
}

impl Stage for Triples {
    fn name(&self) -> &'static str {
        "triples"
    }

    fn version(&self) -> u32 {
        9
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "sources", &self.sources);
        describe::config(to, "canon", &self.config);
        self.places().iter().for_each(|place| place.describe(to));
    }

    fn inputs(&self) -> Vec<Input> {
        location::inputs(self.places())
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let paths: Vec<PathBuf> =
            self.places().iter().map(|p| p.path(context)).collect::<anyhow::Result<_>>()?;
        let bytes = paths.iter().filter_map(|path| std::fs::metadata(path).ok()).map(|m| m.len()).sum();
        context.progress().total_bytes(bytes);
        let mut builder = Builder::spilling(context.out(), self.config.rows_in_memory);
        for [one, other] in &self.config.declared {
            builder.declare_inverse(one, other);
        }
        let mut reports = Vec::new();
        for (entry, files) in self.sources.entries().iter().zip(&self.located) {
            reports.push(files.read(entry, context, &mut builder)?);
            context.check()?;
        }
        let canon = kg::source::merge(builder, &self.policy(), &reports)?;
        context.check()?;
        let (mut read, mut notes) = (Vec::new(), Vec::new());
        for SourceReport { funnel, notes: noted, warnings, naming } in reports {
            if let Some(nothing) = funnel.nothing_kept() {
                context.warn(nothing);
            }
            for warning in funnel.left_out().into_iter().chain(warnings) {
                context.warn(warning);
            }
            for warning in naming.map(|naming| naming.settle(&canon)).transpose()?.unwrap_or_default() {
                context.warn(warning);
            }
            read.push(funnel);
            notes.push(noted);
        }
        let merged = canon.report().clone();
        anyhow::ensure!(
            merged.triples > 0,
            "the graph has no triple: {}; expected one at least: see whether these are the right files, and what the sources' settings leave out",
            read.iter()
                .filter_map(Funnel::nothing_kept)
                .chain(read.iter().all(|of| of.triples.kept > 0).then(|| merged.nothing_left()))
                .collect::<Vec<_>>()
                .join("; "),
        );
        canon.write(context.out())?;
        for warning in self.sources.unstated(&merged, &self.config.declared) {
            context.warn(warning);
        }
        drop(canon);
        let report = Report { read, merged };
        let json = serde_json::to_vec_pretty(&report)?;
        write_whole(&context.out().join(FUNNEL), &json)?;
        record(context, &report, notes);
        moved(context)
    }

    fn licence(&self, folder: &Path) -> anyhow::Result<Licence> {
        Ok(highest_level(folder)?.map_or(Licence::None, Licence::Level))
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        inspect_parquet(file)
    }
}

/// Leaves the funnel for `inspect` and the ledger.
fn record(context: &Context, report: &Report, notes: Vec<Map<String, Value>>) {
    let files = report.read.iter().flat_map(|source| {
        std::iter::once(&source.triples).chain(&source.supporting).map(move |tally| (source, tally))
    });
    let (mut rows, mut dropped, mut unused) = (Vec::new(), Vec::new(), Vec::new());
    for (source, tally) in files {
        rows.push(file(&source.source, tally));
        if !tally.columns_not_used.is_empty() {
            let columns = tally.columns_not_used.join(", ");
            unused.push(json!({"source": source.source, "file": tally.file, "columns": columns}));
        }
        let reasons = tally.dropped.iter().filter(|(_, rows)| **rows > 0);
        dropped.extend(reasons.map(|(reason, rows)| {
            json!({"source": source.source, "file": tally.file, "dropped_because": reason, "rows": rows})
        }));
    }
    context.record("rows", rows);
    context.record("dropped", dropped);
    if !unused.is_empty() {
        context.record("columns_not_used", unused);
    }
    let merged = &report.merged;
    let sources = merged.sources.iter().map(|(source, stated)| {
        let mut row = Map::from_iter([("source".to_owned(), json!(source))]);
        if let Value::Object(counts) = json!(stated) {
            row.extend(counts);
        }
        Value::Object(row)
    });
    context.record("statements", sources.collect::<Vec<_>>());
    let relations = merged.relations.iter().map(|one| {
        let inverse = if one.symmetric { Some("symmetric") } else { one.inverse.as_deref() };
        json!({"relation": one.relation, "inverse": inverse, "rows": one.rows, "turned": one.turned, "triples": one.triples})
    });
    context.record("relations", relations.collect::<Vec<_>>());
    context.record("crosswalk", json!(merged.crosswalk));
    for (funnel, notes) in report.read.iter().zip(notes) {
        notes.into_iter().for_each(|(key, note)| context.record(&format!("{}_{key}", funnel.source), note));
    }
    if !merged.conflicting_inverses.is_empty() {
        context.record("conflicting_inverses", json!(merged.conflicting_inverses));
    }
    context.record(
        "table",
        json!({"entities": merged.entities, "unused_entities": merged.unused_entities, "terms": merged.terms,
               "triples": merged.triples, "merged_across_sources": merged.merged_across_sources}),
    );
}

fn file(source: &str, tally: &Tally) -> Value {
    let out: u64 = tally.dropped.values().sum();
    json!({"source": source, "file": tally.file, "bytes": tally.bytes, "lines": tally.lines,
           "read": tally.read, "dropped": out, "kept": tally.kept})
}

/// Leaves what moved since the table that is replaced: a fact of the run, since the table itself depends on its inputs only.
fn moved(context: &Context) -> anyhow::Result<()> {
    let Some(previous) = context.previous() else { return Ok(()) };
    let old = match Graph::read(previous) {
        Ok(old) => old,
        Err(error) => {
            context.record("moved", json!({"unknown": format!("the table before cannot be read: {error}")}));
            return Ok(());
        }
    };
    let new = Graph::read(context.out())?;
    let retired = kg::table::read::retired(context.out())?;
    let mut found = kg::diff::diff(&old, &new, |key| retired.get(key).cloned());
    let texts = found.read_texts(previous, context.out());
    let mut report = json!(found.report);
    if let Err(error) = texts {
        report["texts"] = json!({"unknown": format!("the table before cannot be read: {error}")});
    }
    context.record("moved", report);
    Ok(())
}

/// Rows and columns of a Parquet file; nothing for other files.
///
/// # Errors
/// When the file is no readable Parquet.
pub(crate) fn inspect_parquet(file: &Path) -> anyhow::Result<Vec<String>> {
    if file.extension().is_none_or(|e| e != "parquet") {
        return Ok(Vec::new());
    }
    let reader = SerializedFileReader::new(File::open(file)?)?;
    let metadata = reader.metadata().file_metadata();
    let columns: Vec<&str> =
        metadata.schema_descr().root_schema().get_fields().iter().map(|f| f.name()).collect();
    let groups = reader.metadata().num_row_groups();
    Ok(vec![format!("{} rows in {groups} row groups: {}", metadata.num_rows(), columns.join(", "))])
}
