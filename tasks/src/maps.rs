//! Semantic attention maps (entity, phrase, term correlation, graph adjacency) of KAM-BERT: stored as spans and sparse pairs, expanded to squares when a batch
//! needs them.

pub mod auxiliary;
pub mod collate;
pub mod draw;
pub mod generators;
pub mod graph;
pub mod hub;
pub mod index;
pub mod join;
pub mod read;
pub mod rows;
pub mod schema;
pub mod spelt;
pub mod write;
