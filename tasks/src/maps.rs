//! Semantic attention maps (entity, phrase, term correlation, graph adjacency) of KAM-BERT: stored as spans and sparse pairs, expanded to
//! squares when a batch needs them. Knows no tensor and no encoder.

pub mod auxiliary;
pub mod collate;
pub mod draw;
pub mod expand;
pub mod generators;
pub mod graph;
pub mod hub;
pub mod index;
pub mod read;
pub mod rows;
pub mod sample;
pub mod schema;
pub mod spelt;
pub mod write;
