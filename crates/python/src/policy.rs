//! Policies that are written in Python: classes with `observe(samples)` and `step(view)`, over numpy arrays.
//!
//! They are entries of the registry as all others. A call takes the interpreter's lock once for a batch.

use std::path::Path;
use std::thread::{self, ThreadId};

use isotherm_core::parameters::Parameters;
use isotherm_core::{
    Allocation, Bytes, Move, Nanos, Operation, Outcome, PageId, Plan, Policy, SampleBatch, Signal, Signals,
    TierId, Weights, Work,
};
use isotherm_policies::{BuildError, Entry, Hosts, Library};
use numpy::{AllowTypeChange, PyArray1, PyArrayLike1};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// In arrays of tiers: a page that is not mapped.
const NOWHERE: u8 = u8::MAX;

/// The sampling that a policy asks for. One of `period` (accesses of each thread) and `frequency` (samples a
/// second of each thread); `batch` samples or `tick` seconds end a batch.
#[pyclass(frozen, from_py_object, module = "isotherm")]
#[derive(Clone)]
pub(crate) struct Sampling(isotherm_core::Sampling);

#[pymethods]
impl Sampling {
    #[new]
    #[pyo3(signature = (*, period=None, frequency=None, batch=4096, tick=1.0, stores=false, each_tier=false))]
    fn new(
        period: Option<u64>,
        frequency: Option<u64>,
        batch: usize,
        tick: f64,
        stores: bool,
        each_tier: bool,
    ) -> PyResult<Self> {
        use isotherm_core::{SamplingRate, SamplingScope};
        let rate = match (period, frequency) {
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err("period and frequency: expected one of the two"));
            }
            (Some(1..), None) => SamplingRate::Period(period.unwrap_or(1)),
            (None, Some(1..)) => SamplingRate::Frequency(frequency.unwrap_or(1)),
            (None, None) => SamplingRate::Frequency(100_000),
            _ => return Err(PyValueError::new_err("period or frequency: expected at least 1")),
        };
        if batch == 0 || !(1e-6..=3600.0).contains(&tick) {
            let expected = "batch and tick: expected at least 1 sample, and from 1e-6 to 3600 seconds";
            return Err(PyValueError::new_err(expected));
        }
        let scope = if each_tier { SamplingScope::EachTier } else { SamplingScope::AllTiers };
        let asked = isotherm_core::Sampling::loads(rate, scope, batch, Nanos((tick * 1e9) as u64));
        Ok(Self(if stores { asked.and_stores() } else { asked }))
    }
}

/// The run that a policy is built for.
#[pyclass(frozen, get_all, module = "isotherm")]
pub(crate) struct Setup {
    /// One more than the largest page.
    pages: usize,
    /// Pages that the fast tier holds.
    fast: u64,
    /// Bytes of a page.
    page_size: u64,
    /// Number of tiers.
    tiers: usize,
    /// Seed of random choices.
    seed: u64,
}

/// A batch of samples, in the order in which they were taken: arrays of one length.
#[pyclass(frozen, get_all, module = "isotherm")]
pub(crate) struct Samples {
    /// Page of each (uint32).
    page: Py<PyArray1<u32>>,
    /// Tier that served it (uint8).
    tier: Py<PyArray1<u8>>,
    /// Whether it is a store (bool).
    store: Py<PyArray1<bool>>,
    /// Time in nanoseconds (uint64).
    time: Py<PyArray1<u64>>,
    /// Accesses that it stands for (uint32).
    weight: Py<PyArray1<u32>>,
    /// Latency in nanoseconds, 0 where it is not known (uint32).
    latency: Py<PyArray1<u32>>,
    /// Samples lost since the batch before.
    lost: u64,
}

impl Samples {
    fn new(py: Python<'_>, batch: &SampleBatch) -> Self {
        let samples = &batch.samples;
        Self {
            page: PyArray1::from_iter(py, samples.iter().map(|sample| sample.page.0)).unbind(),
            tier: PyArray1::from_iter(py, samples.iter().map(|sample| sample.tier.0)).unbind(),
            store: PyArray1::from_iter(py, samples.iter().map(|sample| sample.operation == Operation::Store))
                .unbind(),
            time: PyArray1::from_iter(py, samples.iter().map(|sample| sample.time.0)).unbind(),
            weight: PyArray1::from_iter(py, samples.iter().map(|sample| sample.weight)).unbind(),
            latency: PyArray1::from_iter(py, samples.iter().map(|sample| sample.latency)).unbind(),
            lost: batch.lost,
        }
    }
}

#[pymethods]
impl Samples {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.page.bind(py).len()
    }
}

/// A host's memory that is lent to Python for the time of a call, and the thread of the call.
#[derive(Clone, Copy)]
struct Lent(*mut (dyn isotherm_core::View + 'static), ThreadId);

// SAFETY: `View::lent` uses the pointer on the call's own thread alone. Python may drop it on any.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

/// The memory as a policy sees it: only within the call of `step` that it was given to.
#[pyclass(module = "isotherm")]
pub(crate) struct View {
    lent: Option<Lent>,
    now: Nanos,
    work: Work,
}

impl View {
    /// Calls with a view of Python's; returns what was charged to it, too.
    fn lend<'py, T>(
        py: Python<'py>,
        view: &mut dyn isotherm_core::View,
        now: Nanos,
        call: impl FnOnce(&Bound<'py, Self>) -> PyResult<T>,
    ) -> PyResult<(T, Work)> {
        let pointer: *mut (dyn isotherm_core::View + '_) = view;
        // SAFETY: only the lifetime changes, and the pointer is taken back below before `view` ends.
        let pointer = unsafe {
            std::mem::transmute::<*mut (dyn isotherm_core::View + '_), *mut (dyn isotherm_core::View + 'static)>(
                pointer,
            )
        };
        let lent = Some(Lent(pointer, thread::current().id()));
        let ours = Bound::new(py, Self { lent, now, work: Work::default() })?;
        let result = call(&ours);
        // A method that holds it has returned, for Python's code has.
        let mut ours = ours.try_borrow_mut()?;
        ours.lent = None;
        Ok((result?, ours.work))
    }

    fn lent(&mut self) -> PyResult<&mut dyn isotherm_core::View> {
        let gone =
            || PyRuntimeError::new_err("a view is valid only within the call of step() that it was given to");
        let Lent(pointer, thread) = self.lent.ok_or_else(gone)?;
        if thread != thread::current().id() {
            return Err(PyRuntimeError::new_err("a view is valid only on the thread that calls step()"));
        }
        // SAFETY: `lend` has lent it on this thread and not yet taken it back, and `&mut self` keeps every
        // other method out.
        Ok(unsafe { &mut *pointer })
    }

    fn tier(&mut self, tier: u8) -> PyResult<TierId> {
        let tiers = self.lent()?.tiers();
        if usize::from(tier) < tiers {
            return Ok(TierId(tier));
        }
        Err(PyValueError::new_err(format!("tier {tier}: expected a tier below {tiers}")))
    }
}

#[pymethods]
impl View {
    /// Time in nanoseconds.
    #[getter]
    fn now(&self) -> u64 {
        self.now.0
    }

    /// One more than the largest page so far.
    #[getter]
    fn pages(&mut self) -> PyResult<usize> {
        Ok(self.lent()?.pages())
    }

    /// Number of tiers.
    #[getter]
    fn tiers(&mut self) -> PyResult<usize> {
        Ok(self.lent()?.tiers())
    }

    /// Pages that a tier holds.
    fn capacity(&mut self, tier: u8) -> PyResult<u64> {
        let tier = self.tier(tier)?;
        Ok(self.lent()?.capacity(tier).0)
    }

    /// Free pages of a tier.
    fn free(&mut self, tier: u8) -> PyResult<u64> {
        let tier = self.tier(tier)?;
        Ok(self.lent()?.free(tier).0)
    }

    /// Latency of a load from the idle tier, in nanoseconds.
    fn latency(&mut self, tier: u8) -> PyResult<u64> {
        let tier = self.tier(tier)?;
        Ok(self.lent()?.latency(tier).0)
    }

    /// Bandwidth at which a tier is read, in bytes a second; 0 where nobody tells.
    fn bandwidth(&mut self, tier: u8) -> PyResult<u64> {
        let tier = self.tier(tier)?;
        Ok(self.lent()?.bandwidth(tier))
    }

    /// Tier of each page (uint8), 255 for one that is not mapped.
    fn tiers_of<'py>(
        &mut self,
        py: Python<'py>,
        pages: PyArrayLike1<'py, u32, AllowTypeChange>,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let view = self.lent()?;
        let pages = checked(&pages, view.pages())?;
        let mut tiers = vec![None; pages.len()];
        view.tiers_of(&pages, &mut tiers);
        Ok(PyArray1::from_iter(py, tiers.into_iter().map(|tier| tier.map_or(NOWHERE, |tier| tier.0))))
    }

    /// Walks the page table: returns the page to go on from, or None at the end, and at most `limit` mapped
    /// pages from `cursor` on (uint32) with their tiers (uint8).
    fn walk<'py>(&mut self, py: Python<'py>, cursor: u32, limit: usize) -> PyResult<Walked<'py>> {
        let (view, mut found) = (self.lent()?, Vec::new());
        let limit = limit.min(view.pages());
        let next = view.walk(PageId(cursor), limit, &mut found);
        let pages = PyArray1::from_iter(py, found.iter().map(|(page, _)| page.0));
        let tiers = PyArray1::from_iter(py, found.iter().map(|(_, tier)| tier.0));
        Ok((next.map(|page| page.0), pages, tiers))
    }

    /// Declares work since the step before: random cache lines touched, simple operations, bytes swept in
    /// order. The run is charged for it.
    #[pyo3(signature = (*, touches=0, operations=0, swept=0))]
    fn charge(&mut self, touches: u64, operations: u64, swept: u64) {
        self.work.touches += touches;
        self.work.operations += operations;
        self.work.swept += swept;
    }
}

type Walked<'py> = (Option<u32>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u8>>);

/// Returns pages that are below `end`.
fn checked(pages: &PyArrayLike1<'_, u32, AllowTypeChange>, end: usize) -> PyResult<Vec<PageId>> {
    let pages: Vec<PageId> = pages.as_array().iter().map(|&page| PageId(page)).collect();
    match pages.iter().find(|page| page.index() >= end) {
        Some(page) => Err(PyValueError::new_err(format!("page {}: expected a page below {end}", page.0))),
        None => Ok(pages),
    }
}

/// A policy that is an object of Python.
struct PythonPolicy {
    name: &'static str,
    object: Py<PyAny>,
    sampling: isotherm_core::Sampling,
    allocation: Allocation,
    metadata: Bytes,
    settles: bool,
    failure: Option<String>,
}

impl PythonPolicy {
    fn build(name: &'static str, class: &Py<PyAny>, setup: &isotherm_core::Setup) -> PyResult<Self> {
        Python::attach(|py| {
            let passed = Setup {
                pages: setup.pages,
                fast: setup.fast.0,
                page_size: setup.page_size.bytes().0,
                tiers: setup.tiers,
                seed: setup.seed,
            };
            let object = class.bind(py).call1((passed,))?;
            let sampling = match object.getattr_opt("sampling")? {
                Some(sampling) => sampling.extract::<Sampling>()?,
                None => Sampling::new(None, None, 4096, 1.0, false, false)?,
            };
            let allocation = match object
                .getattr_opt("allocation")?
                .map(|place| place.extract::<String>())
                .transpose()?
                .as_deref()
            {
                None | Some("fast-first") => Allocation::FastFirst,
                Some("slow-first") => Allocation::SlowFirst,
                Some("weighted") => Allocation::Weighted(Weights::OF_HOST),
                Some(other) => {
                    let expected = "expected 'fast-first', 'slow-first' or 'weighted'";
                    return Err(PyValueError::new_err(format!("allocation '{other}': {expected}")));
                }
            };
            for method in ["observe", "step"] {
                if !object.getattr_opt(method)?.is_some_and(|method| method.is_callable()) {
                    return Err(PyTypeError::new_err(format!("a policy needs a method '{method}'")));
                }
            }
            Ok(Self {
                name,
                metadata: metadata(&object)?,
                settles: object.hasattr("settle")?,
                object: object.unbind(),
                sampling: sampling.0,
                allocation,
                failure: None,
            })
        })
    }

    /// Calls into Python unless the policy has failed, and keeps the failure.
    fn call(&mut self, what: &str, call: impl FnOnce(Python<'_>, &mut Self) -> PyResult<()>) -> bool {
        if self.failure.is_none() {
            let failed = Python::attach(|py| call(py, self).err().map(|error| describe(py, &error)));
            self.failure = failed.map(|failed| format!("policy {}: {what}: {failed}", self.name));
        }
        self.failure.is_none()
    }
}

fn metadata(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let bytes = object.getattr_opt("metadata_bytes")?.map(|bytes| bytes.extract()).transpose()?;
    Ok(Bytes(bytes.unwrap_or(0)))
}

/// Describes an error in one line, with the place where it was raised.
fn describe(py: Python<'_>, error: &PyErr) -> String {
    let place = || -> Option<(String, String)> {
        let frames = py.import("traceback").ok()?.call_method1("extract_tb", (error.traceback(py)?,)).ok()?;
        let last = frames.get_item(-1).ok()?;
        let (file, line) = (last.getattr("filename").ok()?, last.getattr("lineno").ok()?);
        Some((file.to_string(), line.to_string()))
    };
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    match place() {
        // The package's own messages say all.
        Some((file, _)) if file.ends_with("/isotherm/_policy.py") => first(error.value(py).to_string()),
        Some((file, line)) => format!("{} ({file}, line {line})", first(error.to_string())),
        None => first(error.to_string()),
    }
}

/// Reads the moves that `step` returned: None, or pages and the tiers that they go to.
fn moves(returned: &Bound<'_, PyAny>, view: &mut dyn isotherm_core::View, plan: &mut Plan) -> PyResult<()> {
    if returned.is_none() {
        return Ok(());
    }
    let expected = || PyTypeError::new_err("step() returned no moves; expected None or (pages, tiers)");
    let pair = returned.cast::<PyTuple>().map_err(|_| expected())?;
    if pair.len() != 2 {
        return Err(expected());
    }
    let pages: PyArrayLike1<'_, u32, AllowTypeChange> = pair.get_item(0)?.extract()?;
    let pages = checked(&pages, view.pages())?;
    let tiers = pair.get_item(1)?;
    let tiers: Vec<u8> = match tiers.extract::<u8>() {
        Ok(tier) => vec![tier; pages.len()],
        Err(_) => tiers.extract::<PyArrayLike1<'_, u8, AllowTypeChange>>()?.as_array().to_vec(),
    };
    if tiers.len() != pages.len() {
        let (pages, tiers) = (pages.len(), tiers.len());
        return Err(PyValueError::new_err(format!("{pages} pages and {tiers} tiers; expected as many")));
    }
    if let Some(tier) = tiers.iter().find(|&&tier| usize::from(tier) >= view.tiers()) {
        return Err(PyValueError::new_err(format!("tier {tier}: expected a tier below {}", view.tiers())));
    }
    plan.moves.extend(pages.into_iter().zip(tiers).map(|(page, tier)| Move { page, to: TierId(tier) }));
    Ok(())
}

impl Policy for PythonPolicy {
    fn signals(&self) -> Signals {
        let loads = Signals::NONE.with(Signal::LoadSamples);
        if self.sampling.stores { loads.with(Signal::StoreSamples) } else { loads }
    }

    fn sampling(&self) -> isotherm_core::Sampling {
        self.sampling
    }

    fn allocation(&self) -> Allocation {
        self.allocation
    }

    fn observe(&mut self, batch: &SampleBatch, _view: &mut dyn isotherm_core::View) {
        self.call("observe", |py, policy| {
            policy.object.call_method1(py, "observe", (Samples::new(py, batch),)).map(drop)
        });
    }

    fn step(&mut self, now: Nanos, view: &mut dyn isotherm_core::View, plan: &mut Plan) {
        let stepped = self.call("step", |py, policy| {
            let object = policy.object.bind(py);
            let (returned, work) = View::lend(py, view, now, |view| object.call_method1("step", (view,)))?;
            plan.work = work;
            policy.metadata = metadata(object)?;
            moves(&returned, view, plan)
        });
        if !stepped {
            plan.clear();
        }
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _view: &mut dyn isotherm_core::View) {
        if !self.settles {
            return;
        }
        self.call("settle", |py, policy| {
            let pages = PyArray1::from_iter(py, plan.moves.iter().map(|order| order.page.0));
            let tiers = PyArray1::from_iter(py, plan.moves.iter().map(|order| order.to.0));
            let status = PyArray1::from_iter(py, outcome.moves.iter().map(|&status| status as u8));
            policy.object.call_method1(py, "settle", (pages, tiers, status)).map(drop)
        });
    }

    fn metadata(&self) -> Bytes {
        self.metadata
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}

/// Adds a policy of Python to the registry, in place of an earlier one of its name. `class` is called with
/// the run for each instance.
#[pyfunction]
#[pyo3(signature = (name, class, title, paper, help, file=None))]
pub(crate) fn register(
    name: String,
    class: Py<PyAny>,
    title: String,
    paper: String,
    help: String,
    file: Option<&str>,
) -> PyResult<()> {
    let leaked = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let name = leaked(name);
    let build = move |_: &Parameters, setup: &isotherm_core::Setup| {
        let failed = |error: PyErr| {
            let message = Python::attach(|py| describe(py, &error));
            BuildError::Library { policy: name, message }
        };
        PythonPolicy::build(name, &class, setup).map(|policy| Box::new(policy) as _).map_err(failed)
    };
    let mut entry = Entry::policy(name, leaked(title), &[], Box::leak(Box::new(build)))
        .paper(leaked(paper))
        .help(leaked(help));
    entry.hosts = Hosts::NONE;
    entry.library = file.and_then(|file| {
        let fingerprint = isotherm_cli::fingerprint(Path::new(file))?;
        Some(Library { path: file.into(), fingerprint })
    });
    let added = isotherm_policies::replace(entry).map(drop);
    added.map_err(|_| {
        PyValueError::new_err(format!("there is a policy '{name}' already; expected another name"))
    })
}

/// Loads a policy that is written as `FILE.py:CLASS`.
pub(crate) fn load(name: &str) -> Result<&'static Entry, String> {
    let registered = Python::attach(|py| -> PyResult<String> {
        let loaded = py.import("isotherm._policy")?.call_method1("load", (name,));
        loaded.and_then(|name| name.extract()).map_err(|error| PyValueError::new_err(describe(py, &error)))
    });
    let name = registered.map_err(|error| Python::attach(|py| format!("{name}: {}", error.value(py))))?;
    isotherm_policies::find(&name).map_err(|error| error.to_string())
}
