//! Samples gathered column by column until they are a row group.

use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::{Float32Type, Int8Type, Int32Type, UInt16Type, UInt32Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;
use batch::maps::sample::Row;

use super::schema::columns;
use crate::shard::lists::ToLists;

/// The rows of one row group.
#[derive(Debug)]
pub struct Rows {
    document: PrimitiveBuilder<UInt32Type>,
    chunk: PrimitiveBuilder<UInt32Type>,
    real: PrimitiveBuilder<UInt16Type>,
    auxiliary: PrimitiveBuilder<UInt16Type>,
    cut: PrimitiveBuilder<UInt32Type>,
    input_ids: ToLists<Int32Type>,
    token_types: ToLists<Int8Type>,
    /// Words, entities, phrases, types.
    numbers: [ToLists<UInt16Type>; 4],
    terms: [ToLists<UInt16Type>; 2],
    relevance: ToLists<Float32Type>,
    graph: [ToLists<UInt16Type>; 2],
}

impl Rows {
    /// No rows so far.
    #[must_use]
    pub fn new() -> Self {
        Self {
            document: PrimitiveBuilder::new(),
            chunk: PrimitiveBuilder::new(),
            real: PrimitiveBuilder::new(),
            auxiliary: PrimitiveBuilder::new(),
            cut: PrimitiveBuilder::new(),
            input_ids: ToLists::new(),
            token_types: ToLists::new(),
            numbers: std::array::from_fn(|_| ToLists::new()),
            terms: std::array::from_fn(|_| ToLists::new()),
            relevance: ToLists::new(),
            graph: std::array::from_fn(|_| ToLists::new()),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: &Row<'_>) {
        self.document.append_value(row.document);
        self.chunk.append_value(row.chunk);
        self.real.append_value(row.real);
        self.auxiliary.append_value(row.auxiliary);
        self.cut.append_value(row.cut);
        self.input_ids.push(row.input_ids);
        self.token_types.push(row.token_types);
        let numbers = [row.words, row.entities, row.phrases, row.types];
        self.numbers.iter_mut().zip(numbers).for_each(|(column, values)| column.push(values));
        let ((first, second), relevance) = row.terms;
        self.terms.iter_mut().zip([first, second]).for_each(|(column, values)| column.push(values));
        self.relevance.push(relevance);
        let (first, second) = row.graph;
        self.graph.iter_mut().zip([first, second]).for_each(|(column, values)| column.push(values));
    }

    /// The rows as one batch.
    ///
    /// # Errors
    /// When they do not fit the schema.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(self.document.finish()),
            Arc::new(self.chunk.finish()),
            Arc::new(self.real.finish()),
            Arc::new(self.auxiliary.finish()),
            Arc::new(self.cut.finish()),
            self.input_ids.finish(),
            self.token_types.finish(),
        ];
        arrays.extend(self.numbers.iter_mut().chain(&mut self.terms).map(ToLists::finish));
        arrays.push(self.relevance.finish());
        arrays.extend(self.graph.iter_mut().map(ToLists::finish));
        RecordBatch::try_new(columns(), arrays)
    }
}

impl Default for Rows {
    fn default() -> Self {
        Self::new()
    }
}
