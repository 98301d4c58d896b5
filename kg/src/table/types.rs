//! A column of semantic types in the making: a list for each row, as `entities.parquet` has them.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{ArrowError, DataType, Field};

use super::row::SemanticType;
use super::schema::{item, type_fields};
use super::write::list;

/// The column.
#[derive(Debug, Default)]
pub struct Types {
    lengths: Vec<usize>,
    codes: StringBuilder,
    names: StringBuilder,
}

impl Types {
    /// What it is of, under a name.
    #[must_use]
    pub fn field(name: &str) -> Field {
        Field::new(name, DataType::List(Arc::new(item(DataType::Struct(type_fields())))), false)
    }

    /// Appends a row.
    pub fn push(&mut self, types: &[SemanticType]) {
        self.lengths.push(types.len());
        for kind in types {
            self.codes.append_option(kind.code.as_deref());
            self.names.append_value(&kind.name);
        }
    }

    /// Appends a row of a column of such lists.
    ///
    /// # Errors
    /// When the column is another one.
    pub fn append(&mut self, column: &ArrayRef, row: usize) -> Result<(), ArrowError> {
        let other = || ArrowError::SchemaError("expected a list of types".to_owned());
        let types = column.as_list_opt::<i32>().ok_or_else(other)?.value(row);
        let [codes, names] = [0, 1].map(|part| types.as_struct_opt().map(|of| of.column(part)));
        let text = |part: Option<&ArrayRef>| part.and_then(|of| of.as_string_opt::<i32>()).cloned();
        let (codes, names) = (text(codes).ok_or_else(other)?, text(names).ok_or_else(other)?);
        self.lengths.push(names.len());
        for kind in 0..names.len() {
            self.codes.append_option(codes.is_valid(kind).then(|| codes.value(kind)));
            self.names.append_value(names.value(kind));
        }
        Ok(())
    }

    /// The rows so far; the next ones begin anew.
    ///
    /// # Errors
    /// When codes and names do not go together, which would be a fault of ours.
    pub fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let values: Vec<ArrayRef> = vec![Arc::new(self.codes.finish()), Arc::new(self.names.finish())];
        let types = StructArray::try_new(type_fields(), values, None)?;
        list(std::mem::take(&mut self.lengths).into_iter(), Arc::new(types))
    }
}
