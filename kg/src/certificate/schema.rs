//! The columns of the file of violations.
//!
//! | file | column | type | meaning |
//! |---|---|---|---|
//! | `violations.parquet` | `triple` | uint32 | row in `triples.parquet`; rows are sorted by it, then by kind in the order below |
//! | | `relation` | utf8 | key of its relation |
//! | | `subject` | utf8 | key of its subject |
//! | | `object` | utf8 | key of its object |
//! | | `kind` | utf8 | `contradicted`, `self_loop`, `reversed` or `rare`, see [`super::violation::Kind`] |
//!
//! The footer has `engraft.format` = [`FORMAT`] and `engraft.version` = [`VERSION`].

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// Name of the format in the footer and in `certificate.json`.
pub const FORMAT: &str = "engraft-certificate";

/// Version of the columns and of the report's keys. It rises when a reader of the old version would misread the new one.
pub const VERSION: u32 = 1;

/// Name of the file of violations.
pub const FILE: &str = "violations.parquet";

/// The columns.
#[must_use]
pub fn columns() -> SchemaRef {
    let text = |name| Field::new(name, DataType::Utf8, false);
    let triple = Field::new("triple", DataType::UInt32, false);
    Arc::new(Schema::new(vec![triple, text("relation"), text("subject"), text("object"), text("kind")]))
}

/// The footer's key and value pairs.
#[must_use]
pub fn footer() -> [(&'static str, String); 2] {
    [("engraft.format", FORMAT.to_owned()), ("engraft.version", VERSION.to_string())]
}
