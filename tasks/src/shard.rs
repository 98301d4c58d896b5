//! Encoded samples on disk: zstd Parquet files per task and one index written last.

pub mod file;
pub mod hub;
pub mod index;
pub mod items;
pub(crate) mod lists;
pub(crate) mod pages;
pub(crate) mod pairs;
pub mod passages;
pub mod read;
pub mod rows;
pub mod schema;
pub mod shown;
pub mod text;
pub mod write;
