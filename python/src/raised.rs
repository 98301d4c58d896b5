//! Errors as Python raises them.

use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};
use tasks::Error;

/// What cannot be read is an `OSError`; what does not go together, or is out of its range, a `ValueError`.
pub(crate) fn raised(error: &Error) -> PyErr {
    match error {
        Error::Read(_) | Error::Io(_) | Error::Cancelled(_) => PyOSError::new_err(error.to_string()),
        Error::Setting(_) | Error::Unfit(_) => PyValueError::new_err(error.to_string()),
    }
}

/// An argument that is out of its range.
pub(crate) fn unfit(name: &str, found: impl std::fmt::Display, expected: &str) -> PyErr {
    PyValueError::new_err(format!("{name}={found}: expected {expected}"))
}
