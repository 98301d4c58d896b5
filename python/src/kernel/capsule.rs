//! Arrow's C data interface in Python's capsules: the one place where memory of other libraries is taken over, and ours handed out.
//!
//! The names of the methods and capsules are those of the Arrow PyCapsule Interface.
#![expect(unsafe_code, reason = "structures of C that other libraries fill in have no safe form")]

use std::ffi::CStr;
use std::ptr::NonNull;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{ArrayReader, ArrayRef, RecordBatchReader, make_array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

const STREAM: &CStr = c"arrow_array_stream";
const ARRAY: &CStr = c"arrow_array";
const SCHEMA: &CStr = c"arrow_schema";

/// Chunks of an object of another library, as they come.
pub(crate) struct Arrays {
    /// What each chunk consists of.
    pub(crate) kind: DataType,
    chunks: Box<dyn Iterator<Item = Result<ArrayRef, ArrowError>> + Send>,
}

impl Iterator for Arrays {
    type Item = PyResult<ArrayRef>;

    fn next(&mut self) -> Option<Self::Item> {
        let chunk = self.chunks.next()?;
        Some(chunk.map_err(|error| PyValueError::new_err(format!("the Arrow stream ends early: {error}"))))
    }
}

impl Arrays {
    /// The chunks of an object with `__arrow_c_stream__` or `__arrow_c_array__`; none for one with neither.
    ///
    /// # Errors
    /// When the object raises, or what it gives is no Arrow.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if object.hasattr("__arrow_c_stream__")? {
            return Self::of_stream(&object.call_method0("__arrow_c_stream__")?).map(Some);
        }
        if object.hasattr("__arrow_c_array__")? {
            return Self::of_array(&object.call_method0("__arrow_c_array__")?).map(Some);
        }
        Ok(None)
    }

    /// One array of ours.
    pub(crate) fn one(array: ArrayRef) -> Self {
        Self { kind: array.data_type().clone(), chunks: Box::new(std::iter::once(Ok(array))) }
    }

    fn of_stream(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let pointer = pointer(given, STREAM)?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: a capsule of this name points to an ArrowArrayStream, and is alive, since `given` is borrowed. No other thread reads it
        // meanwhile: Python's lock is held. `from_raw` moves the stream out and leaves a released one behind, which the capsule's
        // destructor does not release again.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
        if stream.release().is_none() {
            return Err(PyValueError::new_err(
                "the Arrow stream has been read already: hand in the table, or a new reader",
            ));
        }
        if stream.get_next().is_none() {
            return Err(damaged(&"its stream has no get_next"));
        }
        let reader = ArrayStreamReader::try_new(stream).map_err(|error| damaged(&error))?;
        Ok(Self { kind: reader.field().data_type().clone(), chunks: Box::new(reader) })
    }

    fn of_array(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let pair = given.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
        let pair = pair.ok_or_else(|| damaged(&"__arrow_c_array__ gives no pair of capsules"))?;
        let schema = pointer(&pair.get_item(0)?, SCHEMA)?.cast::<FFI_ArrowSchema>();
        let array = pointer(&pair.get_item(1)?, ARRAY)?.cast::<FFI_ArrowArray>();
        // SAFETY: capsules of these names point to an ArrowSchema and an ArrowArray, and are alive, since `pair` holds them; Python's lock
        // is held. `from_raw` moves each out and leaves a released one behind, which the capsules' destructors do not release again.
        let (schema, array) =
            unsafe { (FFI_ArrowSchema::from_raw(schema.as_ptr()), FFI_ArrowArray::from_raw(array.as_ptr())) };
        if array.is_released() {
            return Err(PyValueError::new_err("the Arrow array has been taken already: hand in a new one"));
        }
        // SAFETY: whoever made the two vouches by the protocol that they belong together and that their buffers are as long as they say.
        // What can be checked of their contents is checked before it is read (`texts`, `table`).
        let data = unsafe { from_ffi(array, &schema) }.map_err(|error| damaged(&error))?;
        Ok(Self::one(make_array(data)))
    }
}

fn damaged(problem: &dyn std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("the object says that it is Arrow, but cannot be read as such: {problem}"))
}

/// What a capsule points to, which has this name.
fn pointer(given: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<std::ffi::c_void>> {
    let capsule = given.cast::<PyCapsule>().map_err(|_| {
        let found = given.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("the object's Arrow method gave a {found}, expected a capsule"))
    })?;
    capsule.pointer_checked(Some(name))
}

/// A stream of batches as a capsule. Whoever takes it owns it; one that nobody takes is released with the capsule.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// A schema as a capsule, as that of a column of rows.
pub(crate) fn schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let field = Field::new_struct("", schema.fields().clone(), false);
    let schema = FFI_ArrowSchema::try_from(&field).map_err(|error| damaged(&error))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}
