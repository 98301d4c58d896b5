//! Columns of tables: those of other libraries, and those that several kernels make.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StructArray, make_array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, SchemaRef};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The column of that name, or the only one.
///
/// # Errors
/// When there is none, or several and no name.
pub(crate) fn one_of<'f>(fields: &'f Fields, column: Option<&str>) -> PyResult<(usize, &'f Arc<Field>)> {
    match column {
        Some(name) => fields.find(name).ok_or_else(|| no_column(fields, name)),
        None => match fields.len() {
            1 => Ok((0, &fields[0])),
            count => {
                let problem =
                    format!("a table of {count} columns: expected column=NAME, one of {}", names(fields));
                Err(PyValueError::new_err(problem))
            }
        },
    }
}

/// That a table lacks a column.
pub(crate) fn no_column(fields: &Fields, name: &str) -> PyErr {
    PyValueError::new_err(format!("the table has no column {name:?}: it has {}", names(fields)))
}

fn names(fields: &Fields) -> String {
    fields.iter().map(|field| format!("{:?}", field.name())).collect::<Vec<_>>().join(", ")
}

/// A column of rows. Where a row is null as a whole, so is what it has in the column.
///
/// # Errors
/// When the column does not fit its rows.
pub(crate) fn child(rows: &ArrayRef, column: usize) -> PyResult<ArrayRef> {
    let rows: &StructArray = rows.as_struct();
    let child = rows.column(column);
    let nulls = rows.nulls().filter(|nulls| nulls.null_count() > 0 && *child.data_type() != DataType::Null);
    let Some(nulls) = nulls else { return Ok(Arc::clone(child)) };
    let data = child.to_data();
    let nulls = NullBuffer::union(data.nulls(), Some(nulls));
    let data = data.into_builder().nulls(nulls).build();
    let unfit = |error| PyValueError::new_err(format!("column {column} of the table is damaged: {error}"));
    data.map(make_array).map_err(unfit)
}

/// A batch of columns that belong together.
///
/// # Errors
/// When they do not, which would be a fault of ours.
pub(crate) fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>) -> PyResult<RecordBatch> {
    let batch = RecordBatch::try_new(Arc::clone(schema), columns);
    batch.map_err(|error| apart(&error))
}

pub(crate) fn apart(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(format!("columns do not go together: {error}; report it"))
}

/// Lists of structures: so many for each row.
///
/// # Errors
/// When the columns of the structures do not belong together.
pub(crate) fn lists(
    lengths: &[usize],
    fields: Fields,
    columns: Vec<ArrayRef>,
) -> Result<ArrayRef, ArrowError> {
    let item = Arc::new(Field::new("item", DataType::Struct(fields.clone()), false));
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths.iter().copied());
    let values = StructArray::try_new(fields, columns, None)?;
    Ok(Arc::new(ListArray::try_new(item, offsets, Arc::new(values), None)?))
}
