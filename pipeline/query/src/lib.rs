//! SQL over the artifacts of an output folder: which tables there are, how a query is answered by polars, how answers are written.
//!
//! Files are read as the ledger names them, and only those that a query needs. Ids are looked up where a query asks for names: an unused column costs
//! nothing. Whoever calls says which artifacts are finished and how a file is verified; nothing here prints.

mod answer;
mod artifact;
mod catalog;
mod convert;
mod error;
mod files;
mod json;
mod lookup;
mod parquet;
mod render;
mod sql;
mod tables;
mod tests;

pub use answer::{Answer, Format};
pub use artifact::{Artifact, Check, File};
pub use error::Error;
pub use tables::{Column, Tables, Told};
