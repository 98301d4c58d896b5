//! Graph and text in, shuffled multi-task batches out. Knows no tensor library and no stage.

pub mod builder;
pub mod corpus;
pub mod downstream;
pub mod hub;
pub mod maps;
pub mod negative;
pub mod ner;
pub mod sample;
pub mod seed;
pub mod self_check;
pub mod shard;
pub mod stop;
pub mod stream;
pub mod task;
pub mod token;
pub mod unfit;
