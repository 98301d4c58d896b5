//! Rows of triples, of whatever table has them, as ids of a graph.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use kg::table::{Entity, Graph, Relation};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tasks::sample::{Slot, Triple};

use super::capsule::Arrays;
use super::negatives::COLUMNS;
use super::table;
use super::texts::Strings;

/// What the entities and relations of a graph are called.
#[derive(Clone, Copy)]
pub(crate) struct Names<'g> {
    entities: &'g [Entity],
    relations: &'g [Relation],
}

impl<'g> Names<'g> {
    pub(crate) fn of(graph: &'g Graph) -> Self {
        Self { entities: graph.entities(), relations: graph.relations() }
    }

    /// The id of a key; both tables are sorted by it.
    fn id(self, slot: Slot, key: &str) -> Option<u32> {
        let found = match slot {
            Slot::Relation => self.relations.binary_search_by(|of| of.key.as_str().cmp(key)),
            Slot::Subject | Slot::Object => self.entities.binary_search_by(|of| of.key.as_str().cmp(key)),
        };
        found.ok().and_then(|found| u32::try_from(found).ok())
    }

    fn first(self, slot: Slot) -> &'g str {
        let key = match slot {
            Slot::Relation => self.relations.first().map(|of| &of.key),
            Slot::Subject | Slot::Object => self.entities.first().map(|of| &of.key),
        };
        key.map_or("", String::as_str)
    }

    fn count(self, slot: Slot) -> usize {
        if slot == Slot::Relation { self.relations.len() } else { self.entities.len() }
    }
}

/// A table of triples that is being read.
pub(crate) struct Rows {
    arrays: Arrays,
    /// Where `subject`, `relation` and `object` stand.
    places: [usize; 3],
    chunk: Option<([Column; 3], usize)>,
}

/// A column of keys or of ids.
#[derive(Debug)]
enum Column {
    Keys(Strings),
    Ids(Vec<Option<i64>>),
}

impl Rows {
    /// Takes what speaks Arrow and has the three columns.
    ///
    /// # Errors
    /// When it is no table, or lacks one.
    pub(crate) fn new(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let expected = "a table with the columns subject, relation and object that has __arrow_c_stream__ or __arrow_c_array__ (of pyarrow, polars, DuckDB ...)";
        let found = given.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        let arrays = Arrays::of(given)?
            .ok_or_else(|| PyTypeError::new_err(format!("an object of type {found}: expected {expected}")))?;
        let DataType::Struct(fields) = &arrays.kind else {
            return Err(PyTypeError::new_err(format!("one column of {}: expected {expected}", arrays.kind)));
        };
        let mut places = [0; 3];
        for (place, name) in places.iter_mut().zip(COLUMNS) {
            (*place, _) = table::one_of(fields, Some(name))?;
        }
        Ok(Self { arrays, places, chunk: None })
    }

    /// The next triples, at most `most`, the first of which is row `first`; none behind the last row.
    ///
    /// # Errors
    /// When the source fails, or a row names what the graph does not have.
    pub(crate) fn group(
        &mut self,
        names: &Names<'_>,
        first: u32,
        most: usize,
    ) -> PyResult<Option<Vec<Triple>>> {
        let mut triples: Vec<Triple> = Vec::new();
        while triples.len() < most {
            let Some((columns, at)) = self.at_hand()? else { break };
            let end = columns[0].len().min(at + most - triples.len());
            for row in at..end {
                let number = u64::from(first) + triples.len() as u64;
                if number >= u64::from(u32::MAX) {
                    return Err(PyValueError::new_err("more rows than the 2^32 - 1 that a draw can number"));
                }
                let mut triple = [0; 3];
                for ((id, slot), column) in triple.iter_mut().zip(Slot::ALL).zip(&columns) {
                    *id = column.id(row, slot, *names).map_err(|problem| {
                        PyValueError::new_err(format!("row {number}, column {}: {problem}", slot.name()))
                    })?;
                }
                triples.push(triple);
            }
            self.chunk = Some((columns, end));
        }
        Ok(Some(triples).filter(|triples| !triples.is_empty()))
    }

    fn at_hand(&mut self) -> PyResult<Option<([Column; 3], usize)>> {
        loop {
            if let Some((columns, at)) = self.chunk.take().filter(|(columns, at)| *at < columns[0].len()) {
                return Ok(Some((columns, at)));
            }
            let Some(rows) = self.arrays.next().transpose()? else { return Ok(None) };
            let [subject, relation, object] = self.places.map(|place| table::child(&rows, place));
            let columns = [Column::new(&subject?)?, Column::new(&relation?)?, Column::new(&object?)?];
            self.chunk = Some((columns, 0));
        }
    }
}

impl Column {
    fn new(array: &ArrayRef) -> PyResult<Self> {
        let checked = array.to_data().validate_full();
        checked.map_err(|error| PyValueError::new_err(format!("a column of triples is damaged: {error}")))?;
        Ok(match array.data_type() {
            DataType::Int32 => {
                Self::Ids(array.as_primitive::<Int32Type>().iter().map(|id| id.map(i64::from)).collect())
            }
            DataType::UInt32 => {
                Self::Ids(array.as_primitive::<UInt32Type>().iter().map(|id| id.map(i64::from)).collect())
            }
            DataType::Int64 => Self::Ids(array.as_primitive::<Int64Type>().iter().collect()),
            DataType::UInt64 => {
                // What is too large for the other is no id.
                let ids = array.as_primitive::<UInt64Type>().iter();
                Self::Ids(ids.map(|id| id.map(|id| i64::try_from(id).unwrap_or(i64::MAX))).collect())
            }
            _ => Self::Keys(Strings::new(array)?),
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Keys(keys) => keys.len(),
            Self::Ids(ids) => ids.len(),
        }
    }

    /// The id of a row, or what is wrong with it.
    fn id(&self, row: usize, slot: Slot, names: Names<'_>) -> Result<u32, String> {
        let (what, one) =
            if slot == Slot::Relation { ("relation", "a relation") } else { ("entity", "an entity") };
        match self {
            Self::Keys(keys) => {
                let key = keys.get(row).ok_or_else(|| format!("null, expected the key of {one}"))?;
                let unknown = || {
                    format!(
                        "the graph has no {what} {key:?}: hand in rows of this graph, with keys such as {:?}",
                        names.first(slot)
                    )
                };
                names.id(slot, key).ok_or_else(unknown)
            }
            Self::Ids(ids) => {
                let id = ids.get(row).copied().flatten();
                let id = id.ok_or_else(|| format!("null, expected the id of {one}"))?;
                let known = u32::try_from(id).ok().filter(|id| (*id as usize) < names.count(slot));
                known.ok_or_else(|| {
                    format!("{id} is no id of {one}: expected a number below {}", names.count(slot))
                })
            }
        }
    }
}
