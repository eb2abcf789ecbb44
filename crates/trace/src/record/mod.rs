//! Records a program: QEMU's user mode runs it with the recorder's plugin, and the misses of the plugin's
//! cache model become a trace while the program runs.
//!
//! QEMU loads the *plugin* (`qemu/recorder`) in each process of the program's tree. The plugin writes misses
//! into the *pool*, one file of at most 256 MiB that all processes share. [`record`] starts the program,
//! moves the pool's records into the trace every few milliseconds, and removes the pool at the end. So a
//! program that is faster than the disk waits, and when `isotherm` itself is killed every finished part is
//! readable; the program then continues untraced. Cache and limits: `docs/guide/recording.md`.
//!
//! # Order
//! Each record carries the processor's time-stamp counter, in units of 32 ticks (about 10 ns). Rows of one
//! thread are in program order, rows of different threads in the order of their stamps; a row can be late by
//! as long as its thread was descheduled between taking its stamp and publishing its record. The stamps are
//! not in the trace, so a program with one thread gives the same trace every time.
//!
//! # End
//! The trace ends when the command exits; children that it leaves behind continue untraced. At a bound (bytes
//! or time), or when the disk is full, recording stops and the program continues untraced under QEMU. When
//! the stop flag is set (by Ctrl-C, which a terminal also sends to the program), the trace is finished; the
//! program gets two seconds to end by itself, then SIGTERM, and ten seconds later SIGKILL.

mod avx512;
mod command;
mod contents;
mod merge;
mod pool;
mod session;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use avx512::{Setting, setting_of, settings};
use isotherm_core::Bytes;
use isotherm_core::cache::Geometry;

use crate::{Contents, Place, TraceError, TraceSummary};

/// Memory that a recording takes beside the program and QEMU: the pool's pages and the rows on their way.
pub const RECORDER_MEMORY: Bytes = Bytes(isotherm_recorder_protocol::layout::POOL_BYTES as u64 + (64 << 20));

/// Settings of a recording.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// Command and its arguments. The command is searched in `PATH` unless it has a slash.
    pub command: Vec<OsString>,
    /// Trace to write: a directory that does not exist yet.
    pub output: PathBuf,
    /// Last-level cache whose misses are recorded.
    pub cache: Geometry,
    /// Whether to follow which miss an address depends on; about twice as slow.
    pub dependence: bool,
    /// Size of the trace in bytes at which recording stops (exceeded by at most one batch).
    pub max_bytes: Option<u64>,
    /// Time after which recording stops.
    pub max_time: Option<Duration>,
    /// Whether the program's addresses are randomised as usual.
    pub aslr: bool,
    /// Whether to note how well each page with misses compresses ([`crate::Contents`]).
    pub compressibility: bool,
    /// Name of the processes whose misses are recorded; `None` for all.
    pub process: Option<String>,
    /// `libisotherm_alloc.so`, to record allocation sites with it.
    pub allocator: Option<PathBuf>,
    /// Plugin's shared object; `None` to look at `ISOTHERM_RECORDER_PLUGIN` and then beside the executable.
    pub plugin: Option<PathBuf>,
    /// Flag to finish the trace, which a signal handler may set.
    pub stop: Arc<AtomicBool>,
}

impl RecordOptions {
    /// Makes settings with a cache of 2 MiB in 16 ways, dependences followed, no bounds.
    pub fn new(command: Vec<OsString>, output: impl Into<PathBuf>) -> Self {
        Self {
            command,
            output: output.into(),
            cache: Geometry::new(Bytes(2 << 20), 16).unwrap_or(Geometry { sets: 2048, ways: 16 }),
            dependence: true,
            max_bytes: None,
            max_time: None,
            aslr: true,
            compressibility: false,
            process: None,
            allocator: None,
            plugin: None,
            stop: Arc::default(),
        }
    }
}

/// Reason why recording stopped before the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The trace reached [`RecordOptions::max_bytes`].
    Bytes,
    /// [`RecordOptions::max_time`] passed.
    Time,
    /// [`RecordOptions::stop`] was set.
    Asked,
    /// The trace could not be written.
    Failed,
}

/// Progress of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Accesses seen, hits included.
    pub accesses: u64,
    /// Rows recorded.
    pub rows: u64,
    /// Bytes of the trace.
    pub bytes: u64,
    /// Processes seen.
    pub processes: usize,
    /// Set when the program continues untraced.
    pub stopped: Option<Stopped>,
}

/// Instruction of AVX-512, which QEMU does not emulate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Avx512 {
    /// Command of the process that reached it.
    pub command: String,
    /// Where it is; `None` outside of files.
    pub place: Option<Place>,
}

/// Result of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSummary {
    /// Command's exit status; 128 + the signal's number if one ended it.
    pub status: i32,
    /// Size of the trace.
    pub trace: TraceSummary,
    /// Accesses seen, hits included.
    pub accesses: u64,
    /// Share that each page whose contents were read takes compressed; `None` if that was not asked for.
    pub compressed: Option<Contents>,
    /// Command of each process, by number.
    pub processes: Vec<String>,
    /// Number of processes whose misses were recorded.
    pub recorded: usize,
    /// Threads seen, over all processes.
    pub threads: u32,
    /// Misses lost.
    pub lost: u64,
    /// Number of programs that ran untraced.
    pub untraced: u64,
    /// The first of these programs.
    pub untraced_programs: Vec<String>,
    /// Allocation sites noted.
    pub sites: u64,
    /// First instruction of AVX-512 that a process reached, which QEMU answers with SIGILL.
    pub avx512: Option<Avx512>,
    /// Duration.
    pub elapsed: Duration,
    /// Reason why recording stopped before the program ended.
    pub stopped: Option<Stopped>,
}

/// Reason why nothing was recorded, or not everything.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RecordError {
    #[error("no command to record; expected one after --")]
    NoCommand,
    #[error("{command}: not found; expected a program in PATH or a path")]
    NotFound { command: String },
    #[error("{}: not executable; {expected}", path.display())]
    NotExecutable { path: PathBuf, expected: &'static str },
    #[error("{}: {kind}; expected an x86-64 ELF program or a script whose interpreter is one", path.display())]
    Foreign { path: PathBuf, kind: String },
    #[error("{}: built for x86-64-v4, so it needs AVX-512, which QEMU does not emulate; expected a build for x86-64-v3 \
             or older", path.display())]
    Avx512 { path: PathBuf },
    #[error("{}: QEMU cannot pass on a path with a comma or a colon; expected the library elsewhere", path.display())]
    Allocator { path: PathBuf },
    #[error("{tool} is not in PATH; install Debian's package {package}")]
    MissingTool { tool: &'static str, package: &'static str },
    #[error("the recorder's plugin {name} is not beside {}; build it with `cargo build -p isotherm-recorder-plugin` or \
             name it in ISOTHERM_RECORDER_PLUGIN", directory.display())]
    MissingPlugin { name: &'static str, directory: PathBuf },
    #[error("cannot {action}: {source}")]
    Io { action: &'static str, source: std::io::Error },
    #[error(
        "QEMU ran the program without the recorder's plugin: nothing was recorded; expected a plugin of this build"
    )]
    Untraced,
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl RecordError {
    /// Returns a shell's exit code: 127 not found, 126 not executable, 2 misuse, 1 otherwise.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } | Self::Foreign { .. } | Self::Avx512 { .. } => 126,
            Self::NoCommand | Self::Trace(TraceError::Exists { .. } | TraceError::NoProcess { .. }) => 2,
            _ => 1,
        }
    }
}

/// Runs the command with its standard streams and records it; the module says when that ends.
///
/// Calls `progress` about ten times a second.
///
/// # Errors
/// If the command cannot be run under QEMU, or the trace cannot be written.
pub fn record(
    options: &RecordOptions,
    progress: &mut dyn FnMut(&Progress),
) -> Result<RecordSummary, RecordError> {
    let prepared = command::prepare(options)?;
    session::Session::start(options, &prepared)?.run(progress)
}
