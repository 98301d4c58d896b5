//! Medical knowledge graphs in, one triple table out.
//!
//! ```
//! use kg::source::{files::Input, rotmensch};
//!
//! let table = "Diseases,Symptoms\rflu,\"fever (0.5), cough (0.25)\"\r";
//! let mut builder = kg::table::Builder::new();
//! let file = Input::new(table.as_bytes(), "flu.csv");
//! let funnel = rotmensch::read(file, &rotmensch::Options::default(), &mut builder)?;
//! let graph = kg::canon::merge(builder, &kg::canon::Policy::standard())?.graph()?;
//! assert_eq!((funnel.triples.read, graph.entities().len(), graph.triples().len()), (2, 3, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod audit;
pub mod canon;
#[cfg(feature = "polars")]
pub mod certificate;
pub mod diff;
#[cfg(feature = "polars")]
pub mod graph;
mod refused;
pub mod source;
pub mod split;
pub mod table;
mod unmet;

pub use refused::Refused;
