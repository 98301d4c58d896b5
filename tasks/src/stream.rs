//! Shards in, shuffled batches out: the order in which a trainer sees samples.
//!
//! The order is a pure function of (index, seed, epoch), so a position is two numbers per lane and a resumed stream goes on with exactly
//! the batch that would have come, on any number of ranks.

mod background;
pub mod collate;
pub mod lane;
pub mod order;
pub mod prefetch;
pub mod quality;
pub mod redraw;
pub mod remote;
pub mod schedule;
pub mod source;
pub mod state;
pub mod steps;
pub mod window;

pub use steps::Stream;
