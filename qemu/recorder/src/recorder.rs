//! The plugin's state: the pool, the cache, the process's number and how QEMU was started.

use std::ffi::OsString;
use std::fmt::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use isotherm_core::cache::Geometry;

use crate::api::Api;
use crate::cache::SharedCache;
use crate::invocation::Invocation;
use crate::mappings::Memory;
use crate::pool::{Pool, Writer};
use crate::stamp;
use isotherm_recorder_protocol::Note;
use isotherm_recorder_protocol::layout::{self, kind};

static RECORDER: OnceLock<Recorder> = OnceLock::new();

pub(crate) struct Recorder {
    pub(crate) api: Api,
    pub(crate) pool: Pool,
    pub(crate) cache: SharedCache,
    pub(crate) filter: Option<Geometry>,
    pub(crate) dependence: bool,
    pub(crate) invocation: Invocation,
    pub(crate) memory: Memory,
    process: AtomicU32,
    /// Whether an instruction of AVX-512 was noted.
    avx512: AtomicBool,
}

/// Returns the state, or `None` before the plugin is installed.
#[inline]
pub(crate) fn get() -> Option<&'static Recorder> {
    RECORDER.get()
}

impl Recorder {
    /// Makes the state from the pool's header, or `None` where that makes no sense.
    pub(crate) fn new(api: Api, pool: Pool, invocation: Invocation) -> Option<Self> {
        let header = pool.header();
        let (sets, ways) = (header.sets.load(Ordering::Relaxed), header.ways.load(Ordering::Relaxed));
        let geometry = Geometry { sets, ways };
        if !geometry.sets.is_power_of_two() || geometry.ways == 0 {
            return None;
        }
        let dependence = header.dependence.load(Ordering::Relaxed) != 0;
        let (cache, filter) = (SharedCache::new(geometry), layout::filter(geometry));
        let (memory, process, avx512) = (Memory::default(), AtomicU32::new(0), AtomicBool::new(false));
        Some(Self { api, pool, cache, filter, dependence, invocation, memory, process, avx512 })
    }

    /// Installs the state and begins a process. Returns `None` if a state is installed already.
    pub(crate) fn install(self) -> Option<&'static Self> {
        RECORDER.set(self).ok()?;
        let recorder = get()?;
        recorder.begin_process();
        let program = recorder.invocation.program.to_string_lossy().into_owned();
        recorder.note(0, stamp::now(), &[Note::Program(program)]);
        Some(recorder)
    }

    /// Begins the process of a child just forked.
    pub(crate) fn begin_copy(&self) {
        let parent = self.process();
        self.begin_process();
        self.note(0, stamp::now(), &[Note::Forked(parent)]);
    }

    /// Sends the notes of a thread at `stamp`, in as many messages as they need.
    pub(crate) fn note(&self, thread: u32, stamp: u64, notes: &[Note]) {
        let writer = Writer { process: self.process(), thread };
        let mut text = String::new();
        for note in notes {
            let _ = writeln!(text, "{note}");
            if text.len() > layout::CHUNK_BYTES / 2 {
                self.pool.send_at(stamp, writer, kind::NOTES, text.as_bytes());
                text.clear();
            }
        }
        if !text.is_empty() {
            self.pool.send_at(stamp, writer, kind::NOTES, text.as_bytes());
        }
    }

    /// Notes the first instruction of AVX-512, which QEMU translates as it is about to run.
    pub(crate) fn note_avx512(&self, address: u64) {
        if !self.avx512.swap(true, Ordering::Relaxed) {
            self.note(0, stamp::now(), &[Note::Avx512(address)]);
        }
    }

    pub(crate) fn process(&self) -> u32 {
        self.process.load(Ordering::Relaxed)
    }

    fn begin_process(&self) {
        let process = self.pool.header().processes.fetch_add(1, Ordering::Relaxed);
        self.process.store(process, Ordering::Relaxed);
        self.pool.send(Writer { process, thread: 0 }, kind::PROCESS, &self.invocation.command_line());
    }

    pub(crate) fn next_thread(&self) -> u32 {
        self.pool.header().threads.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn report_untraced(&self, program: &OsString) {
        let writer = Writer { process: self.process(), thread: 0 };
        self.pool.send(writer, kind::UNTRACED, program.as_encoded_bytes());
    }
}
