//! What every room needs and none owns: files written whole, lines with their places, counters, keyed random numbers, cancellation, settings
//! refused. No Arrow, no tensor, no network.

pub mod bom;
pub mod cancel;
pub mod exact;
pub mod frame;
pub mod funnel;
pub mod gz;
pub mod line;
pub mod newline;
pub mod object;
pub mod read;
pub mod rng;
pub mod self_check;
pub mod setting;
pub mod share;
pub mod visible;
pub mod whole;
