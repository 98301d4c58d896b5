//! Samples of maps as columns: those of `tasks::maps::schema`, of signed numbers, since Spark refuses others.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder, ListBuilder, PrimitiveBuilder};
use arrow_array::types::{Float32Type, Int8Type, Int32Type};
use arrow_array::{ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use batch::maps::sample::Sample;
use pyo3::prelude::*;
use tasks::maps::schema::columns;

use super::table;

/// Most rows of a batch, and most items of a column's lists, but for a single row: a column of lists holds less than 2^31.
const ROWS: usize = 1 << 16;
const ITEMS: usize = 1 << 27;

/// The columns: those of the stage's files, `document` as `row`.
pub(crate) fn schema() -> SchemaRef {
    let of_stage = columns();
    let field = |field: &Arc<Field>| {
        let name = if field.name() == "document" { "row" } else { field.name() };
        Field::new(name, signed(field.data_type()), false)
    };
    Arc::new(Schema::new(of_stage.fields().iter().map(field).collect::<Vec<_>>()))
}

/// A type that holds the same numbers, and is signed.
fn signed(kind: &DataType) -> DataType {
    match kind {
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::List(item) => DataType::List(item_of(signed(item.data_type()))),
        kind => kind.clone(),
    }
}

fn item_of(kind: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", kind, false))
}

/// A column of lists without nulls.
struct Lists<T: ArrowPrimitiveType>(ListBuilder<PrimitiveBuilder<T>>);

impl<T: ArrowPrimitiveType> Lists<T> {
    fn new() -> Self {
        Self(ListBuilder::new(PrimitiveBuilder::new()).with_field(item_of(T::DATA_TYPE)))
    }

    fn push(&mut self, values: impl IntoIterator<Item = T::Native>) {
        values.into_iter().for_each(|value| self.0.values().append_value(value));
        self.0.append(true);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

impl Lists<Int32Type> {
    fn widen(&mut self, values: &[u16]) {
        self.push(values.iter().map(|value| i32::from(*value)));
    }
}

/// Samples that become a batch.
pub(crate) struct Samples {
    rows: usize,
    /// Items of the longest column of lists, or more.
    items: usize,
    row: Int64Builder,
    chunk: Int64Builder,
    /// Tokens of the text, and of auxiliary terms.
    tokens: [Int32Builder; 2],
    cut: Int64Builder,
    input_ids: Lists<Int32Type>,
    token_types: Lists<Int8Type>,
    /// Words, entities, phrases, types, pairs of terms.
    numbers: [Lists<Int32Type>; 6],
    relevance: Lists<Float32Type>,
    graph: [Lists<Int32Type>; 2],
}

impl Samples {
    pub(crate) fn new() -> Self {
        Self {
            rows: 0,
            items: 0,
            row: Int64Builder::new(),
            chunk: Int64Builder::new(),
            tokens: std::array::from_fn(|_| Int32Builder::new()),
            cut: Int64Builder::new(),
            input_ids: Lists::new(),
            token_types: Lists::new(),
            numbers: std::array::from_fn(|_| Lists::new()),
            relevance: Lists::new(),
            graph: std::array::from_fn(|_| Lists::new()),
        }
    }

    /// Whether the batch is to end in front of a sample.
    pub(crate) fn is_full_for(&self, sample: &Sample) -> bool {
        self.rows == ROWS || (self.rows > 0 && self.items + longest(sample) > ITEMS)
    }

    /// Adds the sample of a row.
    pub(crate) fn push(&mut self, row: i64, sample: &Sample) {
        self.rows += 1;
        self.items += longest(sample);
        self.row.append_value(row);
        self.chunk.append_value(sample.chunk.into());
        self.tokens[0].append_value(sample.real.into());
        self.tokens[1].append_value(sample.auxiliary.into());
        self.cut.append_value(sample.cut.into());
        self.input_ids.push(sample.input_ids.iter().copied());
        self.token_types.push(sample.token_types.iter().copied());
        let Sample { words, entities, phrases, types, terms, graph, .. } = sample;
        let numbers = [words, entities, phrases, types, &terms.pairs.first, &terms.pairs.second];
        self.numbers.iter_mut().zip(numbers).for_each(|(column, numbers)| column.widen(numbers));
        self.relevance.push(terms.relevance.iter().copied());
        let pairs = [&graph.first, &graph.second];
        self.graph.iter_mut().zip(pairs).for_each(|(column, numbers)| column.widen(numbers));
    }

    /// The rows so far; the next ones begin anew.
    pub(crate) fn finish(&mut self, schema: &SchemaRef) -> PyResult<RecordBatch> {
        (self.rows, self.items) = (0, 0);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.row.finish()), Arc::new(self.chunk.finish())];
        columns.extend(self.tokens.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.push(Arc::new(self.cut.finish()));
        columns.extend([self.input_ids.finish(), self.token_types.finish()]);
        columns.extend(self.numbers.iter_mut().map(Lists::finish));
        columns.push(self.relevance.finish());
        columns.extend(self.graph.iter_mut().map(Lists::finish));
        table::batch(schema, columns)
    }
}

/// Items of a sample's longest list.
fn longest(sample: &Sample) -> usize {
    sample.input_ids.len().max(sample.terms.relevance.len()).max(sample.graph.first.len())
}
