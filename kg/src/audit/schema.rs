//! The columns of an audit's leaks on disk.
//!
//! | file | column | type | meaning |
//! |---|---|---|---|
//! | `leaks.parquet` | `held` | uint32 | row in `triples.parquet` of the held-out triple; rows are sorted by all columns in order |
//! | | `held_part` | utf8 | `valid` or `test` |
//! | | `shown_part` | utf8 | the part that gives it away: `train` or `valid` |
//! | | `kind` | utf8 | the plainest of `exact`, `symmetric`, `inverse`, `same_text`, `same_pair` |
//! | | `shown` | uint32 | a row of that part and kind |
//! | | `times` | uint32 | how many rows of that part give it away |
//!
//! The footer has `engraft.format` = [`FORMAT`] and `engraft.version` = [`VERSION`].

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// Name of the format in the footer.
pub const FORMAT: &str = "engraft-leaks";

/// Version of the columns. It rises when a reader of the old version would misread the new one.
pub const VERSION: u32 = 1;

/// Name of the file in its folder.
pub const FILE: &str = "leaks.parquet";

/// The columns.
#[must_use]
pub fn columns() -> SchemaRef {
    let number = |name| Field::new(name, DataType::UInt32, false);
    let word = |name| Field::new(name, DataType::Utf8, false);
    Arc::new(Schema::new(vec![
        number("held"),
        word("held_part"),
        word("shown_part"),
        word("kind"),
        number("shown"),
        number("times"),
    ]))
}
