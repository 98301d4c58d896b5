//! The triple table: what every source is read into and everything later is made from.
//!
//! Seven files, each written whole: `entities`, `terms`, `relations`, `triples`, `crosswalk`, `negatives` and `retired` (`.parquet`, see [`schema`]). Ids are dense and
//! follow the sorted keys, triples are sorted and distinct, so equal input gives equal bytes.

pub mod batches;
pub(crate) mod bits;
pub mod builder;
pub(crate) mod draft;
pub mod graph;
pub mod guard;
pub mod id;
pub mod level;
pub mod page_crc;
pub mod pages;
pub mod parquet_file;
pub mod read;
pub mod row;
pub mod row_group;
pub(crate) mod rows;
pub mod schema;
pub(crate) mod texts;
pub mod types;
pub mod write;

pub use builder::Builder;
pub use graph::Graph;
pub use id::{EntityId, RelationId};
pub use row::{
    Direction, Entity, Inverse, Negative, Origin, Relation, SemanticType, Term, TermKind, TermOrigin, Triple,
};
