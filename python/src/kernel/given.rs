//! What an object was made of, so that it can be made again: workers of Ray, Spark and Python's own pools get it pickled.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A place, and arguments by name.
#[derive(Debug)]
pub(crate) struct Given {
    path: PathBuf,
    arguments: Py<PyDict>,
}

impl Given {
    pub(crate) fn new(
        path: &Path,
        settings: Option<&Bound<'_, PyDict>>,
        numbers: &[(&str, u64)],
        py: Python<'_>,
    ) -> PyResult<Self> {
        let arguments = settings.map_or_else(|| Ok(PyDict::new(py)), PyDictMethods::copy)?;
        numbers.iter().try_for_each(|(name, number)| arguments.set_item(name, number))?;
        Ok(Self { path: path.to_owned(), arguments: arguments.unbind() })
    }

    /// As `object.__reduce__` gives it: a call without arguments, which reads the place again.
    pub(crate) fn reduce<'py>(&self, of: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let py = of.py();
        let make = py.import("functools")?.getattr("partial")?;
        let make = make.call((of.get_type(), &self.path), Some(self.arguments.bind(py)))?;
        (make, PyTuple::empty(py)).into_pyobject(py)
    }
}
