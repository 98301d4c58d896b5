//! The columns of a task as other formats name their types. Knows no row.

use arrow_schema::{DataType, FieldRef};

use super::super::schema::columns;
use super::Error;
use crate::builder::Form;
use crate::task::Task;

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    /// Its name.
    pub(super) name: String,
    /// Type of a value, or of the values of a list.
    pub(super) kind: Kind,
    /// How many values a row has.
    pub(super) shape: Shape,
    /// Whether it may be null.
    pub(super) nullable: bool,
    /// What it means.
    pub(super) meaning: String,
}

/// How many values a row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One.
    Value,
    /// Any number.
    List,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// In `datasets`.
    pub(super) datasets: &'static str,
    /// In Croissant.
    pub(super) croissant: &'static str,
    /// Bytes of a value in memory; of a text those of its offset alone.
    pub(super) width: u64,
}

impl Column {
    /// Its type for people.
    pub(super) fn shown(&self) -> String {
        let list = if self.shape == Shape::List { "list of " } else { "" };
        let null = if self.nullable { " or null" } else { "" };
        format!("{list}{}{null}", self.kind.datasets)
    }

    /// Bytes that `rows` rows with `tokens` tokens take in memory.
    pub(super) fn bytes(&self, rows: u64, tokens: u64) -> u64 {
        match self.shape {
            Shape::Value => rows * self.kind.width,
            Shape::List => (rows + 1) * 4 + tokens * self.kind.width,
        }
    }
}

/// The columns of `task`, in order.
///
/// # Errors
/// When one is of a type without a name here.
pub(super) fn all(task: Task, form: Form) -> Result<Vec<Column>, Error> {
    columns(task, form).fields().iter().map(column).collect()
}

fn column(field: &FieldRef) -> Result<Column, Error> {
    let (shape, of) = match field.data_type() {
        DataType::List(of) => (Shape::List, of.data_type()),
        of => (Shape::Value, of),
    };
    let (datasets, croissant, width) = match of {
        DataType::Int8 => ("int8", "cr:Int8", 1),
        DataType::Int32 => ("int32", "cr:Int32", 4),
        DataType::UInt32 => ("uint32", "cr:UInt32", 4),
        DataType::Utf8 => ("string", "sc:Text", 4),
        found => return Err(Error::Type { name: field.name().clone(), found: found.to_string() }),
    };
    let meaning = field.metadata().get("meaning").cloned().unwrap_or_default();
    let kind = Kind { datasets, croissant, width };
    Ok(Column { name: field.name().clone(), kind, shape, nullable: field.is_nullable(), meaning })
}
