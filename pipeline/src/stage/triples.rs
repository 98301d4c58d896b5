//! Stage `triples`: every configured source into one triple table, with a funnel that accounts for every row. Knows no text
//! encoding.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kg::source::funnel::{Funnel, Report};
use kg::source::{hsdn, rotmensch, umls};
use kg::table::Builder;
use kg::whole::write_whole;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::location::{self, Location, Place, Places};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::progress::Counted;
use crate::engine::stage::{Input, Stage};

/// The file with the funnels of all sources.
pub const FUNNEL: &str = "funnel.json";

/// The sources of a config; at least one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A Metathesaurus.
    pub umls: Option<UmlsConfig>,
    /// The Human Symptoms-Disease Network.
    pub hsdn: Option<HsdnConfig>,
    /// The Health Knowledge Graph.
    pub rotmensch: Option<RotmenschConfig>,
}

/// UMLS: where it lies and what is taken of it; the fields are those of [`umls::Options`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UmlsConfig {
    /// The folder with `MRCONSO.RRF`, `MRREL.RRF` and `MRSTY.RRF`.
    #[serde(skip_serializing)]
    pub path: Location,
    /// Languages of names, the preferred one first.
    pub languages: Vec<String>,
    /// What to do with suppressed rows.
    pub suppressed: umls::Suppressed,
    /// What to do with relations that have no RELA.
    pub unlabelled: umls::Unlabelled,
    /// The relations to keep; none keeps all.
    pub relations: Option<BTreeSet<String>>,
}

/// HSDN: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HsdnConfig {
    /// The table (`Combined-Input.tsv`).
    #[serde(skip_serializing)]
    pub path: Location,
    /// Rows with a lower TFIDF score are dropped; none keeps all.
    pub min_tfidf: Option<f64>,
}

/// Rotmensch: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RotmenschConfig {
    /// The table (`DerivedKnowledgeGraph_final.csv`).
    #[serde(skip_serializing)]
    pub path: Location,
    /// Entries with a lower probability are dropped; none keeps all.
    pub min_probability: Option<f64>,
}

/// The stage.
#[derive(Debug)]
pub struct Triples {
    config: Config,
    umls: Option<Umls>,
    hsdn: Option<Place>,
    rotmensch: Option<Place>,
}

/// The places of the RRF files.
#[derive(Debug)]
struct Umls {
    conso: Place,
    rel: Place,
    sty: Place,
}

impl Triples {
    /// The stage for `config`.
    ///
    /// # Errors
    /// When the config names no source, or a place that cannot be meant.
    pub fn new(config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        let stage = Self {
            config: config.clone(),
            umls: config.umls.as_ref().map(|source| Umls::new(&source.path, places)).transpose()?,
            hsdn: config
                .hsdn
                .as_ref()
                .map(|source| source.path.place("sources.hsdn.path", places))
                .transpose()?,
            rotmensch: match &config.rotmensch {
                Some(source) => Some(source.path.place("sources.rotmensch.path", places)?),
                None => None,
            },
        };
        anyhow::ensure!(
            !stage.places().is_empty(),
            "[sources] is empty: name at least one of sources.umls, sources.hsdn, sources.rotmensch"
        );
        Ok(stage)
    }

    fn places(&self) -> Vec<&Place> {
        let umls = self.umls.iter().flat_map(|umls| [&umls.conso, &umls.rel, &umls.sty]);
        umls.chain(&self.hsdn).chain(&self.rotmensch).collect()
    }

    /// Reads the sources in the order in which their names win: UMLS, HSDN, Rotmensch.
    fn read(&self, context: &Context, builder: &mut Builder) -> anyhow::Result<Vec<Funnel>> {
        let mut funnels = Vec::new();
        if let (Some(places), Some(source)) = (&self.umls, &self.config.umls) {
            let (conso, rel) = (places.conso.path(context)?, places.rel.path(context)?);
            let sty = places.sty.path(context)?;
            let files = umls::Files {
                conso: (open(&conso, context)?, conso.as_path()),
                rel: (open(&rel, context)?, rel.as_path()),
                sty: Some((open(&sty, context)?, sty.as_path())),
            };
            let options = umls::Options {
                languages: source.languages.clone(),
                suppressed: source.suppressed,
                unlabelled: source.unlabelled,
                relations: source.relations.clone(),
            };
            funnels.push(umls::read(files, &options, builder)?);
        }
        if let (Some(place), Some(source)) = (&self.hsdn, &self.config.hsdn) {
            let path = place.path(context)?;
            let options = hsdn::Options { min_tfidf: source.min_tfidf };
            funnels.push(hsdn::read(open(&path, context)?, &path, &options, builder)?);
        }
        if let (Some(place), Some(source)) = (&self.rotmensch, &self.config.rotmensch) {
            let path = place.path(context)?;
            let options = rotmensch::Options { min_probability: source.min_probability };
            funnels.push(rotmensch::read(open(&path, context)?, &path, &options, builder)?);
        }
        Ok(funnels)
    }
}

impl Umls {
    fn new(path: &Location, places: &Places<'_>) -> anyhow::Result<Self> {
        let folder = path.place("sources.umls.path", places)?;
        Ok(Self {
            conso: folder.file("MRCONSO.RRF"),
            rel: folder.file("MRREL.RRF"),
            sty: folder.file("MRSTY.RRF"),
        })
    }
}

fn open(path: &Path, context: &Context) -> anyhow::Result<BufReader<Counted<File>>> {
    let file = File::open(path).with_context(|| format!("{}: cannot open it", path.display()))?;
    Ok(BufReader::with_capacity(1 << 20, context.progress().reader(file)))
}

impl Stage for Triples {
    fn name(&self) -> &'static str {
        "triples"
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "sources", &self.config);
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
        let mut builder = Builder::new();
        let funnels = self.read(context, &mut builder)?;
        let graph = builder.finish();
        context.check()?;
        graph.write(context.out())?;
        let report = Report::new(funnels, &graph);
        let json = serde_json::to_vec_pretty(&report)?;
        write_whole(&context.out().join(FUNNEL), &json)?;
        record(context, &report);
        Ok(())
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        inspect_parquet(file)
    }
}

/// Leaves the funnel for `inspect` and the ledger.
fn record(context: &Context, report: &Report) {
    let files = report.sources.iter().flat_map(|source| {
        std::iter::once(&source.triples).chain(&source.supporting).map(move |tally| (source, tally))
    });
    let (mut rows, mut dropped) = (Vec::new(), Vec::new());
    for (source, tally) in files {
        let out: u64 = tally.dropped.values().sum();
        rows.push(
            json!({"source": source.source, "file": tally.file, "bytes": tally.bytes, "lines": tally.lines,
                         "read": tally.read, "dropped": out, "kept": tally.kept}),
        );
        let reasons = tally.dropped.iter().filter(|(_, rows)| **rows > 0);
        dropped.extend(reasons.map(|(reason, rows)| {
            json!({"source": source.source, "file": tally.file, "dropped_because": reason, "rows": rows})
        }));
    }
    context.record("rows", rows);
    context.record("dropped", dropped);
    let sources = report.sources.iter().map(|source| {
        json!({"source": source.source, "kept": source.triples.kept, "merged": source.merged, "distinct": source.distinct,
               "subjects": source.subjects.kept, "objects": source.objects.kept, "unused_entities": source.unused_entities})
    });
    context.record("triples", sources.collect::<Vec<_>>());
    let relations = report.sources.iter().flat_map(|source| {
        let rows = source.relations.iter();
        rows.map(|(relation, rows)| json!({"source": source.source, "relation": relation, "kept": rows}))
    });
    context.record("relations", relations.collect::<Vec<_>>());
    context.record(
        "table",
        json!({"entities": report.entities, "relations": report.relations, "triples": report.triples,
               "merged_across_sources": report.merged_across_sources}),
    );
}

/// Rows and columns of a Parquet file; nothing for other files.
///
/// # Errors
/// When the file is no readable Parquet.
pub fn inspect_parquet(file: &Path) -> anyhow::Result<Vec<String>> {
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
