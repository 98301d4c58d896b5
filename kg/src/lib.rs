//! Medical knowledge graphs in, one triple table out. Knows no corpus, tensor or stage.
//!
//! ```
//! use std::path::Path;
//!
//! let table = "Diseases,Symptoms\rflu,\"fever (0.5), cough (0.25)\"\r";
//! let mut builder = kg::table::Builder::new();
//! let options = kg::source::rotmensch::Options { min_probability: None };
//! let funnel = kg::source::rotmensch::read(table.as_bytes(), Path::new("flu.csv"), &options, &mut builder)?;
//! let graph = builder.finish();
//! assert_eq!((funnel.triples.read, graph.entities().len(), graph.triples().len()), (2, 3, 2));
//! # Ok::<(), kg::source::rotmensch::Error>(())
//! ```

pub mod canon;
pub mod source;
pub mod table;
pub mod whole;
