//! The columns of the files on disk.
//!
//! | file | column | type | meaning |
//! |---|---|---|---|
//! | `entities.parquet` | `id` | uint32 | row number, from 0; rows are sorted by `key` |
//! | | `key` | utf8 | identity across sources |
//! | | `text` | utf8 | preferred name |
//! | | `level` | uint8 or null | licence level of that name (UMLS source restriction level, 0 to 9) |
//! | | `types` | list of struct (`code` utf8 or null, `name` utf8) | semantic types or roles, sorted |
//! | | `same_as` | list of utf8 | other keys that mean the same, sorted |
//! | | `origins` | list of utf8 | sources whose triples mention it, sorted |
//! | `terms.parquet` | `entity` | uint32 | id; rows are sorted by entity, kind, text and where they come from |
//! | | `kind` | utf8 | `preferred`, `synonym` or `definition` |
//! | | `text` | utf8 | the term |
//! | | `source` | utf8 | where it comes from |
//! | | `vocabulary`, `language` | utf8 or null | inside the source |
//! | | `level` | uint8 or null | licence level |
//! | `relations.parquet` | `id` | uint32 | row number, from 0; rows are sorted by `key` |
//! | | `key` | utf8 | identity across sources |
//! | | `text` | utf8 | words for an encoder |
//! | | `inverse` | utf8 or null | key of the relation that says the same the other way round; folded into this one unless inverses are kept |
//! | | `inverses` | list of struct (`key` utf8, `text` utf8) | all relations declared to say the same the other way round, followed or not, sorted |
//! | | `symmetric` | boolean | whether it says the same both ways round |
//! | | `origins` | list of utf8 | sources that use it, sorted |
//! | `triples.parquet` | `subject`, `relation`, `object` | uint32 | ids; rows are sorted by the three and distinct |
//! | | `origins` | list of struct (`source` utf8, `vocabulary` utf8 or null, `weight` float64 or null, `count` uint32 or null, `level` uint8 or null, `direction` utf8) | where it comes from, see [`super::Origin`]; `direction` is `stated`, `inverse` or `both` |
//! | `crosswalk.parquet` | `key` | utf8 | a key as stated that has only a name, that means another, or that is ambiguous; sorted |
//! | | `means` | utf8 | the key that it became |
//! | | `entity` | uint32 or null | id, if that is in a triple |
//! | | `how` | utf8 | `alias`, `preferred_name`, `synonym`, `ambiguous` or `unmapped` |
//! | | `candidates` | list of utf8 | what an ambiguous key could have meant, sorted |
//! | `negatives.parquet` | `subject`, `relation`, `object` | utf8 | keys of a triple that its source publishes as false, told as triples are: after crosswalk and folding of inverses; rows are sorted by the three, source and part, and distinct |
//! | | `subject_text`, `relation_text`, `object_text` | utf8 | their texts: what is named need be in no triple |
//! | | `source` | utf8 | where it comes from |
//! | | `part` | utf8 or null | the part of the official split that it stands in |
//! | `retired.parquet` | `key` | utf8 | a key that its source gave up for one other and that is in no triple, sorted |
//! | | `means` | utf8 | the key of what took its place, in the end |
//! | | `entity` | uint32 | its id |
//!
//! The footer of each file has `engraft.format` = [`FORMAT`], `engraft.version` = [`VERSION`] and `engraft.table`.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

/// Name of the format in every file's footer.
pub const FORMAT: &str = "engraft-triples";

/// Version of the columns. It rises when a reader of the old version would misread the new one.
pub const VERSION: u32 = 3;

/// One of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// What triples are about.
    Entities,
    /// Names and definitions of entities.
    Terms,
    /// What triples say.
    Relations,
    /// The triples.
    Triples,
    /// Keys that mean others.
    Crosswalk,
    /// Triples that sources publish as false.
    Negatives,
    /// Keys that sources gave up.
    Retired,
}

impl Table {
    /// Name in the footer.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Table::Entities => "entities",
            Table::Terms => "terms",
            Table::Relations => "relations",
            Table::Triples => "triples",
            Table::Crosswalk => "crosswalk",
            Table::Negatives => "negatives",
            Table::Retired => "retired",
        }
    }

    /// Name of the file in the table's folder.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Table::Entities => "entities.parquet",
            Table::Terms => "terms.parquet",
            Table::Relations => "relations.parquet",
            Table::Triples => "triples.parquet",
            Table::Crosswalk => "crosswalk.parquet",
            Table::Negatives => "negatives.parquet",
            Table::Retired => "retired.parquet",
        }
    }

    /// The columns.
    #[must_use]
    pub fn columns(self) -> SchemaRef {
        let text = |name| Field::new(name, DataType::Utf8, false);
        let maybe = |name| Field::new(name, DataType::Utf8, true);
        let number = |name| Field::new(name, DataType::UInt32, false);
        let level = || Field::new("level", DataType::UInt8, true);
        let list = |name, kind| Field::new(name, DataType::List(Arc::new(item(kind))), false);
        let texts = |name| list(name, DataType::Utf8);
        let fields = match self {
            Table::Entities => {
                let types = list("types", DataType::Struct(type_fields()));
                let same_as = texts("same_as");
                vec![number("id"), text("key"), text("text"), level(), types, same_as, texts("origins")]
            }
            Table::Terms => {
                let (vocabulary, language) = (maybe("vocabulary"), maybe("language"));
                let source = text("source");
                vec![number("entity"), text("kind"), text("text"), source, vocabulary, language, level()]
            }
            Table::Relations => {
                let symmetric = Field::new("symmetric", DataType::Boolean, false);
                let inverses = list("inverses", DataType::Struct(inverse_fields()));
                let (id, inverse) = (number("id"), maybe("inverse"));
                vec![id, text("key"), text("text"), inverse, inverses, symmetric, texts("origins")]
            }
            Table::Triples => {
                let origins = list("origins", DataType::Struct(origin_fields()));
                vec![number("subject"), number("relation"), number("object"), origins]
            }
            Table::Crosswalk => {
                let entity = Field::new("entity", DataType::UInt32, true);
                vec![text("key"), text("means"), entity, text("how"), texts("candidates")]
            }
            Table::Negatives => {
                let all = [
                    "subject",
                    "relation",
                    "object",
                    "subject_text",
                    "relation_text",
                    "object_text",
                    "source",
                ];
                all.into_iter().map(text).chain([maybe("part")]).collect()
            }
            Table::Retired => vec![text("key"), text("means"), number("entity")],
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

/// The fields of an inverse.
pub(super) fn inverse_fields() -> Fields {
    Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("text", DataType::Utf8, false)])
}

/// The fields of a triple's origin.
pub(super) fn origin_fields() -> Fields {
    Fields::from(vec![
        Field::new("source", DataType::Utf8, false),
        Field::new("vocabulary", DataType::Utf8, true),
        Field::new("weight", DataType::Float64, true),
        Field::new("count", DataType::UInt32, true),
        Field::new("level", DataType::UInt8, true),
        Field::new("direction", DataType::Utf8, false),
    ])
}
