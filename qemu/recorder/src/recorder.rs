//! Defines the plugin's one state: the pool, the cache, the process's number and how QEMU was started.

use std::ffi::OsString;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use isotherm_core::cache::Geometry;

use crate::api::Api;
use crate::cache::SharedCache;
use crate::invocation::Invocation;
use crate::pool::{Pool, Writer};
use crate::vcpu;
use isotherm_recorder_protocol::layout::{self, kind};

static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// The state.
pub(crate) struct Recorder {
    /// QEMU's functions.
    pub(crate) api: Api,
    /// Where records go.
    pub(crate) pool: Pool,
    /// The cache model.
    pub(crate) cache: SharedCache,
    /// The shape of the threads' filters before it.
    pub(crate) filter: Option<Geometry>,
    /// Whether dependences are followed.
    pub(crate) dependence: bool,
    /// How to start QEMU again.
    pub(crate) invocation: Invocation,
    process: AtomicU32,
}

/// The state; `None` before the plugin is installed.
#[inline]
pub(crate) fn get() -> Option<&'static Recorder> {
    RECORDER.get()
}

impl Recorder {
    /// Makes the state from the pool's header. `None` where that makes no sense.
    pub(crate) fn new(api: Api, pool: Pool, invocation: Invocation) -> Option<Self> {
        let header = pool.header();
        let geometry =
            Geometry { sets: header.sets.load(Ordering::Relaxed), ways: header.ways.load(Ordering::Relaxed) };
        if !geometry.sets.is_power_of_two() || geometry.ways == 0 {
            return None;
        }
        let dependence = header.dependence.load(Ordering::Relaxed) != 0;
        let (cache, filter) = (SharedCache::new(geometry), layout::filter(geometry));
        Some(Self { api, pool, cache, filter, dependence, invocation, process: AtomicU32::new(0) })
    }

    /// Makes this the process's state and the process a new one. `None` if there is one already.
    pub(crate) fn install(self) -> Option<&'static Self> {
        RECORDER.set(self).ok()?;
        let recorder = get()?;
        recorder.begin_process();
        Some(recorder)
    }

    /// This process's number.
    pub(crate) fn process(&self) -> u32 {
        self.process.load(Ordering::Relaxed)
    }

    /// Takes a number and tells the launcher the command.
    fn begin_process(&self) {
        let process = self.pool.header().processes.fetch_add(1, Ordering::Relaxed);
        self.process.store(process, Ordering::Relaxed);
        self.pool.send(Writer { process, thread: 0 }, kind::PROCESS, &self.invocation.command_line());
    }

    /// A number for a thread.
    pub(crate) fn next_thread(&self) -> u32 {
        self.pool.header().threads.fetch_add(1, Ordering::Relaxed)
    }

    /// A miss had no chunk to go to. After a stop that was asked for, it is not missed.
    pub(crate) fn count_lost(&self) {
        self.pool.header().lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts accesses of a thread without a chunk.
    pub(crate) fn count_accesses(&self, accesses: u64) {
        self.pool.header().accesses.fetch_add(accesses, Ordering::Relaxed);
    }

    /// Tells the launcher that `program` runs untraced.
    pub(crate) fn report_untraced(&self, program: &OsString) {
        let writer = Writer { process: self.process(), thread: 0 };
        self.pool.send(writer, kind::UNTRACED, program.as_encoded_bytes());
    }
}

/// In a child just forked: a new process with one thread.
pub(crate) extern "C" fn forked() {
    if let Some(recorder) = get() {
        recorder.cache.reset_threads();
        recorder.begin_process();
        // Only the thread that forked lives on, but QEMU does not tell which it is: each gets a number when it runs.
        let thread = recorder.next_thread();
        vcpu::all().for_each(|vcpu| vcpu.adopt(thread));
    }
}
