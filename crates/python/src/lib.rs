//! The extension module behind the Python package `isotherm`, in `python/isotherm`.
//!
//! The package's functions take options under the names that the verbs of the command line have; here they
//! become a command line again, so that both share one table of defaults and one code. Work runs on threads
//! of its own (`job`), without the interpreter's lock; data passes by Arrow's C interface (`tables`);
//! policies in Python see numpy arrays, a batch at a time (`policy`).
//!
//! `unsafe` stands in `policy`, which lends a host's memory to Python for the time of a call, and in what
//! pyo3's macros write.

#![allow(unsafe_code)]

mod job;
mod options;
mod policy;
mod results;
mod tables;
mod trace;

use std::ffi::OsString;
use std::path::PathBuf;

use isotherm_cli::{Embedding, Failure, embed};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// As the binary's, in the extension's own arrays: samples and replays look pages up at random.
#[global_allocator]
static ALLOCATOR: isotherm_linux::HugePagesOrEnd = isotherm_linux::HugePagesOrEnd;

/// Returns a failure as Python's: what a user can mend as `ValueError`, anything else as `RuntimeError`.
fn raised(failure: &Failure) -> PyErr {
    match failure {
        Failure::Usage(message) => PyValueError::new_err(message.clone()),
        failure => PyRuntimeError::new_err(failure.to_string()),
    }
}

/// Tells the command line's code about this interpreter.
#[pyfunction]
fn embedded(file: PathBuf, command: Vec<OsString>) {
    embed(Embedding { file, command, load_policy: policy::load });
}

/// Runs a command line, whose first word is the program's name, and returns its exit status.
#[pyfunction]
fn main(py: Python<'_>, line: Vec<OsString>) -> u8 {
    py.detach(|| isotherm_cli::main(line))
}

#[pymodule]
mod _isotherm {
    #[pymodule_export]
    use super::{embedded, main};
    #[pymodule_export]
    use crate::job::{Job, hits, simulate, size};
    #[pymodule_export]
    use crate::options::{line, options};
    #[pymodule_export]
    use crate::policy::{Samples, Sampling, Setup, View, register};
    #[pymodule_export]
    use crate::results::Simulation;
    #[pymodule_export]
    use crate::tables::Table;
    #[pymodule_export]
    use crate::trace::Trace;
}
