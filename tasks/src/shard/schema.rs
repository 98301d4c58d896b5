//! The columns of a shard, per task.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use batch::task::{Answer, Material, Task};

use crate::builder::Form;
use crate::task::{has_negatives, spec};

/// The format's name in the index and in every file's footer.
pub const FORMAT: &str = "engraft-shards";

/// The version of columns and index. It rises when a reader of the old version would misread the new one.
pub const VERSION: u32 = 2;

/// The columns of `task`'s shards; docs/formats.md has them as a table.
#[must_use]
pub fn columns(task: Task, form: Form) -> SchemaRef {
    let origin = spec(task).of.origin().iter();
    let mut fields: Vec<Field> =
        origin.map(|column| field(column.name, DataType::UInt32, column.meaning)).collect();
    fields.push(field("input_ids", list(DataType::Int32), &inputs(task, form)));
    if has_slots(task, form) {
        let meaning = "1 for a token, 0 for the padding inside a slot";
        fields.push(field("attention_mask", list(DataType::Int8), meaning));
    }
    fields.push(field("token_type_ids", list(DataType::Int8), "segment of each token, 0 or 1"));
    match task.answer() {
        Answer::Tokens => fields.push(field("labels", list(DataType::Int32), spec(task).label)),
        Answer::Class => fields.push(field("label", DataType::Int32, spec(task).label)),
    }
    if has_negatives(task) {
        fields.extend(provenance());
    }
    Arc::new(Schema::new(fields))
}

/// How a negative came about; all null for stated triples.
fn provenance() -> [Field; 4] {
    let null = "null for stated triples";
    [
        field("slot", DataType::Utf8, &format!("column that was replaced; {null}")),
        field("sampler", DataType::Utf8, &format!("what proposed the negative; {null}")),
        field("donor", DataType::UInt32, "row in triples.parquet that gave the column; null where none did"),
        field("verdict", DataType::Utf8, &format!("what the filter said of the negative; {null}")),
    ]
    .map(|field| field.with_nullable(true))
}

/// Whether the columns of `task`'s rows have fixed places, so that there is padding inside a row. Texts have no columns.
pub(crate) fn has_slots(task: Task, form: Form) -> bool {
    task.made_of() != Material::Texts && form == Form::Slotted
}

fn inputs(task: Task, form: Form) -> String {
    let padding = if has_slots(task, form) { ", each column padded to its slot" } else { " without padding" };
    format!("token ids{padding}: {}", spec(task).of.row())
}

/// A column that is never null, with what it means.
pub(crate) fn field(name: &str, kind: DataType, meaning: &str) -> Field {
    Field::new(name, kind, false).with_metadata(HashMap::from([("meaning".to_owned(), meaning.to_owned())]))
}

/// A list of values that are never null.
pub(crate) fn list(kind: DataType) -> DataType {
    DataType::List(Arc::new(list_item(kind)))
}

/// The item of a list column; never null.
#[must_use]
pub fn list_item(kind: DataType) -> Field {
    Field::new("element", kind, false)
}
