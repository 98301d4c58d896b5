//! Puts a graph on the disk.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, ListArray, StringArray, StructArray, UInt8Array, UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType};

use super::graph::Graph;
use super::id::dense;
use super::parquet_file::{Error, Writer};
use super::row::{Direction, Entity, Negative, Origin, Relation, SemanticType, Term, Triple};
use super::schema::{Table, inverse_fields, item, origin_fields, type_fields};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 18;

/// Rows that are turned into columns at a time.
const BATCH_ROWS: usize = 1 << 16;

/// Turns rows into the columns of a table; `first` is the number of the first row.
type Columns<T> = fn(rows: &[T], first: usize) -> Result<Vec<ArrayRef>, ArrowError>;

/// A file of one table in the making; rows wait until there is a batch of them.
pub(crate) struct Sink<T> {
    writer: Writer,
    columns: Columns<T>,
    waiting: Vec<T>,
    written: usize,
}

impl<T> Sink<T> {
    fn new(folder: &Path, table: Table, columns: Columns<T>) -> Result<Self, Error> {
        let file = folder.join(table.file());
        let writer = Writer::create(&file, table.columns(), GROUP_ROWS, &table.footer())?;
        Ok(Self { writer, columns, waiting: Vec::new(), written: 0 })
    }

    pub(crate) fn push(&mut self, row: T) -> Result<(), Error> {
        self.waiting.push(row);
        if self.waiting.len() < BATCH_ROWS { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let columns = (self.columns)(&self.waiting, self.written);
        self.writer.write_columns(columns.map_err(|problem| self.writer.unfit(&problem))?)?;
        self.written += self.waiting.len();
        self.waiting.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(), Error> {
        if !self.waiting.is_empty() {
            self.flush()?;
        }
        self.writer.finish()
    }
}

/// A triple with its origins, for the disk.
pub(crate) type TripleRow<'a> = (Triple, Vec<(&'a Origin, Direction)>);

/// What became of a key, for the disk.
pub(crate) struct CrosswalkRow {
    pub(crate) key: String,
    pub(crate) means: String,
    pub(crate) entity: Option<u32>,
    pub(crate) how: &'static str,
    pub(crate) candidates: Vec<String>,
}

/// What took the place of a key that was given up, for the disk.
pub(crate) struct RetiredRow {
    pub(crate) key: String,
    pub(crate) means: String,
    pub(crate) entity: u32,
}

pub(crate) fn entities(folder: &Path) -> Result<Sink<Entity>, Error> {
    Sink::new(folder, Table::Entities, entity_columns)
}

pub(crate) fn terms(folder: &Path) -> Result<Sink<Term>, Error> {
    Sink::new(folder, Table::Terms, term_columns)
}

pub(crate) fn relations(folder: &Path) -> Result<Sink<Relation>, Error> {
    Sink::new(folder, Table::Relations, relation_columns)
}

pub(crate) fn triples<'a>(folder: &Path) -> Result<Sink<TripleRow<'a>>, Error> {
    Sink::new(folder, Table::Triples, triple_columns)
}

pub(crate) fn crosswalk(folder: &Path) -> Result<Sink<CrosswalkRow>, Error> {
    Sink::new(folder, Table::Crosswalk, crosswalk_columns)
}

pub(crate) fn negatives(folder: &Path) -> Result<Sink<Negative>, Error> {
    Sink::new(folder, Table::Negatives, negative_columns)
}

pub(crate) fn retired(folder: &Path) -> Result<Sink<RetiredRow>, Error> {
    Sink::new(folder, Table::Retired, retired_columns)
}

impl Graph {
    /// Writes `entities.parquet`, `relations.parquet` and `triples.parquet` into `folder`, each whole, in this order; terms,
    /// crosswalk, negatives and keys that were given up are no part of a graph in memory. Equal graphs give equal bytes.
    ///
    /// # Errors
    /// When the folder is missing or the disk refuses.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let mut sink = entities(folder)?;
        self.entities().iter().try_for_each(|entity| sink.push(entity.clone()))?;
        sink.finish()?;
        let mut sink = relations(folder)?;
        self.relations().iter().try_for_each(|relation| sink.push(relation.clone()))?;
        sink.finish()?;
        let mut sink = triples(folder)?;
        for (row, triple) in self.triples().iter().enumerate() {
            sink.push((*triple, self.origins(row).zip(self.directions(row)).collect()))?;
        }
        sink.finish()
    }
}

fn entity_columns(rows: &[Entity], first: usize) -> Result<Vec<ArrayRef>, ArrowError> {
    let types: Vec<&SemanticType> = rows.iter().flat_map(|entity| &entity.types).collect();
    let code: StringArray = types.iter().map(|t| t.code.as_deref()).collect();
    let name = StringArray::from_iter_values(types.iter().map(|t| &t.name));
    let types = StructArray::try_new(type_fields(), vec![Arc::new(code), Arc::new(name)], None)?;
    Ok(vec![
        ids(first, rows.len()),
        texts(rows.iter().map(|entity| &entity.key)),
        texts(rows.iter().map(|entity| &entity.text)),
        levels(rows.iter().map(|entity| entity.level)),
        list(rows.iter().map(|entity| entity.types.len()), Arc::new(types))?,
        names(rows.iter().map(|entity| &entity.same_as))?,
        names(rows.iter().map(|entity| &entity.origins))?,
    ])
}

fn term_columns(rows: &[Term], _first: usize) -> Result<Vec<ArrayRef>, ArrowError> {
    let origins = || rows.iter().map(|term| &term.origin);
    Ok(vec![
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|term| term.entity.0))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|term| term.kind.name()))),
        texts(rows.iter().map(|term| &term.text)),
        texts(origins().map(|origin| &origin.source)),
        Arc::new(origins().map(|origin| origin.vocabulary.as_deref()).collect::<StringArray>()),
        Arc::new(origins().map(|origin| origin.language.as_deref()).collect::<StringArray>()),
        levels(origins().map(|origin| origin.level)),
    ])
}

fn relation_columns(rows: &[Relation], first: usize) -> Result<Vec<ArrayRef>, ArrowError> {
    let inverses = || rows.iter().flat_map(|relation| &relation.inverses);
    let (keys, words) = (texts(inverses().map(|one| &one.key)), texts(inverses().map(|one| &one.text)));
    let values = StructArray::try_new(inverse_fields(), vec![keys, words], None)?;
    let symmetric: Vec<bool> = rows.iter().map(|relation| relation.symmetric).collect();
    Ok(vec![
        ids(first, rows.len()),
        texts(rows.iter().map(|relation| &relation.key)),
        texts(rows.iter().map(|relation| &relation.text)),
        Arc::new(rows.iter().map(|relation| relation.inverse.as_deref()).collect::<StringArray>()),
        list(rows.iter().map(|relation| relation.inverses.len()), Arc::new(values))?,
        Arc::new(BooleanArray::from(symmetric)),
        names(rows.iter().map(|relation| &relation.origins))?,
    ])
}

fn triple_columns(rows: &[TripleRow<'_>], _first: usize) -> Result<Vec<ArrayRef>, ArrowError> {
    let origins = || rows.iter().flat_map(|(_, origins)| origins);
    let directions = origins().map(|(_, direction)| direction.name());
    let columns: Vec<ArrayRef> = vec![
        texts(origins().map(|(origin, _)| &origin.source)),
        Arc::new(origins().map(|(origin, _)| origin.vocabulary.as_deref()).collect::<StringArray>()),
        Arc::new(origins().map(|(origin, _)| origin.weight).collect::<Float64Array>()),
        Arc::new(origins().map(|(origin, _)| origin.count).collect::<UInt32Array>()),
        levels(origins().map(|(origin, _)| origin.level)),
        Arc::new(StringArray::from_iter_values(directions)),
    ];
    let values = StructArray::try_new(origin_fields(), columns, None)?;
    Ok(vec![
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|(triple, _)| triple.subject.0))),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|(triple, _)| triple.relation.0))),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|(triple, _)| triple.object.0))),
        list(rows.iter().map(|(_, origins)| origins.len()), Arc::new(values))?,
    ])
}

fn crosswalk_columns(rows: &[CrosswalkRow], _first: usize) -> Result<Vec<ArrayRef>, ArrowError> {
    Ok(vec![
        texts(rows.iter().map(|row| &row.key)),
        texts(rows.iter().map(|row| &row.means)),
        Arc::new(rows.iter().map(|row| row.entity).collect::<UInt32Array>()),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.how))),
        names(rows.iter().map(|row| &row.candidates))?,
    ])
}

fn negative_columns(rows: &[Negative], _first: usize) -> Result<Vec<ArrayRef>, ArrowError> {
    let keys = (0..3).map(|end| texts(rows.iter().map(move |row| &row.keys[end])));
    let words = (0..3).map(|end| texts(rows.iter().map(move |row| &row.texts[end])));
    let parts: StringArray = rows.iter().map(|row| row.part.as_deref()).collect();
    let origins: [ArrayRef; 2] = [texts(rows.iter().map(|row| &row.source)), Arc::new(parts)];
    Ok(keys.chain(words).chain(origins).collect())
}

fn retired_columns(rows: &[RetiredRow], _first: usize) -> Result<Vec<ArrayRef>, ArrowError> {
    Ok(vec![
        texts(rows.iter().map(|row| &row.key)),
        texts(rows.iter().map(|row| &row.means)),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.entity))),
    ])
}

fn ids(first: usize, rows: usize) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values((first..first + rows).map(dense)))
}

fn texts<'a>(texts: impl Iterator<Item = &'a String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(texts))
}

fn levels(levels: impl Iterator<Item = Option<u8>>) -> ArrayRef {
    Arc::new(levels.collect::<UInt8Array>())
}

fn names<'a>(lists: impl Iterator<Item = &'a Vec<String>> + Clone) -> Result<ArrayRef, ArrowError> {
    list(lists.clone().map(Vec::len), texts(lists.flatten()))
}

pub(super) fn list(lengths: impl Iterator<Item = usize>, values: ArrayRef) -> Result<ArrayRef, ArrowError> {
    let kind: DataType = values.data_type().clone();
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(Arc::new(item(kind)), offsets, values, None)?))
}
