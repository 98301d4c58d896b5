//! Batches as dictionaries of NumPy arrays, which own the numbers that the stream made: nothing is copied but classes, a number for each row, which become int64.

use batch::{Batch, Place, Targets};
use numpy::IntoPyArray;
use numpy::ndarray::{Array2, ShapeError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tasks::stream::collate::Fill;

/// Numbers below 2^31 as Python's libraries take them, in the same memory.
fn signed(numbers: Vec<u32>) -> Vec<i32> {
    bytemuck::cast_vec(numbers)
}

fn unshaped(error: &ShapeError) -> PyErr {
    PyRuntimeError::new_err(format!("a batch has not the numbers that its shape says: {error}; report it"))
}

/// A batch: matrices `[rows, width]` int32 and, as int64, labels of that shape or one for each sample. Packed rows also say which
/// sample, and which place in it, each token is of.
pub(crate) fn dict(py: Python<'_>, batch: Batch, fill: Fill) -> PyResult<Bound<'_, PyDict>> {
    let (dict, packed) = (PyDict::new(py), fill != Fill::One);
    let shape = [batch.rows, batch.width];
    let mut matrices = vec![
        ("input_ids", batch.input_ids),
        ("attention_mask", batch.attention_mask),
        ("token_type_ids", batch.token_type_ids),
    ];
    if packed {
        matrices.extend([("position_ids", batch.position_ids), ("segment_ids", batch.segment_ids)]);
    }
    for (name, numbers) in matrices {
        let matrix = Array2::from_shape_vec(shape, signed(numbers)).map_err(|error| unshaped(&error))?;
        dict.set_item(name, matrix.into_pyarray(py))?;
    }
    match batch.targets {
        Targets::Tokens(labels) => {
            let labels = Array2::from_shape_vec(shape, labels).map_err(|error| unshaped(&error))?;
            dict.set_item("labels", labels.into_pyarray(py))?;
        }
        Targets::Classes(classes) => {
            let labels: Vec<i64> = classes.into_iter().map(i64::from).collect();
            dict.set_item("labels", labels.into_pyarray(py))?;
        }
    }
    if packed {
        dict.set_item("samples", places(&batch.samples)?.into_pyarray(py))?;
    }
    Ok(dict)
}

/// Row, first position and length of each sample, in the order of the stream.
fn places(samples: &[Place]) -> PyResult<Array2<i64>> {
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let numbers = samples.iter().flat_map(|place| [place.row, place.start, place.len].map(number));
    Array2::from_shape_vec([samples.len(), 3], numbers.collect()).map_err(|error| unshaped(&error))
}
