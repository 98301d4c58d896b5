//! Puts a graph on the disk. Knows the columns, no source.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Float64Array, ListArray, RecordBatch, StringArray, StructArray, UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType};

use super::graph::Graph;
use super::id::dense;
use super::parquet_file::{self, Writer};
use super::row::{Entity, Origin, Relation, SemanticType};
use super::schema::{Table, item, origin_fields, type_fields};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 18;

/// Rows that are turned into columns at a time.
const BATCH_ROWS: usize = 1 << 16;

/// Why a graph could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be written; those before it are whole.
    #[error(transparent)]
    File(#[from] parquet_file::Error),
    /// Rows did not fit the columns.
    #[error("{}: rows do not fit the columns: {problem}", file.display())]
    Columns {
        /// The file.
        file: PathBuf,
        /// What does not fit.
        problem: ArrowError,
    },
}

impl Graph {
    /// Writes `entities.parquet`, `relations.parquet` and `triples.parquet` into `folder`, each whole, in this order. Equal graphs
    /// give equal bytes.
    ///
    /// # Errors
    /// When the folder is missing or the disk refuses.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        write(folder, Table::Entities, self.entities().len(), |rows| {
            entities(&self.entities()[rows.clone()], rows)
        })?;
        write(folder, Table::Relations, self.relations().len(), |rows| {
            relations(&self.relations()[rows.clone()], rows)
        })?;
        write(folder, Table::Triples, self.triples().len(), |rows| triples(self, rows))
    }
}

type Rows = std::ops::Range<usize>;

fn write(
    folder: &Path,
    table: Table,
    rows: usize,
    columns: impl Fn(Rows) -> Result<Vec<ArrayRef>, ArrowError>,
) -> Result<(), Error> {
    let file = folder.join(table.file());
    let mut writer = Writer::create(&file, table.columns(), GROUP_ROWS, &table.footer())?;
    for start in (0..rows).step_by(BATCH_ROWS) {
        let batch = columns(start..rows.min(start + BATCH_ROWS))
            .and_then(|columns| RecordBatch::try_new(table.columns(), columns))
            .map_err(|problem| Error::Columns { file: file.clone(), problem })?;
        writer.write(&batch)?;
    }
    writer.finish()?;
    Ok(())
}

fn entities(entities: &[Entity], rows: Rows) -> Result<Vec<ArrayRef>, ArrowError> {
    let types: Vec<&SemanticType> = entities.iter().flat_map(|entity| &entity.types).collect();
    let code: StringArray = types.iter().map(|t| t.code.as_deref()).collect();
    let name = StringArray::from_iter_values(types.iter().map(|t| &t.name));
    let types = StructArray::try_new(type_fields(), vec![Arc::new(code), Arc::new(name)], None)?;
    Ok(vec![
        ids(rows),
        Arc::new(StringArray::from_iter_values(entities.iter().map(|entity| &entity.key))),
        Arc::new(StringArray::from_iter_values(entities.iter().map(|entity| &entity.text))),
        list(entities.iter().map(|entity| entity.types.len()), Arc::new(types))?,
        names(entities.iter().map(|entity| &entity.origins))?,
    ])
}

fn relations(relations: &[Relation], rows: Rows) -> Result<Vec<ArrayRef>, ArrowError> {
    Ok(vec![
        ids(rows),
        Arc::new(StringArray::from_iter_values(relations.iter().map(|relation| &relation.key))),
        Arc::new(StringArray::from_iter_values(relations.iter().map(|relation| &relation.text))),
        names(relations.iter().map(|relation| &relation.origins))?,
    ])
}

fn triples(graph: &Graph, rows: Rows) -> Result<Vec<ArrayRef>, ArrowError> {
    let triples = &graph.triples()[rows.clone()];
    let origins: Vec<&Origin> = rows.clone().flat_map(|row| graph.origins(row)).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(origins.iter().map(|origin| &origin.source))),
        Arc::new(origins.iter().map(|origin| origin.vocabulary.as_deref()).collect::<StringArray>()),
        Arc::new(origins.iter().map(|origin| origin.weight).collect::<Float64Array>()),
        Arc::new(origins.iter().map(|origin| origin.count).collect::<UInt32Array>()),
    ];
    let origins = StructArray::try_new(origin_fields(), columns, None)?;
    Ok(vec![
        Arc::new(UInt32Array::from_iter_values(triples.iter().map(|triple| triple.subject.0))),
        Arc::new(UInt32Array::from_iter_values(triples.iter().map(|triple| triple.relation.0))),
        Arc::new(UInt32Array::from_iter_values(triples.iter().map(|triple| triple.object.0))),
        list(rows.map(|row| graph.origins(row).len()), Arc::new(origins))?,
    ])
}

fn ids(rows: Rows) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(rows.map(dense)))
}

fn names<'a>(lists: impl Iterator<Item = &'a Vec<String>> + Clone) -> Result<ArrayRef, ArrowError> {
    let values = StringArray::from_iter_values(lists.clone().flatten());
    list(lists.map(Vec::len), Arc::new(values))
}

fn list(lengths: impl Iterator<Item = usize>, values: ArrayRef) -> Result<ArrayRef, ArrowError> {
    let kind: DataType = values.data_type().clone();
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(Arc::new(item(kind)), offsets, values, None)?))
}
