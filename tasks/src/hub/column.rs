//! The columns of a file as other formats name their types.

use arrow_schema::{DataType, FieldRef, Schema};

use crate::Error;

/// A column.
#[derive(Debug)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// Type of a value, or of the values of a list.
    pub(crate) kind: Kind,
    /// How many values a row has.
    pub(crate) shape: Shape,
    /// Whether it may be null.
    pub(crate) nullable: bool,
    /// What it means.
    pub(crate) meaning: String,
    /// What its classes are called, from 0; empty where it holds none.
    pub(crate) classes: Vec<String>,
}

/// How many values a row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One.
    Value,
    /// Any number.
    List,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    /// In `datasets`.
    pub(crate) datasets: &'static str,
    /// In Croissant.
    pub(crate) croissant: &'static str,
    /// Bytes of a value in memory; of a text those of its offset alone.
    pub(crate) width: u64,
}

impl Column {
    /// Its type for people.
    pub(crate) fn shown(&self) -> String {
        let list = if self.shape == Shape::List { "list of " } else { "" };
        let null = if self.nullable { " or null" } else { "" };
        format!("{list}{}{null}", self.kind.datasets)
    }

    /// Bytes that `rows` rows take in memory; in a list, with `values` values together.
    pub(crate) fn bytes(&self, rows: u64, values: u64) -> u64 {
        match self.shape {
            Shape::Value => rows * self.kind.width,
            Shape::List => (rows + 1) * 4 + values * self.kind.width,
        }
    }
}

/// The columns of `schema`, in order.
///
/// # Errors
/// When one is of a type without a name here.
pub(crate) fn all(schema: &Schema) -> Result<Vec<Column>, Error> {
    schema.fields().iter().map(column).collect()
}

fn column(field: &FieldRef) -> Result<Column, Error> {
    let (shape, of) = match field.data_type() {
        DataType::List(of) => (Shape::List, of.data_type()),
        of => (Shape::Value, of),
    };
    let (datasets, croissant, width) = match of {
        DataType::Int8 => ("int8", "cr:Int8", 1),
        DataType::Int32 => ("int32", "cr:Int32", 4),
        DataType::UInt16 => ("uint16", "cr:UInt16", 2),
        DataType::UInt32 => ("uint32", "cr:UInt32", 4),
        DataType::Float32 => ("float32", "cr:Float32", 4),
        DataType::Utf8 => ("string", "sc:Text", 4),
        found => {
            let name = field.name();
            return Err(Error::Unfit(format!(
                "column {name} is of type {found}, which has no name in Croissant or `datasets` here; add it to hub/column.rs"
            )));
        }
    };
    let meaning = field.metadata().get("meaning").cloned().unwrap_or_default();
    let kind = Kind { datasets, croissant, width };
    Ok(Column {
        name: field.name().clone(),
        kind,
        shape,
        nullable: field.is_nullable(),
        meaning,
        classes: vec![],
    })
}
