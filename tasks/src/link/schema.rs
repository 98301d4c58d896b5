//! The columns of ranks and of candidates on disk.
//!
//! `ranks.parquet`, `relation_ranks.parquet`:
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `triple` | uint32 | row in `triples.parquet`; rows are sorted by this, then subject, relation, object |
//! | `side` | utf8 | what is asked for: `subject`, `object` or `relation` |
//! | `rank` | float64 | the answer's place, from 1, without other true answers: the mean of the best and the worst that ties allow |
//! | `candidates` | uint32 | how many it stands among, itself included |
//! | `ties` | uint32 | how many others have its score |
//! | `raw_rank`, `raw_candidates`, `raw_ties` | | the same with other true answers |
//! | `score` | float32 | the answer's score |
//! | `given_away` | utf8, nullable | how a shown triple gives this one away: a kind of `leaks.parquet`, or `suspected` |
//!
//! `candidates.parquet`, the best of each question:
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `triple`, `side` | | the question; sorted as ranks are |
//! | `candidate` | uint32 | the entity or relation, by its row in its table; the best first, of equal ones that of the smaller row |
//! | `score` | float32 | its score |
//! | `stated` | boolean | whether the graph states the triple with it, in whatever part |
//!
//! The footers have `engraft.format` = [`FORMAT`] or [`CANDIDATES`] and `engraft.version` = [`VERSION`].

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// Name of the format in the footer.
pub const FORMAT: &str = "engraft-ranks";

/// Name of the format of candidates in the footer.
pub const CANDIDATES: &str = "engraft-candidates";

/// Version of the columns. It rises when a reader of the old version would misread the new one.
pub const VERSION: u32 = 1;

/// The columns of candidates.
#[must_use]
pub fn of_candidates() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("triple", DataType::UInt32, false),
        Field::new("side", DataType::Utf8, false),
        Field::new("candidate", DataType::UInt32, false),
        Field::new("score", DataType::Float32, false),
        Field::new("stated", DataType::Boolean, false),
    ]))
}

/// The columns of ranks.
#[must_use]
pub fn columns() -> SchemaRef {
    let number = |name| Field::new(name, DataType::UInt32, false);
    let place = |name| Field::new(name, DataType::Float64, false);
    Arc::new(Schema::new(vec![
        number("triple"),
        Field::new("side", DataType::Utf8, false),
        place("rank"),
        number("candidates"),
        number("ties"),
        place("raw_rank"),
        number("raw_candidates"),
        number("raw_ties"),
        Field::new("score", DataType::Float32, false),
        Field::new("given_away", DataType::Utf8, true),
    ]))
}
