//! Traces as Arrow's tables, and tables as traces.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, BooleanArray, RecordBatch, RecordBatchReader, StringArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_buffer::BooleanBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use isotherm_core::cache::LINE_SHIFT;
use isotherm_trace::{
    Change, MappingEvent, Provenance, Rows, Spaces, TraceError, TraceReader, TraceWriter, read_mappings,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PyRecordBatchReader;

use crate::tables::Table;

/// Instructions of a row whose table does not tell them: as of programs with 10 misses per thousand.
const INSTRUCTIONS: u32 = 100;

/// A trace on disk: accesses of a program that missed the last-level cache, in the order in which they
/// happened.
#[pyclass(frozen, module = "isotherm")]
pub(crate) struct Trace {
    path: PathBuf,
    provenance: String,
    rows: u64,
}

fn refused(error: &TraceError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn schema() -> SchemaRef {
    let column = |name: &str, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![
        column("row", DataType::UInt64),
        column("process", DataType::UInt32),
        column("thread", DataType::UInt32),
        column("instructions", DataType::UInt32),
        column("line", DataType::UInt64),
        column("store", DataType::Boolean),
        column("dependence", DataType::UInt8),
    ]))
}

/// The rows that are wanted.
#[derive(Clone)]
struct Wanted {
    start: u64,
    stop: u64,
    process: Option<u32>,
    thread: Option<u32>,
    mapping: Option<String>,
}

impl Wanted {
    fn is_all(&self) -> bool {
        self.process.is_none() && self.thread.is_none() && self.mapping.is_none()
    }
}

/// Reads a trace's wanted rows, batch by batch.
struct Batches {
    reader: TraceReader,
    wanted: Wanted,
    /// Number of the next row.
    next: u64,
    /// Events that have not come yet, in reverse order.
    events: Vec<MappingEvent>,
    spaces: Spaces,
    schema: SchemaRef,
}

impl Batches {
    /// Returns whether a row is wanted, and follows the mappings to it.
    fn wants(&mut self, rows: &Rows, index: usize, number: u64) -> bool {
        if self.wanted.mapping.is_some() {
            while let Some(event) = self.events.pop_if(|event| event.row <= number) {
                self.spaces.apply(&event);
            }
        }
        let Wanted { start, process, thread, mapping, .. } = &self.wanted;
        let is = |wanted: Option<u32>, found: u32| wanted.is_none_or(|wanted| wanted == found);
        number >= *start
            && is(*process, rows.process[index])
            && is(*thread, rows.thread[index])
            && mapping.as_ref().is_none_or(|name| {
                let found = self.spaces.find(rows.process[index], rows.line[index] << LINE_SHIFT);
                found.is_some_and(|(_, _, mapping)| self.spaces.mappings()[mapping].name == *name)
            })
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, TraceError> {
        let mut rows = Rows::default();
        while self.next < self.wanted.stop && self.reader.next(&mut rows)? {
            let first = self.next;
            self.next += rows.len() as u64;
            rows.truncate(usize::try_from(self.wanted.stop - first).unwrap_or(usize::MAX));
            if self.next <= self.wanted.start && self.wanted.mapping.is_none() {
                continue;
            }
            if first >= self.wanted.start && self.wanted.is_all() {
                let numbers = (first..first + rows.len() as u64).collect();
                return Ok(Some(batch(&self.schema, numbers, rows)));
            }
            let (mut kept, mut numbers) = (Rows::default(), Vec::new());
            for index in 0..rows.len() {
                let number = first + index as u64;
                if self.wants(&rows, index, number) {
                    kept.push(rows.get(index));
                    numbers.push(number);
                }
            }
            if !numbers.is_empty() {
                return Ok(Some(batch(&self.schema, numbers, kept)));
            }
        }
        Ok(None)
    }
}

/// Gives the rows' own memory to Arrow; only the bits of stores are copied.
fn batch(schema: &SchemaRef, numbers: Vec<u64>, rows: Rows) -> RecordBatch {
    let stores = BooleanBuffer::collect_bool(rows.len(), |index| rows.store[index] != 0);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from(numbers)),
        Arc::new(UInt32Array::from(rows.process)),
        Arc::new(UInt32Array::from(rows.thread)),
        Arc::new(UInt32Array::from(rows.instructions)),
        Arc::new(UInt64Array::from(rows.line)),
        Arc::new(BooleanArray::new(stores, None)),
        Arc::new(UInt8Array::from(rows.dependence)),
    ];
    RecordBatch::try_new(Arc::clone(schema), columns)
        .unwrap_or_else(|_| RecordBatch::new_empty(Arc::clone(schema)))
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Trace {
    fn table(&self, wanted: Wanted) -> Table {
        let (path, schema) = (self.path.clone(), schema());
        let known = Arc::clone(&schema);
        Table::new(schema, move || {
            let reader = TraceReader::open(&path).map_err(|error| refused(&error))?;
            let mut events = Vec::new();
            if wanted.mapping.is_some() {
                events = read_mappings(&path).map_err(|error| refused(&error))?.ok_or_else(|| {
                    let lacks = "it has no mappings; expected a recording by `isotherm record`";
                    PyValueError::new_err(format!("{}: {lacks}", path.display()))
                })?;
                events.reverse();
            }
            let (wanted, schema) = (wanted.clone(), Arc::clone(&known));
            Ok(Box::new(Batches { reader, wanted, next: 0, events, spaces: Spaces::default(), schema }))
        })
    }
}

#[pymethods]
impl Trace {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let reader = TraceReader::open(&path).map_err(|error| refused(&error))?;
        let provenance = serde_json::to_string(reader.provenance());
        let provenance = provenance.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { rows: reader.rows(), provenance, path })
    }

    /// Writes rows of any table of Arrow as a trace.
    #[staticmethod]
    #[pyo3(signature = (path, table, *, command="", note=""))]
    fn write(path: PathBuf, table: &Bound<'_, PyAny>, command: &str, note: &str) -> PyResult<Self> {
        let reader: PyRecordBatchReader = table.extract()?;
        let reader = reader.into_reader()?;
        let mut provenance = Provenance::new(command);
        provenance.note = note.into();
        provenance.recorder = "Python".into();
        let columns = reader.schema();
        provenance.dependence = columns.column_with_name("dependence").is_some();
        let written = table.py().detach(|| write(reader, path.clone(), provenance));
        written.map_err(PyValueError::new_err)?;
        Self::new(path)
    }

    /// Returns the rows from `start` on before `stop`, of a process, a thread, or memory of one name.
    #[pyo3(signature = (start=0, stop=None, *, process=None, thread=None, mapping=None))]
    fn rows(
        &self,
        start: u64,
        stop: Option<u64>,
        process: Option<u32>,
        thread: Option<u32>,
        mapping: Option<String>,
    ) -> Table {
        self.table(Wanted { start, stop: stop.unwrap_or(u64::MAX), process, thread, mapping })
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.rows(0, None, None, None, None).stream(py, requested_schema)
    }

    /// Mappings over time: a row for each change; empty for a trace without mappings.
    #[getter]
    fn mappings(&self) -> PyResult<Table> {
        let events = read_mappings(&self.path).map_err(|error| refused(&error))?.unwrap_or_default();
        let mut kept = Vec::new();
        for event in events {
            let (kind, start, end, name) = match event.change {
                Change::Map { start, end, name } => ("map", start, end, name),
                Change::Site { start, end, .. } => ("site", start, end, String::new()),
                Change::Move { start, end, .. } => ("move", start, end, String::new()),
                Change::Unmap { start, end } => ("unmap", start, end, String::new()),
                Change::Program { .. } | Change::Fork { .. } | Change::Thread { .. } => continue,
            };
            kept.push((event.row, event.process, kind, start, end, name));
        }
        let columns: [(&str, ArrayRef); 6] = [
            ("row", Arc::new(kept.iter().map(|event| event.0).collect::<UInt64Array>())),
            ("process", Arc::new(kept.iter().map(|event| event.1).collect::<UInt32Array>())),
            ("event", Arc::new(kept.iter().map(|event| Some(event.2)).collect::<StringArray>())),
            ("start", Arc::new(kept.iter().map(|event| event.3).collect::<UInt64Array>())),
            ("end", Arc::new(kept.iter().map(|event| event.4).collect::<UInt64Array>())),
            ("name", Arc::new(kept.iter().map(|event| Some(event.5.as_str())).collect::<StringArray>())),
        ];
        RecordBatch::try_from_iter(columns)
            .map(Table::of)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Its path.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Its origin: command, recorder, cache and more.
    #[getter]
    fn provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.provenance,))
    }

    fn __fspath__(&self) -> &OsStr {
        self.path.as_os_str()
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.rows).unwrap_or(usize::MAX)
    }

    fn __repr__(&self) -> String {
        format!("<isotherm.Trace {}: {} rows>", self.path.display(), self.rows)
    }
}

fn write(
    reader: Box<dyn RecordBatchReader + Send>,
    path: PathBuf,
    provenance: Provenance,
) -> Result<(), String> {
    let (schema, name) = (reader.schema(), path.display().to_string());
    let has = |column: &str| schema.column_with_name(column).is_some();
    if has("line") == has("address") {
        let known = "instructions, process, thread, store, dependence";
        return Err(format!(
            "{name}: the table has the columns {}; expected one of 'line' (address >> 6) and \
                            'address', and beside it any of {known}",
            schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ")
        ));
    }
    let mut writer = TraceWriter::create_whole(path, provenance).map_err(|error| error.to_string())?;
    for batch in reader {
        let batch = batch.map_err(|error| format!("{name}: {error}"))?;
        let rows = rows_of(&batch).map_err(|problem| format!("{name}: {problem}"))?;
        writer.append(&rows).map_err(|error| error.to_string())?;
    }
    writer.finish().map(drop).map_err(|error| error.to_string())
}

fn rows_of(batch: &RecordBatch) -> Result<Rows, String> {
    let count = batch.num_rows();
    let column = |name: &str, kind: DataType| -> Result<Option<ArrayRef>, String> {
        let Some(found) = batch.column_by_name(name) else { return Ok(None) };
        // A value that does not fit is an error, and not null.
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let values = cast_with_options(found, &kind, &options)
            .map_err(|error| format!("column '{name}': {error}; expected {kind}"))?;
        if values.null_count() > 0 {
            return Err(format!("column '{name}' has nulls; expected a value in each row"));
        }
        Ok(Some(values))
    };
    let numbers = |name: &str, default: u32| -> Result<Vec<u32>, String> {
        let found = column(name, DataType::UInt32)?;
        let values = found.map(|found| found.as_primitive::<UInt32Type>().values().to_vec());
        Ok(values.unwrap_or_else(|| vec![default; count]))
    };
    let wide = |name| column(name, DataType::UInt64);
    let shifted = |found: ArrayRef, shift: u32| {
        found.as_primitive::<UInt64Type>().values().iter().map(|value| value >> shift).collect::<Vec<u64>>()
    };
    let line = match (wide("line")?, wide("address")?) {
        (Some(line), _) => shifted(line, 0),
        (None, Some(address)) => shifted(address, LINE_SHIFT),
        (None, None) => return Err("it has neither a column 'line' nor 'address'".into()),
    };
    let store = column("store", DataType::Boolean)?
        .map(|found| found.as_boolean().values().iter().map(u8::from).collect());
    let dependence = column("dependence", DataType::UInt8)?
        .map(|found| found.as_primitive::<UInt8Type>().values().to_vec());
    Ok(Rows {
        process: numbers("process", 0)?,
        thread: numbers("thread", 0)?,
        instructions: numbers("instructions", INSTRUCTIONS)?,
        line,
        store: store.unwrap_or_else(|| vec![0; count]),
        dependence: dependence.unwrap_or_else(|| vec![0; count]),
    })
}
