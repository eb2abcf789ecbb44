//! Tables that pass to Python by Arrow's C interface, without a copy.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{Field, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};

type Reader = Box<dyn RecordBatchReader + Send>;

/// A table of Arrow: `pyarrow.table(t)`, `polars.DataFrame(t)` and `pandas.DataFrame.from_arrow(t)` take it.
#[pyclass(frozen, module = "isotherm")]
pub(crate) struct Table {
    schema: SchemaRef,
    open: Box<dyn Fn() -> PyResult<Reader> + Send + Sync>,
}

impl Table {
    /// Makes a table whose batches are read anew each time that it is asked for.
    pub(crate) fn new(
        schema: SchemaRef,
        open: impl Fn() -> PyResult<Reader> + Send + Sync + 'static,
    ) -> Self {
        Self { schema, open: Box::new(open) }
    }

    /// Makes a table of one batch.
    pub(crate) fn of(batch: RecordBatch) -> Self {
        let schema = batch.schema();
        let again = Arc::clone(&schema);
        Self::new(schema, move || Ok(Box::new(RecordBatchIterator::new([Ok(batch.clone())], again.clone()))))
    }

    pub(crate) fn stream<'py>(
        &self,
        py: Python<'py>,
        requested: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let field = Arc::new(Field::new_struct("", self.schema.fields().clone(), false));
        let batches = (self.open)()?;
        let arrays = batches.map(|batch| batch.map(|batch| Arc::new(StructArray::from(batch)) as ArrayRef));
        Ok(to_stream_pycapsule(py, Box::new(ArrayIterator::new(arrays, field)), requested)?)
    }
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.stream(py, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns it as a `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.getattr("table")?.call1((slf,))
    }

    /// Returns it as a `pandas.DataFrame`; needs pyarrow too.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_arrow(slf)?.call_method0("to_pandas")
    }

    /// Returns it as a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.getattr("DataFrame")?.call1((slf,))
    }

    fn __repr__(&self) -> String {
        format!("<isotherm.Table of {}>", self.columns().join(", "))
    }
}
