//! Rows gathered column by column until they are a row group.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{Int8Builder, Int32Builder, ListBuilder, StringBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType};
use batch::task::{Answer, Task};

use super::schema::{columns, has_slots, list_item};
use crate::builder::{Form, Sample};
use crate::negative::{Counts, Negative};
use crate::task::{has_negatives, spec};

/// The rows of one row group of a task.
#[derive(Debug)]
pub struct Rows {
    task: Task,
    form: Form,
    /// A column each of where rows come from.
    origin: Vec<UInt32Builder>,
    input_ids: ListBuilder<Int32Builder>,
    attention_mask: ListBuilder<Int8Builder>,
    token_type_ids: ListBuilder<Int8Builder>,
    labels: ListBuilder<Int32Builder>,
    label: Int32Builder,
    provenance: Provenance,
    /// Counts of the negatives that were drawn for these rows.
    pub counts: Counts,
    /// How many rows have each length in tokens.
    pub lengths: BTreeMap<usize, u64>,
}

#[derive(Debug)]
struct Provenance {
    slot: StringBuilder,
    sampler: StringBuilder,
    donor: UInt32Builder,
    verdict: StringBuilder,
}

impl Rows {
    /// No rows so far.
    #[must_use]
    pub fn new(task: Task, form: Form) -> Self {
        let int32 = || ListBuilder::new(Int32Builder::new()).with_field(list_item(DataType::Int32));
        let int8 = || ListBuilder::new(Int8Builder::new()).with_field(list_item(DataType::Int8));
        let text = StringBuilder::new;
        let provenance =
            Provenance { slot: text(), sampler: text(), donor: UInt32Builder::new(), verdict: text() };
        Self {
            task,
            form,
            origin: spec(task).of.origin().iter().map(|_| UInt32Builder::new()).collect(),
            input_ids: int32(),
            attention_mask: int8(),
            token_type_ids: int8(),
            labels: int32(),
            label: Int32Builder::new(),
            provenance,
            counts: Counts::default(),
            lengths: BTreeMap::new(),
        }
    }

    /// Adds a row. `origin` has a number for each column of the task that says where rows come from; `negative` says how it came about if
    /// it is a corrupted triple, and which row of the triple table gave the column.
    pub fn push(&mut self, origin: &[u32], sample: &Sample, negative: Option<(&Negative, Option<u32>)>) {
        self.origin.iter_mut().zip(origin).for_each(|(column, &number)| column.append_value(number));
        // Ids come from vocabularies of far fewer than 2^31 entries; segments and attention are 0 or 1.
        let byte = |&number: &u32| i8::try_from(number).ok();
        self.input_ids.append_value(sample.input_ids.iter().map(|&id| Some(id.cast_signed())));
        self.attention_mask.append_value(sample.attention.iter().map(byte));
        self.token_type_ids.append_value(sample.token_type_ids.iter().map(byte));
        match self.task.answer() {
            Answer::Tokens => self.labels.append_value(sample.labels.iter().map(|&l| i32::try_from(l).ok())),
            Answer::Class => self.label.append_option(sample.class.map(u32::cast_signed)),
        }
        if has_negatives(self.task) {
            let Provenance { slot, sampler, donor, verdict } = &mut self.provenance;
            slot.append_option(negative.map(|(negative, _)| negative.slot.name()));
            sampler.append_option(negative.map(|(negative, _)| negative.sampler.name()));
            donor.append_option(negative.and_then(|(_, donor)| donor));
            verdict.append_option(negative.map(|(negative, _)| negative.verdict.name()));
        }
        *self.lengths.entry(sample.input_ids.len()).or_default() += 1;
    }

    /// The rows as one batch of the task's schema.
    ///
    /// # Errors
    /// When a row lacks a column.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let origin = self.origin.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        let mut arrays: Vec<ArrayRef> = origin.collect();
        arrays.push(Arc::new(self.input_ids.finish()));
        let attention = self.attention_mask.finish();
        if has_slots(self.task, self.form) {
            arrays.push(Arc::new(attention));
        }
        arrays.push(Arc::new(self.token_type_ids.finish()));
        match self.task.answer() {
            Answer::Tokens => arrays.push(Arc::new(self.labels.finish())),
            Answer::Class => arrays.push(Arc::new(self.label.finish())),
        }
        if has_negatives(self.task) {
            let Provenance { slot, sampler, donor, verdict } = &mut self.provenance;
            arrays.push(Arc::new(slot.finish()));
            arrays.push(Arc::new(sampler.finish()));
            arrays.push(Arc::new(donor.finish()));
            arrays.push(Arc::new(verdict.finish()));
        }
        RecordBatch::try_new(columns(self.task, self.form), arrays)
    }
}
