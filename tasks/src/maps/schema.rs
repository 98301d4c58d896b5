//! The columns of a file of maps.

use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};

use crate::shard::schema::{field, list};

/// The format's name in the index and in every file's footer.
pub const FORMAT: &str = "engraft-maps";

/// The version of columns and index. It rises when a reader of the old version would misread the new one.
pub const VERSION: u32 = 1;

/// The columns; docs/formats.md has them as a table.
#[must_use]
pub fn columns() -> SchemaRef {
    let numbers = || list(DataType::UInt16);
    let fields = vec![
        field("document", DataType::UInt32, "number of the document in the order of reading, from 0"),
        field("chunk", DataType::UInt32, "part of the document, from 0"),
        field("real", DataType::UInt16, "tokens of the text, [CLS] and [SEP] included"),
        field("auxiliary", DataType::UInt16, "tokens of auxiliary terms, behind them"),
        field("cut", DataType::UInt32, "tokens of the text that were cut"),
        field(
            "input_ids",
            list(DataType::Int32),
            "token ids without padding: [CLS] text [SEP], perhaps text [SEP], then auxiliary terms",
        ),
        field("token_type_ids", list(DataType::Int8), "segment of each token: 1 in a second text, else 0"),
        field(
            "words",
            numbers(),
            "number of each token's word, from 0, auxiliary terms last; 65535 for [CLS] and [SEP]",
        ),
        field("entities", numbers(), "number of each word's mention of an entity, from 1; 0 for none"),
        field("phrases", numbers(), "number of each word's phrase, from 1; 0 for auxiliary terms"),
        field("types", numbers(), "the first word that is the same as each word"),
        field(
            "term_first",
            numbers(),
            "pairs of related words, each the first that is the same: the smaller number",
        ),
        field("term_second", numbers(), "the larger number"),
        field("relevance", list(DataType::Float32), "relevance of each pair, above 0 and at most 1"),
        field(
            "graph_first",
            numbers(),
            "pairs of mentions whose entities a triple joins: the smaller number",
        ),
        field("graph_second", numbers(), "the larger number"),
    ];
    Arc::new(Schema::new(fields))
}
