//! Kernel `negatives`: corruptions of triples that no triple of a graph states.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use kg::split::Part;
use kg::table::{EntityId, Graph, RelationId};
use pyo3::exceptions::{PyOSError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSlice;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tasks::negative::{Config, Corruption, Counts, Draw, Filter, Negative, Same, Sampler};
use tasks::sample::{Corpus, Slot, Triple};
use tasks::shard::write;

use super::batches::{Batches, Held};
use super::given::Given;
use super::pool::pool;
use super::rows::{Names, Rows};
use super::{options, table};
use crate::raised::{raised, unfit};

/// Most negatives of a triple, as `shards.negatives.per_triple` may be.
const MOST: u32 = 10_000;
/// Negatives of a batch, which are drawn at once.
const NEGATIVES: usize = 1 << 16;
/// Triples of one thread at a time.
const TRIPLES: usize = 256;
/// The columns of a table of triples, in the order of [`Slot::ALL`].
pub(crate) const COLUMNS: [&str; 3] = ["subject", "relation", "object"];

/// Draws negatives for triples, as the stage `shards` does: each is a triple with its subject, relation or object replaced, and none is stated
/// by any triple of the graph, where triples count as the same when their names read the same (folded), and inverse ones always.
///
/// `triples` is the folder that the stage `triples` makes. `per` is how many are drawn for each triple, all distinct; `seed` is that of the draw.
/// Further arguments are settings of `shards.negatives` of a config, under their names there: `sampler`, `slots`, `same`, `max_draws`.
///
/// >>> negatives = engraft.Negatives("out/triples", per=2, seed=1, sampler="typed_by_range")
/// >>> negatives.draw(pyarrow.parquet.read_table("out/triples/triples.parquet"))
/// <engraft.Batches of 4000 rows: row, subject, relation, object, subject_text, relation_text, object_text, replaced>
///
/// Raises OSError for a folder that cannot be read, ValueError for a setting that is none or out of its range.
#[pyclass(module = "engraft", name = "Negatives", frozen)]
pub(crate) struct Negatives {
    sampler: Sampler,
    graph: Graph,
    per: u32,
    given: Given,
}

#[pymethods]
impl Negatives {
    #[new]
    #[pyo3(signature = (triples, *, per=1, seed=0, **settings))]
    fn new(
        py: Python<'_>,
        triples: PathBuf,
        per: u32,
        seed: u64,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let of = settings.map(|settings| options::object(settings, "")).transpose()?.unwrap_or_default();
        let config = config(of, per)?;
        let given = Given::new(&triples, settings, &[("per", u64::from(per)), ("seed", seed)], py)?;
        let pool = pool(py)?;
        py.detach(move || {
            pool.install(|| {
                let graph = Graph::read(&triples).map_err(|error| PyOSError::new_err(error.to_string()))?;
                // What is stated is known, whatever part a split would give it.
                let parts = vec![Part::Train; graph.triples().len()];
                let sampler = Corpus::new(&graph, &parts);
                let sampler = sampler.and_then(|(corpus, _)| write::negatives(&config, seed, &corpus));
                let sampler = sampler.map_err(|error| raised(&error))?;
                Ok(Self { sampler, graph, per, given })
            })
        })
    }

    /// The negatives of each row of `rows`, a table with the columns `subject`, `relation` and `object`: keys, as `engraft.triples` gives them, or
    /// ids, as in `triples.parquet`. A row need not be a triple of the graph, but its entities and its relation must be there. Columns:
    ///
    ///   row                                        int64: the row that it is a negative of, from `first_row`
    ///   subject, relation, object                  string: keys
    ///   subject_text, relation_text, object_text   string: names
    ///   replaced                                   string: "subject", "relation" or "object"
    ///
    /// The negatives of a row are a function of the triple, `seed`, the number of the row and `epoch`, so a table may be drawn for in parts, if
    /// `first_row` says where each begins. Where a row has fewer than `per`, since nothing else is false, a warning says how many are missing, and
    /// `report` what became of all proposals.
    ///
    /// Raises TypeError for what is no table, ValueError for a table without the columns, a null, or a name that the graph does not have.
    #[pyo3(signature = (rows, *, epoch=0, first_row=0))]
    fn draw(&self, py: Python<'_>, rows: &Bound<'_, PyAny>, epoch: u64, first_row: i64) -> PyResult<Batches> {
        let mut first =
            u32::try_from(first_row).map_err(|_| unfit("first_row", first_row, "from 0 to 4294967295"))?;
        let names = Names::of(&self.graph);
        let mut rows = Rows::new(rows)?;
        let (pool, schema) = (pool(py)?, schema());
        let (mut batches, mut counts) = (Vec::new(), Counts::default());
        let most = (NEGATIVES / self.per as usize).max(1);
        while let Some(group) = py.detach(|| rows.group(&names, first, most))? {
            py.check_signals()?;
            let drawn = py.detach(|| {
                let draw = |(number, triples): (usize, &[Triple])| {
                    self.some(epoch, first + u32::try_from(number * TRIPLES).unwrap_or(u32::MAX), triples)
                };
                let drawn: Vec<(Vec<Drawn>, Counts)> =
                    pool.install(|| group.par_chunks(TRIPLES).enumerate().map(draw).collect());
                drawn.iter().for_each(|(_, of)| counts.add(of));
                self.batch(&schema, drawn.iter().flat_map(|(drawn, _)| drawn))
            });
            batches.push(drawn?);
            first += u32::try_from(group.len()).unwrap_or(u32::MAX);
        }
        if counts.gave_up > 0 {
            let warning = format!(
                "{} of {} negatives were not found within max_draws: `report` says what became of the proposals",
                counts.gave_up,
                counts.gave_up + counts.negatives()
            );
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &std::ffi::CString::new(warning)?, 2)?;
        }
        Ok(Batches::new(Held { schema, batches }, Some(json!(counts))))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        slf.get().given.reduce(slf.as_any())
    }

    fn __repr__(&self) -> String {
        let (triples, entities) = (self.graph.triples().len(), self.graph.entities().len());
        format!("<engraft.Negatives of {triples} triples over {entities} entities>")
    }
}

/// A negative of a row.
type Drawn = (u32, Negative);

impl Negatives {
    /// The negatives of triples next to each other, of which the first is row `first`.
    fn some(&self, epoch: u64, first: u32, triples: &[Triple]) -> (Vec<Drawn>, Counts) {
        let (mut drawn, mut counts) = (Vec::new(), Counts::default());
        for (row, triple) in (first..).zip(triples) {
            let negatives = self.sampler.negatives_of(*triple, epoch, row, &mut counts);
            drawn.extend(negatives.into_iter().map(|negative| (row, negative)));
        }
        (drawn, counts)
    }

    fn batch<'d>(&self, schema: &SchemaRef, drawn: impl Iterator<Item = &'d Drawn>) -> PyResult<RecordBatch> {
        let mut rows = Int64Builder::new();
        let mut texts: [StringBuilder; 7] = std::array::from_fn(|_| StringBuilder::new());
        for (row, negative) in drawn {
            rows.append_value(i64::from(*row));
            let [subject, relation, object] = negative.triple;
            let entity = |id| self.graph.entities().get(EntityId(id).index());
            let relation = self.graph.relations().get(RelationId(relation).index());
            let (Some(subject), Some(relation), Some(object)) = (entity(subject), relation, entity(object))
            else {
                return Err(PyValueError::new_err("a negative names what the graph lacks; report it"));
            };
            let keys = [&subject.key, &relation.key, &object.key];
            let names = [&subject.text, &relation.text, &object.text];
            let strings = keys.into_iter().chain(names).map(String::as_str).chain([negative.slot.name()]);
            texts.iter_mut().zip(strings).for_each(|(column, text)| column.append_value(text));
        }
        let texts = texts.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        table::batch(schema, std::iter::once(Arc::new(rows.finish()) as ArrayRef).chain(texts).collect())
    }
}

fn schema() -> SchemaRef {
    let texts = COLUMNS.map(str::to_owned).into_iter().chain(COLUMNS.map(|name| format!("{name}_text")));
    let texts = texts.chain(["replaced".to_owned()]).map(|name| Field::new(name, DataType::Utf8, false));
    let row = Field::new("row", DataType::Int64, false);
    Arc::new(Schema::new(std::iter::once(row).chain(texts).collect::<Vec<_>>()))
}

/// The settings of a draw that are the caller's to choose.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    sampler: Option<Corruption>,
    slots: Option<Vec<Slot>>,
    same: Option<Same>,
    max_draws: Option<u32>,
}

fn config(given: Map<String, Value>, per: u32) -> PyResult<Config> {
    let Settings { sampler, slots, same, max_draws } = options::settings("Negatives()", given)?;
    let standard = Config::default();
    let config = Config {
        sampler: sampler.unwrap_or(standard.sampler),
        slots: slots.unwrap_or(standard.slots),
        same: same.unwrap_or(standard.same),
        max_draws: max_draws.unwrap_or(standard.max_draws),
        per_triple: per,
        filter: Filter::All,
        draw: Draw::Fresh,
    };
    if !(1..=MOST).contains(&per) {
        return Err(unfit("per", per, &format!("from 1 to {MOST}")));
    }
    config.check().map_err(|error| options::invalid("Negatives()", &error))?;
    Ok(config)
}
