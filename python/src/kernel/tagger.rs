//! Kernel `tag`: where texts name entities of a graph.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, Int32Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use kg::table::{Entity, EntityId, Graph};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use text::characters::Characters;
use text::ner::of_graph::GraphError;
use text::ner::{self, Dictionary, Filters};

use super::batches::{Batches, Held};
use super::given::Given;
use super::pool::pool;
use super::texts::{Piece, Texts};
use super::{options, table};

/// Rows of a batch at which another is begun.
const ROWS: usize = 1 << 17;

/// The names of a graph's entities, which `tag` finds in texts.
///
/// `triples` is the folder that the stage `triples` makes. Further arguments are the filters of `maps.entities.dictionary` of a config, under
/// their names there: `min_letters`, `max_words`, `numbers`, `stop_words`, `common_words`, `ambiguous`, `types`, `plurals`, `inverted`, `possessives`,
/// `upper_case` (docs/config.md has each with its default).
///
/// >>> tagger = engraft.Tagger("out/triples", types={"only": ["T047"]}, ambiguous={"drop": 1})
/// >>> tagger.tag(["Heart failure with a cough."])
/// <engraft.Batches of 1 rows: row, mention, start, end, byte_start, byte_end, text, entity, name, types>
///
/// Raises OSError for a folder that cannot be read, ValueError for a filter that is none or that nothing passes.
#[pyclass(module = "engraft", name = "Tagger", frozen)]
pub(crate) struct Tagger {
    dictionary: Dictionary,
    /// By id.
    entities: Vec<Entity>,
    given: Given,
}

#[pymethods]
impl Tagger {
    #[new]
    #[pyo3(signature = (triples, **filters))]
    fn new(py: Python<'_>, triples: PathBuf, filters: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = Given::new(&triples, filters, &[], py)?;
        let of = filters.map(|filters| options::object(filters, "")).transpose()?.unwrap_or_default();
        let filters: Filters = options::settings("Tagger()", of)?;
        let pool = pool(py)?;
        py.detach(move || {
            pool.install(|| {
                let graph = Graph::read(&triples).map_err(|error| PyOSError::new_err(error.to_string()))?;
                let dictionary =
                    Dictionary::of_graph(&graph, &triples, &filters).map_err(|error| match error {
                        GraphError::Read(error) => PyOSError::new_err(error.to_string()),
                        GraphError::Dictionary(error) => PyValueError::new_err(format!("Tagger(): {error}")),
                    })?;
                Ok(Self { dictionary, entities: graph.into_entities(), given })
            })
        })
    }

    /// The mentions in each text, in order, without overlaps: of those that share a word the leftmost, and of those the longest. Columns:
    ///
    ///   row                   int64: the text, from `first_row`
    ///   mention               int32: its number in the text, from 0
    ///   start, end            int32: its first character and that behind its last, as Python counts them
    ///   byte_start, byte_end  int32: the same in bytes of UTF-8
    ///   text                  string: the text as it is written there
    ///   entity, name          string: key and preferred name of the entity
    ///   types                 list of struct (code, name): its semantic types or roles
    ///
    /// A term that names several entities has a row for each, with the same `mention`, in the order of their keys. They are the mentions that
    /// the stage `maps` finds in a text with `unit = "document"`; by sentences, none crosses the end of one.
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
            let new = || ner::Tagger::new(&self.dictionary);
            let found = pool.install(|| -> Vec<Vec<Found<'_>>> {
                pieces.par_iter().map_init(new, |tagger, piece| self.found(tagger, piece)).collect()
            });
            self.batches(&schema, &found)
        })?;
        Ok(Batches::new(Held { schema, batches }, None))
    }

    /// What became of the graph's terms, as a dictionary: how many are looked for, and why others are not.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let report = serde_json::to_string(self.dictionary.report());
        let report = report.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        py.import("json")?.call_method1("loads", (report,))
    }

    /// Number of terms that are looked for.
    fn __len__(&self) -> usize {
        self.dictionary.len()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        slf.get().given.reduce(slf.as_any())
    }

    fn __repr__(&self) -> String {
        format!(
            "<engraft.Tagger of {} terms of {} entities>",
            self.dictionary.len(),
            self.dictionary.report().entities
        )
    }
}

/// A mention where its text has it.
struct Found<'t> {
    row: i64,
    mention: i32,
    /// Start and end in characters, then in bytes.
    places: [i32; 4],
    text: &'t str,
    term: ner::TermId,
}

impl Tagger {
    fn found<'t>(&self, tagger: &mut ner::Tagger<'_>, piece: &'t Piece) -> Vec<Found<'t>> {
        let (mut all, mut mentions) = (Vec::new(), Vec::new());
        for (row, text) in piece.rows() {
            let Some(text) = text else { continue };
            tagger.tag(text, &mut mentions);
            if mentions.is_empty() {
                continue;
            }
            let characters = Characters::new(text);
            for (mention, ner::Mention { bytes, term, .. }) in (0..).zip(&mentions) {
                // The ends of a mention lie between characters.
                let place = characters.range(bytes).unwrap_or_default();
                let places = [place.start, place.end, bytes.start, bytes.end];
                // Texts have at most 2^30 bytes.
                let places = places.map(|place| i32::try_from(place).unwrap_or(i32::MAX));
                let text = text.get(bytes.clone()).unwrap_or_default();
                all.push(Found { row, mention, places, text, term: *term });
            }
        }
        all
    }

    /// What was found, entity by entity: at least one batch, none with so many rows that its strings might not fit.
    fn batches(&self, schema: &SchemaRef, pieces: &[Vec<Found<'_>>]) -> PyResult<Vec<RecordBatch>> {
        let (mut batches, mut columns) = (Vec::new(), Columns::new());
        for found in pieces.iter().flatten() {
            for entity in self.dictionary.entities(found.term) {
                columns.push(found, self.entity(*entity)?);
            }
            if columns.rows.len() >= ROWS {
                batches.push(columns.finish(schema)?);
            }
        }
        batches.push(columns.finish(schema)?);
        Ok(batches)
    }

    fn entity(&self, id: EntityId) -> PyResult<&Entity> {
        let missing =
            || PyRuntimeError::new_err(format!("the dictionary names an unknown entity {id:?}; report it"));
        self.entities.get(id.index()).ok_or_else(missing)
    }
}

/// Columns in the making.
struct Columns {
    rows: Int64Builder,
    mentions: Int32Builder,
    places: [Int32Builder; 4],
    /// Written text, key and name.
    texts: [StringBuilder; 3],
    types: table::Types,
}

impl Columns {
    fn new() -> Self {
        Self {
            rows: Int64Builder::new(),
            mentions: Int32Builder::new(),
            places: std::array::from_fn(|_| Int32Builder::new()),
            texts: std::array::from_fn(|_| StringBuilder::new()),
            types: table::Types::new(),
        }
    }

    fn push(&mut self, found: &Found<'_>, entity: &Entity) {
        self.rows.append_value(found.row);
        self.mentions.append_value(found.mention);
        self.places.iter_mut().zip(found.places).for_each(|(column, place)| column.append_value(place));
        let strings = [found.text, &entity.key, &entity.text];
        self.texts.iter_mut().zip(strings).for_each(|(column, text)| column.append_value(text));
        self.types.push(&entity.types);
    }

    /// The rows so far; the next ones begin anew.
    fn finish(&mut self, schema: &SchemaRef) -> PyResult<RecordBatch> {
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.rows.finish()), Arc::new(self.mentions.finish())];
        columns.extend(self.places.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.extend(self.texts.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.push(self.types.finish()?);
        table::batch(schema, columns)
    }
}

fn schema() -> SchemaRef {
    let places = ["mention", "start", "end", "byte_start", "byte_end"];
    let row = Field::new("row", DataType::Int64, false);
    let places = places.map(|name| Field::new(name, DataType::Int32, false));
    let texts = ["text", "entity", "name"].map(|name| Field::new(name, DataType::Utf8, false));
    let types = table::Types::field("types");
    Arc::new(Schema::new(std::iter::once(row).chain(places).chain(texts).chain([types]).collect::<Vec<_>>()))
}
