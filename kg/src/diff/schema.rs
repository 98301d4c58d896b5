//! The columns of a diff's list of entities on disk.
//!
//! | file | column | type | meaning |
//! |---|---|---|---|
//! | `moved.parquet` | `change` | utf8 | `renumbered`, `renamed`, `rekeyed`, `merged`, `removed` or `added` |
//! | | `old_id`, `new_id` | uint32 or null | row in the old and in the new `entities.parquet` |
//! | | `old_key`, `new_key` | utf8 or null | identity in the old and in the new table |
//! | | `old_text`, `new_text` | utf8 or null | preferred name in the old and in the new table |
//!
//! Rows are sorted by `old_id`, then `change` in the order above; the added ones come last, by `new_id`. The footer has
//! `engraft.format` = [`FORMAT`] and `engraft.version` = [`VERSION`].

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// Name of the format in the footer.
pub const FORMAT: &str = "engraft-diff";

/// Version of the columns. It rises when a reader of the old version would misread the new one.
pub const VERSION: u32 = 1;

/// Name of the file in its folder.
pub const FILE: &str = "moved.parquet";

/// The columns.
#[must_use]
pub fn columns() -> SchemaRef {
    let id = |name| Field::new(name, DataType::UInt32, true);
    let text = |name| Field::new(name, DataType::Utf8, true);
    Arc::new(Schema::new(vec![
        Field::new("change", DataType::Utf8, false),
        id("old_id"),
        id("new_id"),
        text("old_key"),
        text("new_key"),
        text("old_text"),
        text("new_text"),
    ]))
}
