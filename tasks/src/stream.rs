//! Shards in, shuffled batches out: the order in which a trainer sees samples. Knows no tensor library.
//!
//! The order is a pure function of (index, seed, epoch), so a position is two numbers per task and a resumed stream goes
//! on with exactly the batch that would have come.

pub mod batch;
pub mod collate;
pub mod kimera;
pub mod order;
pub mod reader;
pub mod state;
