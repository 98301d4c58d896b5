//! The library's public face: negatives, shards, streams.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "these are tests; a failed step is a failed test"
)]

mod negatives;
mod shards;
