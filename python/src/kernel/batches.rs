//! The class `Batches`: what kernels give, as Arrow's readers take it.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use serde_json::Value;

use super::capsule;

/// Batches by their number, made when they are asked for, or before.
pub(crate) trait Source: Debug + Send + Sync {
    /// The columns.
    fn schema(&self) -> SchemaRef;

    /// Rows of all batches.
    fn rows(&self) -> usize;

    /// A batch; none behind the last.
    fn batch(&self, number: usize) -> Option<Result<RecordBatch, ArrowError>>;
}

/// Batches that are in memory.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

impl Source for Held {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn batch(&self, number: usize) -> Option<Result<RecordBatch, ArrowError>> {
        self.batches.get(number).cloned().map(Ok)
    }
}

/// Record batches in Arrow's memory, which other libraries read in place: `pyarrow.table(batches)`, `pyarrow.RecordBatchReader.from_stream(batches)`,
/// `polars.DataFrame(batches)`, `duckdb.sql("from batches")`.
///
/// It may be read any number of times. `report` says what became of the input, as a dictionary; None where everything was taken.
#[pyclass(module = "engraft", name = "Batches", frozen)]
pub(crate) struct Batches {
    source: Arc<dyn Source>,
    report: Option<Value>,
}

impl Batches {
    pub(crate) fn new(source: impl Source + 'static, report: Option<Value>) -> Self {
        Self { source: Arc::new(source), report }
    }
}

#[pymethods]
impl Batches {
    /// A stream of the batches, by the Arrow PyCapsule Interface; another schema than their own is not offered.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol leaves it to the consumer to cast what is not as it asked for.
        let _ = requested_schema;
        capsule::stream(py, Box::new(Reader { source: Arc::clone(&self.source), next: 0 }))
    }

    /// The schema of the batches, by the Arrow PyCapsule Interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::schema(py, &self.source.schema())
    }

    /// Rows of all batches.
    fn __len__(&self) -> usize {
        self.source.rows()
    }

    /// Names of the columns.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.source.schema().fields().iter().map(|field| field.name().clone()))
    }

    /// What became of the input; None where all of it was taken.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let report = self.report.as_ref().map(ToString::to_string);
        report.map(|text| py.import("json")?.call_method1("loads", (text,))).transpose()
    }

    fn __repr__(&self) -> String {
        let schema = self.source.schema();
        let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        format!("<engraft.Batches of {} rows: {}>", self.source.rows(), columns.join(", "))
    }
}

/// Batches one after the other.
struct Reader {
    source: Arc<dyn Source>,
    next: usize,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.source.batch(self.next)?;
        self.next += 1;
        Some(batch)
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.source.schema()
    }
}
