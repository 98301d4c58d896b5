//! Columns of lists without nulls, written and read.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, PrimitiveBuilder};
use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, ArrowPrimitiveType, ListArray, PrimitiveArray, RecordBatch};

use super::schema::list_item;

/// A column in the making.
#[derive(Debug)]
pub(crate) struct ToLists<T: ArrowPrimitiveType>(ListBuilder<PrimitiveBuilder<T>>);

impl<T: ArrowPrimitiveType> ToLists<T> {
    pub(crate) fn new() -> Self {
        Self(ListBuilder::new(PrimitiveBuilder::new()).with_field(list_item(T::DATA_TYPE)))
    }

    /// Appends a row.
    pub(crate) fn push(&mut self, values: &[T::Native]) {
        self.0.values().append_slice(values);
        self.0.append(true);
    }

    /// Appends a row.
    pub(crate) fn extend(&mut self, values: impl Iterator<Item = T::Native>) {
        self.0.values().extend(values.map(Some));
        self.0.append(true);
    }

    /// The rows so far, which are gone then.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// A column that was read.
#[derive(Debug)]
pub(crate) struct Lists<T: ArrowPrimitiveType> {
    lists: ListArray,
    values: PrimitiveArray<T>,
}

impl<T: ArrowPrimitiveType> Lists<T> {
    /// The column `name`, if it is there and of this type.
    pub(crate) fn new(batch: &RecordBatch, name: &str) -> Option<Self> {
        let lists = batch.column_by_name(name)?.as_list_opt::<i32>()?.clone();
        let values = lists.values().as_primitive_opt::<T>()?.clone();
        (lists.null_count() == 0 && values.null_count() == 0).then_some(Self { lists, values })
    }

    /// The values of a row.
    pub(crate) fn get(&self, row: usize) -> &[T::Native] {
        let place = |at: usize| usize::try_from(self.lists.value_offsets()[at]).unwrap_or_default();
        &self.values.values()[place(row)..place(row + 1)]
    }
}
