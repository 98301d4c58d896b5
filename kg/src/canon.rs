//! What sources state becomes one graph: text folding, crosswalk, direction of relations, merging.

mod account;
pub mod crosswalk;
pub mod fold;
mod merge;
pub mod policy;
pub mod relation;
pub mod report;
mod sieve;
pub(crate) mod supposed;
mod warnings;
mod write;

pub use merge::{Canon, merge};
pub use policy::{Ambiguous, Inverses, Policy, SelfLoops, Unnamed, Unrelated};
pub use report::Report;

use std::io;

use crate::table::parquet_file::Error as WriteError;

/// Why there is no canonical graph.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Rows beyond the limit of memory could not be kept on the disk.
    #[error("cannot keep rows on the disk: {0}; make room beside the output and run again")]
    Rows(#[from] io::Error),
    /// The table could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}
