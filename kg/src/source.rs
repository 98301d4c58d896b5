//! Publishers' files in, statements of a [`crate::table::Builder`] out. Each format has its own room; none knows another.

pub mod funnel;
pub mod hsdn;
pub mod line;
mod newline;
mod roster;
pub mod rotmensch;
pub mod rrf;
pub mod umls;

pub use funnel::{Funnel, Report, Tally};
