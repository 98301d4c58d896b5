//! Python's keyword arguments as the settings of a config: the same names, the same values.

use base::setting::InvalidSetting;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

/// A value as JSON has it; paths are texts. `place` is its setting.
fn value(found: &Bound<'_, PyAny>, place: &str) -> PyResult<Value> {
    if found.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(truth) = found.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if found.is_instance_of::<PyInt>() {
        let number =
            found.extract::<i64>().map(Number::from).or_else(|_| found.extract::<u64>().map(Number::from));
        let number = number.map_err(|_| unusable(place, found, "a whole number of at most 64 bits"))?;
        return Ok(Value::Number(number));
    }
    if found.is_instance_of::<PyFloat>() {
        let number = Number::from_f64(found.extract()?);
        return number.map(Value::Number).ok_or_else(|| unusable(place, found, "a finite number"));
    }
    if let Ok(text) = found.cast::<PyString>() {
        return Ok(Value::String(text.to_str()?.to_owned()));
    }
    if let Ok(table) = found.cast::<PyDict>() {
        return object(table, place).map(Value::Object);
    }
    if found.is_instance_of::<PyList>() || found.is_instance_of::<PyTuple>() {
        let items = found.try_iter()?.enumerate();
        let items = items.map(|(at, item)| value(&item?, &format!("{place}.{at}")));
        return items.collect::<PyResult<_>>().map(Value::Array);
    }
    if found.hasattr("__fspath__")? {
        return value(&found.call_method0("__fspath__")?, place);
    }
    Err(unusable(place, found, "None, a bool, a number, a string, a path, a list or a dictionary"))
}

fn unusable(place: &str, found: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let shown = found.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
    PyTypeError::new_err(format!("{place}={shown}: expected {expected}"))
}

/// The entries of a dictionary; those that are None are left out, as if they were not said.
pub(crate) fn object(table: &Bound<'_, PyDict>, place: &str) -> PyResult<Map<String, Value>> {
    let mut entries = Map::new();
    for (key, found) in table.iter() {
        let key: String =
            key.extract().map_err(|_| unusable(place, &key, "a string as the name of a setting"))?;
        let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
        let found = value(&found, &place)?;
        if !found.is_null() {
            entries.insert(key, found);
        }
    }
    Ok(entries)
}

/// Settings of a type that a config has, too.
///
/// # Errors
/// When a name is none, which is told with those that are, or a value does not fit.
pub(crate) fn settings<T: DeserializeOwned>(of: &str, given: Map<String, Value>) -> PyResult<T> {
    serde_path_to_error::deserialize(Value::Object(given)).map_err(|error| {
        let (path, inner) = (error.path().to_string(), error.inner());
        let place = if path == "." { String::new() } else { format!("{path}: ") };
        PyValueError::new_err(format!("{of}: {place}{inner}"))
    })
}

/// A setting that is out of its range.
pub(crate) fn invalid(of: &str, error: &InvalidSetting) -> PyErr {
    PyValueError::new_err(format!("{of}: {error}"))
}
