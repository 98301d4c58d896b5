//! Streams of shards and kernels over Arrow as Python has them: the module `engraft._engraft`.

mod arrays;
mod kernel;
mod raised;
mod settings;
mod shards;
mod stream;

use pyo3::prelude::*;

/// What `engraft` is made of.
#[pymodule]
fn _engraft(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<stream::Stream>()?;
    kernel::add(module)
}
