//! XML as large files of records need it: scanned in memory, read from a stream in chunks of whole records.

pub(super) mod chunk;
pub(super) mod prolog;
pub(super) mod scan;

pub(super) use chunk::Chunks;
pub(super) use scan::{Fault, Scanner, Tag};
