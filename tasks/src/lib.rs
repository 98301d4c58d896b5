//! Graph and text in, shuffled multi-task batches out.

pub mod builder;
pub mod error;
pub mod hub;
pub mod link;
pub mod maps;
pub mod names;
pub mod negative;
pub mod sample;
pub mod shard;
pub mod stream;
pub mod task;
pub mod token;

pub use error::Error;
