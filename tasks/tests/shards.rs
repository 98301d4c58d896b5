//! Shards and streams from end to end: graph in, files on disk, batches out. Knows no trainer.
#![allow(clippy::unwrap_used, reason = "these are tests; a failed step is a failed test")]

mod damage;
mod elastic;
mod order;
mod text;
mod world;
mod write;
