//! Results of simulations as tables.
//!
//! Columns have the names of the JSON results (docs/reference/result-schema.md); those of a part are joined
//! to the part's name: `parts_sampling`. So both have one definition.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt8Array,
    UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use isotherm_sim::{Report, Stream, UNMAPPED};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::tables::Table;

/// The result of `simulate`.
#[pyclass(frozen, module = "isotherm")]
pub(crate) struct Simulation {
    report: Report,
    pages: Arc<Pages>,
}

/// The pages of an input, in the order of a run's tiers.
struct Pages {
    process: UInt32Array,
    address: UInt64Array,
    accesses: UInt64Array,
    stores: UInt64Array,
}

impl Simulation {
    pub(crate) fn new(report: Report, stream: &Stream) -> Self {
        let count = stream.pages.len();
        let (mut accesses, mut stores) = (vec![0u64; count], vec![0u64; count]);
        for access in &stream.accesses {
            accesses[access.page as usize] += 1;
            stores[access.page as usize] += u64::from(access.store());
        }
        let pages = Pages {
            process: stream.pages.iter().map(|&(process, _)| process).collect(),
            address: stream.pages.iter().map(|&(_, address)| address).collect(),
            accesses: accesses.into(),
            stores: stores.into(),
        };
        Self { report, pages: Arc::new(pages) }
    }

    /// Returns each run as JSON, without its lists of intervals and rounds.
    fn runs_as_json(&self) -> Vec<Map<String, Value>> {
        let object = |run| match serde_json::to_value(run) {
            Ok(Value::Object(mut run)) => {
                run.remove("timeline");
                if let Some(Value::Object(long)) = run.get_mut("long_run") {
                    long.remove("each");
                }
                if let Some(parameters) = run.get_mut("parameters") {
                    *parameters = Value::String(parameters.to_string());
                }
                run
            }
            _ => Map::new(),
        };
        self.report.runs.iter().map(object).collect()
    }

    fn timelines_as_json(&self) -> Vec<Map<String, Value>> {
        let mut rows = Vec::new();
        for run in &self.report.runs {
            for (number, interval) in run.timeline.iter().enumerate() {
                let Ok(Value::Object(fields)) = serde_json::to_value(interval) else { continue };
                let mut row = Map::new();
                row.insert("policy".into(), run.policy.clone().into());
                row.insert("fast".into(), run.fast.clone().into());
                row.insert("interval".into(), number.into());
                row.extend(fields);
                rows.push(row);
            }
        }
        rows
    }
}

fn refused(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Returns a row's values by column: parts under joined names, elements of lists under numbers.
fn flatten(prefix: &str, value: &Value, into: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let joined = if prefix.is_empty() { name.clone() } else { format!("{prefix}_{name}") };
                flatten(&joined.replace('-', "_"), value, into);
            }
        }
        Value::Array(elements) => {
            for (number, value) in elements.iter().enumerate() {
                flatten(&format!("{prefix}_{number}"), value, into);
            }
        }
        value => into.push((prefix.to_owned(), value.clone())),
    }
}

/// Makes a table of rows; a value that a row lacks is null.
fn table(rows: Vec<Map<String, Value>>) -> PyResult<Table> {
    let (mut names, mut columns) = (Vec::<String>::new(), BTreeMap::<String, Vec<Value>>::new());
    let count = rows.len();
    for (number, row) in rows.into_iter().enumerate() {
        let mut values = Vec::new();
        flatten("", &Value::Object(row), &mut values);
        for (name, value) in values {
            let column = columns.entry(name.clone()).or_insert_with(|| {
                names.push(name);
                vec![Value::Null; count]
            });
            column[number] = value;
        }
    }
    let filled = names.into_iter().filter_map(|name| {
        let values = columns.remove(&name)?;
        values.iter().any(|value| !value.is_null()).then(|| (name, array(&values)))
    });
    RecordBatch::try_from_iter_with_nullable(filled.map(|(name, array)| (name, array, true)))
        .map(Table::of)
        .map_err(refused)
}

/// Makes a column of the narrowest type that holds all its values.
fn array(values: &[Value]) -> ArrayRef {
    let all = |is: fn(&Value) -> bool| values.iter().all(|value| value.is_null() || is(value));
    if all(Value::is_boolean) {
        return Arc::new(values.iter().map(Value::as_bool).collect::<BooleanArray>());
    }
    if all(Value::is_u64) {
        return Arc::new(values.iter().map(Value::as_u64).collect::<UInt64Array>());
    }
    if all(Value::is_number) {
        return Arc::new(values.iter().map(Value::as_f64).collect::<Float64Array>());
    }
    Arc::new(values.iter().map(Value::as_str).collect::<StringArray>())
}

#[pymethods]
impl Simulation {
    /// The runs, a row for each policy and size.
    #[getter]
    fn runs(&self) -> PyResult<Table> {
        table(self.runs_as_json())
    }

    /// The runs over time, a row for each interval of each run.
    #[getter]
    fn timelines(&self) -> PyResult<Table> {
        table(self.timelines_as_json())
    }

    /// The input's pages, a row for each page of each run of a policy.
    #[getter]
    fn pages(&self) -> PyResult<Table> {
        let names = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let schema = Arc::new(Schema::new(vec![
            Field::new("policy", names(), false),
            Field::new("fast", names(), false),
            Field::new("process", DataType::UInt32, false),
            Field::new("address", DataType::UInt64, false),
            Field::new("accesses", DataType::UInt64, false),
            Field::new("stores", DataType::UInt64, false),
            Field::new("tier", DataType::UInt8, true),
        ]));
        let runs = self.report.runs.iter().filter(|run| !run.page_tiers.is_empty());
        let runs: Vec<_> =
            runs.map(|run| (run.policy.clone(), run.fast.clone(), run.page_tiers.clone())).collect();
        let (runs, pages, known) = (Arc::new(runs), Arc::clone(&self.pages), Arc::clone(&schema));
        Ok(Table::new(schema, move || {
            let (runs, pages, schema) = (Arc::clone(&runs), Arc::clone(&pages), Arc::clone(&known));
            let (numbers, columns) = (0..runs.len(), Arc::clone(&known));
            let batch = move |number: usize| {
                let (policy, fast, tiers) = &runs[number];
                let tier = |&tier: &u8| (tier != UNMAPPED).then_some(tier);
                let values: Vec<ArrayRef> = vec![
                    repeated(policy, tiers.len())?,
                    repeated(fast, tiers.len())?,
                    Arc::new(pages.process.clone()),
                    Arc::new(pages.address.clone()),
                    Arc::new(pages.accesses.clone()),
                    Arc::new(pages.stores.clone()),
                    Arc::new(tiers.iter().map(tier).collect::<UInt8Array>()),
                ];
                RecordBatch::try_new(Arc::clone(&columns), values)
            };
            Ok(Box::new(RecordBatchIterator::new(numbers.map(batch), schema)))
        }))
    }

    /// The whole result as the JSON of `isotherm simulate --json`.
    #[getter]
    fn json(&self) -> String {
        isotherm_report::json(&self.report)
    }

    fn __repr__(&self) -> String {
        isotherm_report::table(&self.report)
    }
}

/// Returns a column of one text.
fn repeated(text: &str, count: usize) -> Result<ArrayRef, ArrowError> {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    builder.append_n(text, count)?;
    Ok(Arc::new(builder.finish()))
}
