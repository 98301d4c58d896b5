//! The library's public face: published graphs, splits and audits, damaged files.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "these are tests; a failed step is a failed test"
)]

mod diff;
mod fuzz;
mod kg_bert;
mod mesh_data;
mod obo;
mod open_data;
mod split;
mod summary;
