//! What a graph is like: degrees, hubs, components, ranks, distances, overlap of sources, cardinalities.
//!
//! Every number here is a function of the graph and the options alone: counts are integers, sums of fractions have a fixed order, and
//! what is sampled is sampled by a named seed.

mod adjacency;
pub mod cardinality;
pub mod component;
pub mod degree;
pub mod distance;
pub mod distribution;
pub mod hub;
pub mod length;
pub mod level;
pub mod overlap;
pub mod rank;
pub mod summary;
pub mod tally;
pub mod types;

pub use summary::{Options, Summary, summarize};
