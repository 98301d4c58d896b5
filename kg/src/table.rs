//! The triple table: what every source is read into and everything later is made from. Knows no source.
//!
//! Three files, each written whole: `entities.parquet`, `relations.parquet`, `triples.parquet` (see [`schema`]). Ids are dense and
//! follow the sorted keys, triples are sorted and distinct, so equal input gives equal bytes.

pub mod builder;
pub mod graph;
pub mod id;
pub mod page_crc;
pub mod parquet_file;
pub mod read;
pub mod row;
pub mod schema;
pub mod write;

pub use builder::Builder;
pub use graph::Graph;
pub use id::{EntityId, RelationId};
pub use row::{Entity, Origin, Relation, SemanticType, Triple};
