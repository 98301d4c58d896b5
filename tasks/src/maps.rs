//! Semantic attention maps (entity, phrase, term correlation, graph adjacency) of KAM-BERT: stored as spans and sparse pairs, expanded to squares when a batch
//! needs them.

pub mod auxiliary;
pub mod collate;
pub mod config;
pub mod draw;
pub mod folders;
pub mod generators;
pub mod graph;
pub mod hidden;
pub mod hub;
pub mod index;
pub mod join;
mod keys;
pub mod piece;
pub mod read;
pub mod reader;
pub mod rows;
pub mod schema;
pub mod spelt;
pub mod tools;
pub mod write;
