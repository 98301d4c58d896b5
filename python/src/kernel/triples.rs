//! Kernel `triples`: publishers' files as one canonical graph, row by row.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int32Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use base::read::ReadError;
use kg::canon::{self, Policy};
use kg::source::files::{self, Files};
use kg::source::{Config, Report, SourceReport};
use kg::table::{Builder, Graph};
use pyo3::exceptions::{PyOSError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::{Map, Value, json};

use super::batches::{Batches, Source};
use super::negatives::COLUMNS;
use super::pool::pool;
use super::{options, table};

/// Rows of a batch.
const ROWS: usize = 1 << 14;

/// Reads publishers' files of medical knowledge graphs into one canonical graph, as the stage `triples` does.
///
/// `sources` is the name of a source ("rotmensch", "hsdn", "mesh", "umls", "obo", "snomed", "rxnorm", "icd10cm", "omop", "kgx.NAME", "ontologies.NAME",
/// "edges.NAME", "neo4j.NAME", "rdf.NAME", "triples.NAME") with its options as further arguments, or a dictionary of several, as the table `[sources]` of a
/// config has it: the same names, the same values (docs/config.md). Files lie on this machine.
/// `canon` has settings of the table `[canon]`: `inverses`, `self_loops`, `ambiguous`, `unnamed`, `namespaces`.
///
/// A row is a triple of the merged graph, sorted by the keys of subject, relation and object:
///
///   subject, relation, object                  string: keys
///   subject_text, relation_text, object_text   string: names
///   origins                                    list of struct: who states it: source, vocabulary, weight (double), count (int64),
///                                              level (int32), direction ("stated", "inverse" or "both")
///
/// `report` has the way of every row, as `funnel.json`; rows that were left out although they say something are warned of, too.
///
/// >>> engraft.triples("hsdn", path="hsdn/Combined-Input.tsv", min_tfidf=3.5)
/// <engraft.Batches of 99999 rows: subject, relation, object, subject_text, relation_text, object_text, origins>
/// >>> engraft.triples({"hsdn": {"path": "a.tsv"}, "rotmensch": {"path": "b.csv"}}, canon={"self_loops": "keep"})
///
/// Raises OSError for a file that cannot be read, with its line, ValueError for options that are none, out of their range, or that leave no triple.
#[pyfunction]
#[pyo3(signature = (sources, *, canon=None, **options))]
pub(crate) fn triples(
    py: Python<'_>,
    sources: &Bound<'_, PyAny>,
    canon: Option<&Bound<'_, PyDict>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Batches> {
    let options = options.map(|given| options::object(given, "")).transpose()?.unwrap_or_default();
    let canon = canon.map(|given| options::object(given, "canon")).transpose()?.unwrap_or_default();
    let policy: Policy = options::settings("canon", canon)?;
    let config: Config = options::settings("triples()", table_of(sources, options)?)?;
    config.check().map_err(|error| options::invalid("triples()", &error))?;
    are_local(&config)?;
    let pool = pool(py)?;
    let read = py.detach(|| pool.install(|| read(&config, &policy)))?;
    for warning in read.warnings {
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &std::ffi::CString::new(warning)?, 1)?;
    }
    Ok(Batches::new(Merged(read.graph), Some(json!(read.report))))
}

/// The table `[sources]`.
fn table_of(sources: &Bound<'_, PyAny>, options: Map<String, Value>) -> PyResult<Map<String, Value>> {
    if let Ok(table) = sources.cast::<PyDict>() {
        if let Some(name) = options.keys().next() {
            let problem = format!("triples() has no argument {name} beside a dictionary of sources");
            return Err(PyTypeError::new_err(format!("{problem}: put it into the table of its source")));
        }
        return options::object(table, "");
    }
    let Ok(name) = sources.cast::<PyString>() else {
        return Err(PyTypeError::new_err(
            "sources: expected the name of a source, or a dictionary from names to their options",
        ));
    };
    let name = name.to_str()?;
    let table = match name.split_once('.') {
        None if ["kgx", "triples", "edges", "neo4j", "rdf", "ontologies"].contains(&name) => {
            let example = format!("{name}.mine");
            return Err(PyValueError::new_err(format!(
                "sources={name:?}: a source of this kind has a name, as in {example:?}"
            )));
        }
        None => (name, Value::Object(options)),
        Some((kind, name)) => (kind, json!({ name: options })),
    };
    Ok(Map::from_iter([(table.0.to_owned(), table.1)]))
}

/// Refuses files of a store, which a stage would fetch.
fn are_local(config: &Config) -> PyResult<()> {
    let entries = config.entries();
    if entries.is_empty() {
        return Err(PyValueError::new_err("triples(): no source is named"));
    }
    for entry in &entries {
        for slot in entry.source.slots() {
            if slot.location.0.is_empty() {
                let problem = format!("triples(): {}.{} is empty", entry.key, slot.key);
                return Err(PyValueError::new_err(format!("{problem}: expected a path")));
            }
            if store::location::is_remote(&slot.location.0) {
                let problem = format!("triples(): {}.{} is a URL", entry.key, slot.key);
                return Err(PyValueError::new_err(format!(
                    "{problem}: expected a path; fetch the file first"
                )));
            }
        }
    }
    Ok(())
}

/// What was read.
struct Read {
    graph: Graph,
    report: Report,
    warnings: Vec<String>,
}

fn read(config: &Config, policy: &Policy) -> PyResult<Read> {
    let unread = |error: ReadError| PyOSError::new_err(error.to_string());
    let (mut builder, mut reports) = (Builder::new(), Vec::new());
    for entry in config.entries() {
        let watch = |file| -> files::Bytes<'_> { Box::new(file) };
        let files = Files::new(files::on_disk(entry.source).map_err(unread)?, &watch);
        reports.push(entry.source.read(entry.name, &files, &mut builder).map_err(unread)?);
    }
    let unmerged = |error: canon::Error| PyOSError::new_err(error.to_string());
    let canon = kg::source::merge(builder, policy, &reports).map_err(unmerged)?;
    let (mut warnings, mut read) = (Vec::new(), Vec::new());
    for SourceReport { funnel, naming, warnings: told, .. } in reports {
        warnings.extend(funnel.nothing_kept().into_iter().chain(funnel.left_out()).chain(told));
        warnings.extend(
            naming.map(|naming| naming.settle(&canon)).transpose().map_err(unread)?.unwrap_or_default(),
        );
        read.push(funnel);
    }
    let merged = canon.report().clone();
    warnings.extend(config.unstated(&merged, &BTreeSet::new()));
    if merged.triples == 0 {
        let why: Vec<String> = read.iter().filter_map(kg::source::Funnel::nothing_kept).collect();
        let why = if why.is_empty() { merged.nothing_left() } else { why.join("; ") };
        return Err(PyValueError::new_err(format!(
            "the graph has no triple: {why}; expected one at least: see whether these are the right files, and what the options leave out"
        )));
    }
    let graph = canon.graph().map_err(unmerged)?;
    Ok(Read { graph, report: Report { read, merged }, warnings })
}

/// A graph, row by row.
#[derive(Debug)]
struct Merged(Graph);

impl Source for Merged {
    fn schema(&self) -> SchemaRef {
        let names = COLUMNS.map(str::to_owned).into_iter().chain(COLUMNS.map(|name| format!("{name}_text")));
        let texts = names.map(|name| Field::new(name, DataType::Utf8, false));
        let item = Arc::new(Field::new("item", DataType::Struct(origin_fields()), false));
        let origins = Field::new("origins", DataType::List(item), false);
        Arc::new(Schema::new(texts.chain([origins]).collect::<Vec<_>>()))
    }

    fn rows(&self) -> usize {
        self.0.triples().len()
    }

    fn batch(&self, number: usize) -> Option<Result<RecordBatch, ArrowError>> {
        let triples = self.0.triples().chunks(ROWS).nth(number)?;
        let mut texts: [StringBuilder; 6] = std::array::from_fn(|_| StringBuilder::new());
        let mut origins = Origins::default();
        for (place, triple) in (number * ROWS..).zip(triples) {
            let [subject, object] = [triple.subject, triple.object].map(|id| &self.0.entities()[id.index()]);
            let relation = &self.0.relations()[triple.relation.index()];
            let keys = [&subject.key, &relation.key, &object.key];
            let strings = keys.into_iter().chain([&subject.text, &relation.text, &object.text]);
            texts.iter_mut().zip(strings).for_each(|(column, text)| column.append_value(text));
            origins.push(&self.0, place);
        }
        let mut columns: Vec<ArrayRef> =
            texts.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
        Some(origins.finish().and_then(|origins| {
            columns.push(origins);
            RecordBatch::try_new(self.schema(), columns)
        }))
    }
}

fn origin_fields() -> Fields {
    let field = |name: &str, kind: &DataType, nullable: bool| Field::new(name, kind.clone(), nullable);
    let text = DataType::Utf8;
    Fields::from(vec![
        field("source", &text, false),
        field("vocabulary", &text, true),
        field("weight", &DataType::Float64, true),
        field("count", &DataType::Int64, true),
        field("level", &DataType::Int32, true),
        field("direction", &text, false),
    ])
}

/// A column of origins in the making.
#[derive(Default)]
struct Origins {
    lengths: Vec<usize>,
    sources: StringBuilder,
    vocabularies: StringBuilder,
    weights: Float64Builder,
    counts: Int64Builder,
    levels: Int32Builder,
    directions: StringBuilder,
}

impl Origins {
    fn push(&mut self, graph: &Graph, triple: usize) {
        self.lengths.push(graph.origins(triple).len());
        for (origin, direction) in graph.origins(triple).zip(graph.directions(triple)) {
            self.sources.append_value(&origin.source);
            self.vocabularies.append_option(origin.vocabulary.as_deref());
            self.weights.append_option(origin.weight);
            self.counts.append_option(origin.count.map(i64::from));
            self.levels.append_option(origin.level.map(i32::from));
            self.directions.append_value(direction.name());
        }
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.sources.finish()),
            Arc::new(self.vocabularies.finish()),
            Arc::new(self.weights.finish()),
            Arc::new(self.counts.finish()),
            Arc::new(self.levels.finish()),
            Arc::new(self.directions.finish()),
        ];
        table::lists(&self.lengths, origin_fields(), columns)
    }
}
