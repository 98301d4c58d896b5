//! The columns of a shard, per task. Knows no row.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::task::Task;

/// The format's name in the index and in every file's footer.
pub const FORMAT: &str = "engraft-shards";

/// The version of columns and index. It rises when a reader of the old version would misread the new one.
pub const VERSION: u32 = 1;

/// The columns of `task`'s shards; docs/formats.md has them as a table.
#[must_use]
pub fn columns(task: Task) -> SchemaRef {
    let mut fields = vec![
        field("triple", DataType::UInt32, "row of the triple in triples.parquet"),
        field(
            "input_ids",
            list(DataType::Int32),
            "token ids without padding: [CLS] subject [SEP] relation [SEP] object [SEP]",
        ),
        field("token_type_ids", list(DataType::Int8), "segment of each token; all 0 in the packed layout"),
    ];
    match task {
        Task::Subject | Task::Object => {
            let meaning = "token to be predicted at each position, -100 where none is";
            fields.push(field("labels", list(DataType::Int32), meaning));
        }
        Task::Relation => {
            fields.push(field("label", DataType::Int32, "the relation, as its row in relations.parquet"));
        }
        Task::Triplet => {
            fields.push(field("label", DataType::Int32, "1 = stated, 0 = corrupted"));
            let slot = field("slot", DataType::Utf8, "column that was replaced; null for stated triples");
            fields.push(slot.with_nullable(true));
            let donor = field(
                "donor",
                DataType::UInt32,
                "row in triples.parquet that gave the column; null for stated triples",
            );
            fields.push(donor.with_nullable(true));
        }
    }
    Arc::new(Schema::new(fields))
}

fn field(name: &str, kind: DataType, meaning: &str) -> Field {
    Field::new(name, kind, false).with_metadata(HashMap::from([("meaning".to_owned(), meaning.to_owned())]))
}

fn list(kind: DataType) -> DataType {
    DataType::List(Arc::new(list_item(kind)))
}

/// The item of a list column; never null.
#[must_use]
pub fn list_item(kind: DataType) -> Field {
    Field::new("element", kind, false)
}
