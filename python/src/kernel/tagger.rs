//! Kernel `tag`: where texts name entities of a graph.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::Int64Builder;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use kg::table::{Entity, Graph};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde_json::{Map, Value, json};
use text::Document;
use text::ner::annotate::{Annotator, Settings};
use text::ner::context::Context;
use text::ner::of_graph::GraphError;
use text::ner::{self, Names};
use text::tagged::Tagged;
use text::tagged::table::Mentions;

use super::batches::{Batches, Held};
use super::given::Given;
use super::pool::pool;
use super::texts::{Piece, Texts};
use super::{options, table};

/// Rows of a batch at which another is begun.
const ROWS: usize = 1 << 17;

/// The names of a graph's entities, which `tag` finds in texts.
///
/// `triples` is the folder that the stage `triples` makes. Further arguments are those of `[tag]` of a config: `near` (names that are written nearly so),
/// `abbreviations`, `candidates` and `context` ("english", "none", or a table of triggers), and the filters of `tag.dictionary` by themselves: `min_letters`,
/// `max_words`, `numbers`, `stop_words`, `common_words`, `ambiguous`, `types`, `plurals`, `inverted`, `possessives`, `upper_case` (docs/config.md has each with its default).
///
/// >>> tagger = engraft.Tagger("out/triples", types={"only": ["T047"]}, near={"threshold": 0.8})
/// >>> tagger.tag(["No heart failure."])
/// <engraft.Batches of 1 rows: row, mention, candidate, start, end, byte_start, byte_end, text, how, entity, name, types, score, negated, ...>
///
/// Raises OSError for a folder or table that cannot be read, ValueError for an argument that is none or that nothing passes.
#[pyclass(module = "engraft", name = "Tagger", frozen)]
pub(crate) struct Tagger {
    names: Names,
    context: Option<Context>,
    /// By id.
    entities: Vec<Entity>,
    given: Given,
}

/// Arguments that are no filters.
const BESIDE: [&str; 3] = ["near", "abbreviations", "candidates"];

#[pymethods]
impl Tagger {
    #[new]
    #[pyo3(signature = (triples, **settings))]
    fn new(py: Python<'_>, triples: PathBuf, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = Given::new(&triples, settings, &[], py)?;
        let mut of = settings.map(|of| options::object(of, "")).transpose()?.unwrap_or_default();
        let context = of.remove("context");
        let mut beside: Map<String, Value> =
            BESIDE.iter().filter_map(|&name| Some((name.to_owned(), of.remove(name)?))).collect();
        let filters: ner::Filters =
            options::settings("Tagger(): filters (beside near, abbreviations, candidates and context)", of)?;
        let filters = serde_json::to_value(filters).map_err(|error| unfit(&error))?;
        beside.insert("dictionary".to_owned(), filters);
        let settings: Settings = options::settings("Tagger()", beside)?;
        let context = triggers(context)?;
        let pool = pool(py)?;
        py.detach(move || {
            pool.install(|| {
                let graph = Graph::read(&triples).map_err(|error| PyOSError::new_err(error.to_string()))?;
                let names = Names::of_graph(&graph, &triples, &settings).map_err(|error| match error {
                    GraphError::Read(error) => PyOSError::new_err(error.to_string()),
                    GraphError::Dictionary(error) => PyValueError::new_err(format!("Tagger(): {error}")),
                })?;
                Ok(Self { names, context, entities: graph.into_entities(), given })
            })
        })
    }

    /// The mentions in each text, in order, without overlaps: what `engraft tag` finds. A mention that may name several entities has a row for each, the most
    /// likely first. Columns:
    ///
    ///   row                   int64: the text, from `first_row`
    ///   mention               int32: its number in the text, from 0
    ///   candidate             int32: 0 for the most likely entity
    ///   start, end            int32: its first character and that behind its last, as Python counts them
    ///   byte_start, byte_end  int32: the same in bytes of UTF-8
    ///   text                  string: the text as it is written there
    ///   how                   string: "name", "near" (written nearly so), "abbreviation" (that the text defines)
    ///   entity, name          string: key and preferred name of the entity
    ///   types                 list of struct (code, name): its semantic types or roles
    ///   score                 float32: 1 for a name as it is written, less for one that is written nearly so
    ///   negated, uncertain, historical, hypothetical, other_person    bool: what its sentence says of it
    ///
    /// With `abbreviations="plain"` and without `near` they are the mentions that the stage `maps` finds in a text with `unit = "document"`; by sentences, none crosses the end of one.
    ///
    /// Raises TypeError for what are no texts.
    #[pyo3(signature = (texts, *, column=None, first_row=0))]
    fn tag(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        column: Option<&str>,
        first_row: i64,
    ) -> PyResult<Batches> {
        let texts = Texts::new(texts, column, first_row)?;
        let (pool, schema) = (pool(py)?, schema());
        let batches = texts.batches(py, |pieces| {
            let new = || Annotator::new(&self.names, self.context.as_ref());
            let found = pool.install(|| -> Vec<Vec<(i64, Tagged)>> {
                pieces.par_iter().map_init(new, |annotator, piece| found(annotator, piece)).collect()
            });
            self.batches(&schema, &found)
        })?;
        Ok(Batches::new(Held { schema, batches }, None))
    }

    /// What became of the graph's terms, as a dictionary: how many are looked for, and why others are not.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let report = serde_json::to_string(self.names.dictionary().report());
        let report = report.map_err(|error| unfit(&error))?;
        py.import("json")?.call_method1("loads", (report,))
    }

    /// Number of terms that are looked for.
    fn __len__(&self) -> usize {
        self.names.dictionary().len()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        slf.get().given.reduce(slf.as_any())
    }

    fn __repr__(&self) -> String {
        let dictionary = self.names.dictionary();
        format!("<engraft.Tagger of {} terms of {} entities>", dictionary.len(), dictionary.report().entities)
    }
}

/// What Python calls `context`.
fn triggers(given: Option<Value>) -> PyResult<Option<Context>> {
    let given = given.unwrap_or_else(|| json!("english"));
    let path = match given.as_str() {
        Some("none") => return Ok(None),
        Some("english") => None,
        Some(path) => Some(Path::new(path)),
        None => {
            let problem =
                format!("context={given}: expected \"english\", \"none\" or the path of a table of triggers");
            return Err(PyValueError::new_err(problem));
        }
    };
    let read = Context::of_file(path).map(Some);
    read.map_err(|error| match path {
        Some(path) if !path.exists() => PyOSError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    })
}

fn unfit(error: &serde_json::Error) -> PyErr {
    PyRuntimeError::new_err(format!("{error}; report it"))
}

/// The texts of a piece that name something, each with the number of its row.
fn found(annotator: &mut Annotator<'_>, piece: &Piece) -> Vec<(i64, Tagged)> {
    let mut all = Vec::new();
    let mut document = Document::default();
    for (row, text) in piece.rows() {
        let Some(text) = text else { continue };
        document.text.clear();
        document.text.push_str(text);
        let mentions = annotator.annotate(&document);
        if mentions.is_empty() {
            continue;
        }
        let text = std::mem::take(&mut document.text);
        all.push((row, Tagged { file: None, id: String::new(), text, sentences: Vec::new(), mentions }));
    }
    all
}

impl Tagger {
    /// What was found, entity by entity: at least one batch, none with so many rows that its strings might not fit.
    fn batches(&self, schema: &SchemaRef, pieces: &[Vec<(i64, Tagged)>]) -> PyResult<Vec<RecordBatch>> {
        let (mut batches, mut rows, mut mentions) = (Vec::new(), Int64Builder::new(), Mentions::default());
        let mut finish = |rows: &mut Int64Builder, mentions: &mut Mentions| {
            let mut columns: Vec<ArrayRef> = vec![Arc::new(rows.finish())];
            columns.extend(mentions.finish().map_err(|error| table::apart(&error))?);
            batches.push(table::batch(schema, columns)?);
            PyResult::Ok(())
        };
        for (row, tagged) in pieces.iter().flatten() {
            for told in tagged.told(&self.entities) {
                let candidates = mentions.push(&told);
                rows.append_value_n(*row, candidates);
                if mentions.rows() >= ROWS {
                    finish(&mut rows, &mut mentions)?;
                }
            }
        }
        finish(&mut rows, &mut mentions)?;
        Ok(batches)
    }
}

fn schema() -> SchemaRef {
    let row = Field::new("row", DataType::Int64, false);
    Arc::new(Schema::new(std::iter::once(row).chain(Mentions::fields()).collect::<Vec<_>>()))
}
