//! Medical knowledge graphs in, one triple table out.
//!
//! ```
//! use std::path::Path;
//!
//! let table = "Diseases,Symptoms\rflu,\"fever (0.5), cough (0.25)\"\r";
//! let mut builder = kg::table::Builder::new();
//! let options = kg::source::rotmensch::Options { min_probability: None };
//! let funnel = kg::source::rotmensch::read(table.as_bytes(), Path::new("flu.csv"), &options, &mut builder)?;
//! let graph = builder.finish(&kg::canon::Policy::standard())?.graph()?;
//! assert_eq!((funnel.triples.read, graph.entities().len(), graph.triples().len()), (2, 3, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod audit;
pub mod canon;
pub mod certificate;
pub mod diff;
pub mod graph;
pub mod source;
pub mod split;
pub mod table;
