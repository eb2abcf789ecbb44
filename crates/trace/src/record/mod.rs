//! Defines how a real program is recorded: QEMU's user mode runs it with our plugin, and the misses of the plugin's
//! cache model become a trace while the program runs.
//!
//! # The parts
//! The *plugin* (`crates/trace/plugin`) is loaded by QEMU in each process of the program's tree and writes misses into
//! the *pool*, one file of at most 256 MiB that all of them share. [`record`] starts the program, empties the pool into
//! the trace's parts every few milliseconds, and removes it at the end. So the disk holds the trace and the pool only,
//! a program that is faster than the disk waits, and when `isotherm` itself is killed every finished part can be read
//! (a part ends after 2 Mi rows or five seconds); the program then runs on, untraced.
//!
//! # The cache
//! The caches of a core are modelled as one direct-mapped cache of each thread, the *filter*: a quarter of the shared
//! cache, but at most 128 KiB. What hits there is not seen by the shared cache and so does not keep its line recent in
//! it. Other threads' stores and the shared cache's evictions leave the filter as it is.
//!
//! # Order
//! Each record carries the processor's time-stamp counter, in units of 32 ticks (about 10 ns). Rows of one thread stand in
//! program order. Rows of different threads stand in the order of their stamps; a row can stand late by as long as its
//! thread was descheduled between taking its stamp and publishing its record, a few instructions apart.
//! The stamps themselves are not in the trace, so a program with one thread gives the same trace every time.
//!
//! # Ends
//! The trace ends when the command exits; children that it leaves behind run on untraced. At a bound (bytes or time), or
//! when the disk is full, recording stops and the program runs on untraced, still under QEMU: ending a user's program
//! is not the recorder's business. When the stop flag is set (the user's Ctrl-C, which a terminal also sends to the
//! program), the trace is finished and the program gets two seconds to end by itself, then SIGTERM, ten seconds later
//! SIGKILL.
//!
//! # Limits
//! Each process has its own cache model (a forked child starts with a copy of its parent's), so processes do not evict
//! each other's lines. Accesses of the kernel on the program's behalf are not seen. A `rep` string instruction counts as
//! an instruction for each step. A guest that counts its own threads, maps or descriptors sees QEMU's too.

mod command;
mod merge;
mod pool;
mod session;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use isotherm_core::Bytes;
use isotherm_core::cache::Geometry;

use crate::{TraceError, TraceSummary};

/// What to record, and how.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// The command and its arguments; the command is searched in `PATH` unless it has a slash.
    pub command: Vec<OsString>,
    /// The trace to write: a directory that does not exist yet.
    pub output: PathBuf,
    /// The last-level cache whose misses are recorded.
    pub cache: Geometry,
    /// Whether to follow which miss an address depends on; about twice as slow.
    pub dependence: bool,
    /// Stop recording when the trace has this many bytes (exceeded by at most one batch).
    pub max_bytes: Option<u64>,
    /// Stop recording after this time.
    pub max_time: Option<Duration>,
    /// Whether the program's addresses are randomised as usual.
    pub aslr: bool,
    /// The plugin's shared object; `None` to look at `ISOTHERM_RECORDER_PLUGIN` and then beside the executable.
    pub plugin: Option<PathBuf>,
    /// Set it, from a signal handler for instance, to finish the trace.
    pub stop: Arc<AtomicBool>,
}

impl RecordOptions {
    /// Records `command` to `output`: a cache of 2 MiB with 16 ways, dependences followed, no bounds.
    pub fn new(command: Vec<OsString>, output: impl Into<PathBuf>) -> Self {
        Self {
            command,
            output: output.into(),
            cache: Geometry::new(Bytes(2 << 20), 16).unwrap_or(Geometry { sets: 2048, ways: 16 }),
            dependence: true,
            max_bytes: None,
            max_time: None,
            aslr: true,
            plugin: None,
            stop: Arc::default(),
        }
    }
}

/// Why recording stopped before the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The trace reached [`RecordOptions::max_bytes`].
    Bytes,
    /// [`RecordOptions::max_time`] passed.
    Time,
    /// [`RecordOptions::stop`] was set.
    Asked,
    /// The trace could not be written on.
    Failed,
}

/// How recording goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Accesses seen, hits included.
    pub accesses: u64,
    /// Rows recorded.
    pub rows: u64,
    /// Bytes of the trace.
    pub bytes: u64,
    /// Processes seen.
    pub processes: usize,
    /// Set when the program runs on untraced.
    pub stopped: Option<Stopped>,
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSummary {
    /// The command's exit status; 128 + the signal's number if one ended it.
    pub status: i32,
    /// The trace.
    pub trace: TraceSummary,
    /// Accesses seen, hits included.
    pub accesses: u64,
    /// The command of each process, by number.
    pub processes: Vec<String>,
    /// Threads seen, over all processes.
    pub threads: u32,
    /// Misses lost.
    pub lost: u64,
    /// How many programs ran untraced.
    pub untraced: u64,
    /// The first of them.
    pub untraced_programs: Vec<String>,
    /// How long it took.
    pub elapsed: Duration,
    /// Why recording stopped before the program ended.
    pub stopped: Option<Stopped>,
}

/// Why nothing was recorded, or not everything.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No command was given.
    #[error("no command to record; expected one after --")]
    NoCommand,
    /// There is no such command.
    #[error("{command}: not found; expected a program in PATH or a path")]
    NotFound {
        /// What was asked for.
        command: String,
    },
    /// The file may not be executed.
    #[error("{}: not executable; {expected}", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
    },
    /// The program is for another machine.
    #[error("{}: {kind}; expected an x86-64 ELF program or a script whose interpreter is one", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: String,
    },
    /// A tool that recording needs is not installed.
    #[error("{tool} is not in PATH; install Debian's package {package}")]
    MissingTool {
        /// The tool.
        tool: &'static str,
        /// The package that holds it.
        package: &'static str,
    },
    /// The plugin is not where it is expected.
    #[error("the recorder's plugin {name} is not beside {}; build it with `cargo build -p isotherm-recorder-plugin` or \
             name it in ISOTHERM_RECORDER_PLUGIN", directory.display())]
    MissingPlugin {
        /// The file's name.
        name: &'static str,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// The operating system refused something.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The reason.
        source: std::io::Error,
    },
    /// The plugin wrote what it never should.
    #[error("{}: {problem}; expected a pool that this version's plugin wrote", path.display())]
    Pool {
        /// The pool.
        path: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
    /// The trace could not be written; its finished parts can be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl RecordError {
    /// The exit code that a shell user expects: 127 not found, 126 not executable, 2 misuse, 1 otherwise.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } | Self::Foreign { .. } => 126,
            Self::NoCommand | Self::Trace(TraceError::Exists { .. }) => 2,
            _ => 1,
        }
    }
}

/// Runs the command with its standard streams and records it; see the module for when that ends.
///
/// `progress` is called about ten times a second.
pub fn record(
    options: &RecordOptions,
    progress: &mut dyn FnMut(&Progress),
) -> Result<RecordSummary, RecordError> {
    let prepared = command::prepare(options)?;
    session::Session::start(options, &prepared)?.run(progress)
}
