//! Encoded samples on disk: zstd Parquet files per task and one index written last. Knows no graph source and no trainer.

pub mod index;
pub mod read;
pub mod schema;
pub mod write;
