//! A column of semantic types in the making: a list for each row, as `entities.parquet` has them.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, StructArray};
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
