//! Kernels: what engraft's stages do with texts and triples, over columns of Arrow.
//!
//! A kernel takes any object that speaks Arrow's PyCapsule protocol, chunk by chunk and without a copy, works on it with all threads and
//! without Python's lock, and gives an object that speaks the protocol, too. What it makes of a row depends on that row, its number and
//! the settings alone: neither on chunks nor on threads.

pub(crate) mod batches;
pub(crate) mod capsule;
pub(crate) mod count;
pub(crate) mod given;
pub(crate) mod maps;
pub(crate) mod negatives;
pub(crate) mod options;
pub(crate) mod pool;
pub(crate) mod rows;
pub(crate) mod samples;
pub(crate) mod table;
pub(crate) mod tagger;
pub(crate) mod texts;
pub(crate) mod tokenizer;
pub(crate) mod triples;

use pyo3::prelude::*;

/// Adds the kernels to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<batches::Batches>()?;
    module.add_class::<maps::Maps>()?;
    module.add_class::<negatives::Negatives>()?;
    module.add_class::<tagger::Tagger>()?;
    module.add_class::<tokenizer::Tokenizer>()?;
    module.add_function(wrap_pyfunction!(count::word_counts, module)?)?;
    module.add_function(wrap_pyfunction!(triples::triples, module)?)
}
