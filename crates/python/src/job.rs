//! Work on a thread of its own, which Python's thread looks at and can leave at once.

use std::any::Any;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use isotherm_cli::{Failure, Watch, replays};
use isotherm_core::Pages;
use isotherm_sim::{Algorithm, cache_hits};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::raised;
use crate::results::Simulation;

/// Result of a job.
enum Made {
    Simulated(Box<Simulation>),
    /// A result of `size`, as JSON.
    Sized(String),
    /// Accesses of a stream, and hits of each algorithm at each capacity, in pages.
    Hits(u64, Vec<(String, u64, u64)>),
}

struct Shared {
    watch: Watch,
    made: Mutex<Option<Result<Made, Failure>>>,
    ended: Condvar,
}

/// Work that goes on while Python does something else.
#[pyclass(frozen, module = "isotherm")]
pub(crate) struct Job(Arc<Shared>);

impl Job {
    fn begin(work: impl FnOnce(&Watch) -> Result<Made, Failure> + Send + 'static) -> PyResult<Self> {
        let shared =
            Arc::new(Shared { watch: Watch::new(true), made: Mutex::new(None), ended: Condvar::new() });
        let ours = Arc::clone(&shared);
        let run = move || {
            let made = catch_unwind(AssertUnwindSafe(|| work(&ours.watch)));
            let made = made.unwrap_or_else(|panic| Err(Failure::Failed(message(panic.as_ref()))));
            *ours.made.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
            ours.ended.notify_all();
        };
        thread::Builder::new().name("isotherm".into()).spawn(run)?;
        Ok(Self(shared))
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it tells no reason");
    format!("an error in Isotherm, which its authors want to know of: {text}")
}

#[pymethods]
impl Job {
    /// Waits for the end, at most so many seconds. Returns whether it has come.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let limit = Duration::from_secs_f64(seconds.clamp(0.0, 3600.0));
        py.detach(|| {
            let made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.0.ended.wait_timeout_while(made, limit, |made| made.is_none());
            waited.unwrap_or_else(PoisonError::into_inner).0.is_some()
        })
    }

    /// Returns the present part of the work, its steps that are done, and those in all where they are known.
    fn position(&self) -> (String, u64, Option<u64>) {
        self.0.watch.position()
    }

    /// Ends the work within milliseconds, without a result.
    fn stop(&self) {
        self.0.watch.stop();
    }

    /// Returns what the work has made, once; raises its error.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner).take();
        match made {
            None => Err(PyRuntimeError::new_err("the job has not ended, or its result was taken")),
            Some(Err(failure)) => Err(raised(&failure)),
            Some(Ok(Made::Simulated(simulation))) => Ok(Py::new(py, *simulation)?.into_any()),
            Some(Ok(Made::Sized(json))) => Ok(json.into_pyobject(py)?.into_any().unbind()),
            Some(Ok(Made::Hits(accesses, hits))) => {
                Ok((accesses, hits).into_pyobject(py)?.into_any().unbind())
            }
        }
    }
}

/// Begins the work of `isotherm simulate`.
#[pyfunction]
pub(crate) fn simulate(line: Vec<OsString>) -> PyResult<Job> {
    Job::begin(move |watch| {
        let (report, loaded) = replays::simulate(&line, watch)?;
        Ok(Made::Simulated(Box::new(Simulation::new(report, &loaded.input.stream))))
    })
}

/// Begins the work of `isotherm size`.
#[pyfunction]
pub(crate) fn size(line: Vec<OsString>) -> PyResult<Job> {
    Job::begin(move |watch| replays::size(&line, watch).map(Made::Sized))
}

/// Begins to count the hits of caches with these algorithms and capacities, over the input of a command line
/// of `isotherm simulate`.
#[pyfunction]
pub(crate) fn hits(line: Vec<OsString>, algorithms: Vec<String>, capacities: Vec<u64>) -> PyResult<Job> {
    let found = algorithms.iter().map(|name| Algorithm::find(name).ok_or(name));
    let found: Result<Vec<Algorithm>, &String> = found.collect();
    let found = found.map_err(|name| {
        let known = Algorithm::ALL.map(Algorithm::name).join(", ");
        raised(&Failure::Usage(format!("there is no algorithm '{name}'; expected one of {known}")))
    })?;
    Job::begin(move |watch| {
        let loaded = replays::load(&line, watch)?;
        let stream = &loaded.input.stream;
        let runs =
            found.iter().flat_map(|&algorithm| capacities.iter().map(move |&pages| (algorithm, pages)));
        let runs: Vec<_> = runs.collect();
        let count = |(algorithm, pages): (Algorithm, u64)| {
            (algorithm.name().to_owned(), pages, cache_hits(stream, algorithm, Pages(pages)))
        };
        Ok(Made::Hits(stream.accesses.len() as u64, runs.into_iter().map(count).collect()))
    })
}
