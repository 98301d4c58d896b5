//! The columns of the three files on disk. Knows no row.
//!
//! | file | column | type | meaning |
//! |---|---|---|---|
//! | `entities.parquet` | `id` | uint32 | row number, from 0; rows are sorted by `key` |
//! | | `key` | utf8 | identity across sources |
//! | | `text` | utf8 | preferred name |
//! | | `types` | list of struct (`code` utf8 or null, `name` utf8) | semantic types or roles, sorted |
//! | | `origins` | list of utf8 | sources that mention it, sorted |
//! | `relations.parquet` | `id` | uint32 | row number, from 0; rows are sorted by `key` |
//! | | `key` | utf8 | identity across sources |
//! | | `text` | utf8 | words for an encoder |
//! | | `origins` | list of utf8 | sources that use it, sorted |
//! | `triples.parquet` | `subject`, `relation`, `object` | uint32 | ids; rows are sorted by the three and distinct |
//! | | `origins` | list of struct (`source` utf8, `vocabulary` utf8 or null, `weight` float64 or null, `count` uint32 or null) | where it comes from, see [`super::Origin`] |
//!
//! The footer of each file has `engraft.format` = [`FORMAT`], `engraft.version` = [`VERSION`] and `engraft.table`.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

/// Name of the format in every file's footer.
pub const FORMAT: &str = "engraft-triples";

/// Version of the columns. It rises when a reader of the old version would misread the new one.
pub const VERSION: u32 = 1;

/// One of the three files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// What triples are about.
    Entities,
    /// What triples say.
    Relations,
    /// The triples.
    Triples,
}

impl Table {
    /// Name in the footer.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Table::Entities => "entities",
            Table::Relations => "relations",
            Table::Triples => "triples",
        }
    }

    /// Name of the file in the table's folder.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Table::Entities => "entities.parquet",
            Table::Relations => "relations.parquet",
            Table::Triples => "triples.parquet",
        }
    }

    /// The columns.
    #[must_use]
    pub fn columns(self) -> SchemaRef {
        let id = || Field::new("id", DataType::UInt32, false);
        let text = |name| Field::new(name, DataType::Utf8, false);
        let list = |name, item: Field| Field::new(name, DataType::List(Arc::new(item)), false);
        let number = |name| Field::new(name, DataType::UInt32, false);
        let types = list("types", item(DataType::Struct(type_fields())));
        let names = list("origins", item(DataType::Utf8));
        let fields = match self {
            Table::Entities => vec![id(), text("key"), text("text"), types, names],
            Table::Relations => vec![id(), text("key"), text("text"), names],
            Table::Triples => {
                let origins = list("origins", item(DataType::Struct(origin_fields())));
                vec![number("subject"), number("relation"), number("object"), origins]
            }
        };
        Arc::new(Schema::new(fields))
    }

    /// The footer's key and value pairs.
    #[must_use]
    pub fn footer(self) -> [(&'static str, String); 3] {
        [
            ("engraft.format", FORMAT.to_owned()),
            ("engraft.version", VERSION.to_string()),
            ("engraft.table", self.name().to_owned()),
        ]
    }
}

/// The item of a list column; never null.
pub(super) fn item(kind: DataType) -> Field {
    Field::new("element", kind, false)
}

/// The fields of a semantic type.
pub(super) fn type_fields() -> Fields {
    Fields::from(vec![Field::new("code", DataType::Utf8, true), Field::new("name", DataType::Utf8, false)])
}

/// The fields of a triple's origin.
pub(super) fn origin_fields() -> Fields {
    Fields::from(vec![
        Field::new("source", DataType::Utf8, false),
        Field::new("vocabulary", DataType::Utf8, true),
        Field::new("weight", DataType::Float64, true),
        Field::new("count", DataType::UInt32, true),
    ])
}
