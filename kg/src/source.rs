//! Publishers' files in, statements of a [`crate::table::Builder`] out. Each format has its own room; none knows another.

mod curie;
pub mod funnel;
pub mod hsdn;
pub mod kgx;
pub mod mesh;
pub mod naming;
mod roster;
pub mod rotmensch;
pub mod rrf;
mod separated;
pub mod triples;
pub mod umls;
mod xml;

pub use funnel::{Funnel, Report};
