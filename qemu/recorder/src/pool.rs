//! Defines the plugin's side of the pool: mapping it, claiming chunks, writing records and messages.

use std::ffi::CString;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use isotherm_recorder_protocol::layout::{self, Record, kind, state};

/// Chunks that get disk space at once.
const EXTENSION: u32 = 64;
/// How long the plugin believes in a launcher whose heartbeat stands still.
const PATIENCE_MICROSECONDS: u32 = 5_000_000;
const PAUSE_MICROSECONDS: u32 = 200;

/// The header, as [`layout::header`] says.
#[repr(C)]
pub(crate) struct Header {
    magic: AtomicU64,
    /// Sets of the cache model.
    pub(crate) sets: AtomicU32,
    /// Ways of the cache model.
    pub(crate) ways: AtomicU32,
    /// Whether to follow dependences.
    pub(crate) dependence: AtomicU32,
    _launcher: [u32; 11],
    stop: AtomicU32,
    _stop: u32,
    heartbeat: AtomicU64,
    _heartbeat: [u64; 6],
    allocated: AtomicU32,
    /// Processes seen.
    pub(crate) processes: AtomicU32,
    /// Threads seen.
    pub(crate) threads: AtomicU32,
    untraced: AtomicU32,
    /// Misses that found no chunk.
    pub(crate) lost: AtomicU64,
    /// Accesses of threads that held no chunk.
    pub(crate) accesses: AtomicU64,
}

/// A slot, as [`layout::slot`] says.
#[repr(C, align(64))]
pub(crate) struct Slot {
    state: AtomicU32,
    count: AtomicU32,
    process: AtomicU32,
    thread: AtomicU32,
    base: AtomicU64,
    /// Accesses made while the chunk was held.
    pub(crate) accesses: AtomicU64,
    pid: AtomicU32,
    kind: AtomicU32,
}

const _: () = {
    assert!(offset_of!(Header, dependence) == layout::header::DEPENDENCE);
    assert!(offset_of!(Header, stop) == layout::header::STOP);
    assert!(offset_of!(Header, heartbeat) == layout::header::HEARTBEAT);
    assert!(offset_of!(Header, allocated) == layout::header::ALLOCATED);
    assert!(offset_of!(Header, processes) == layout::header::PROCESSES);
    assert!(offset_of!(Header, threads) == layout::header::THREADS);
    assert!(offset_of!(Header, untraced) == layout::header::UNTRACED);
    assert!(offset_of!(Header, lost) == layout::header::LOST);
    assert!(offset_of!(Header, accesses) == layout::header::ACCESSES);
    assert!(offset_of!(Slot, count) == layout::slot::COUNT);
    assert!(offset_of!(Slot, process) == layout::slot::PROCESS);
    assert!(offset_of!(Slot, thread) == layout::slot::THREAD);
    assert!(offset_of!(Slot, base) == layout::slot::BASE);
    assert!(offset_of!(Slot, accesses) == layout::slot::ACCESSES);
    assert!(offset_of!(Slot, pid) == layout::slot::PID);
    assert!(offset_of!(Slot, kind) == layout::slot::KIND);
    assert!(size_of::<Slot>() == layout::SLOT_BYTES);
};

/// A pool, mapped.
pub(crate) struct Pool {
    memory: NonNull<u8>,
    path: CString,
    /// No launcher answers any more.
    abandoned: AtomicBool,
}

// SAFETY: the mapping is used through atomics, and chunks only by who claimed them.
unsafe impl Sync for Pool {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl Send for Pool {}

/// Who writes a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer {
    /// The process's number.
    pub(crate) process: u32,
    /// The thread's number.
    pub(crate) thread: u32,
}

/// A claimed chunk.
pub(crate) struct Chunk {
    slot: NonNull<Slot>,
    records: NonNull<[u64; 2]>,
    count: u32,
    base: u64,
}

impl Pool {
    /// Maps the pool at `path`; `None` if it is none.
    pub(crate) fn open(path: CString) -> Option<Self> {
        // SAFETY: a terminated path.
        let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        if file < 0 {
            return None;
        }
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh shared mapping, never unmapped. What lies beyond the file's end is not touched: chunks are
        // claimed below `allocated` only.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), layout::POOL_BYTES, protection, flags, file, 0) };
        // SAFETY: the descriptor is ours.
        unsafe { libc::close(file) };
        if memory == libc::MAP_FAILED {
            return None;
        }
        let pool = Self { memory: NonNull::new(memory.cast())?, path, abandoned: AtomicBool::new(false) };
        (pool.header().magic.load(Ordering::Relaxed) == layout::MAGIC).then_some(pool)
    }

    /// The header.
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the mapping begins with the header, lives as long as the process, and all fields are atomic.
        unsafe { self.memory.cast().as_ref() }
    }

    fn slot(&self, index: usize) -> &Slot {
        debug_assert!(index < layout::CHUNKS);
        // SAFETY: the table lies inside the mapping, which lives as long as the process; all fields are atomic.
        unsafe { self.memory.byte_add(layout::HEADER_BYTES + index * layout::SLOT_BYTES).cast().as_ref() }
    }

    /// Whether nothing more is to be recorded.
    pub(crate) fn stopped(&self) -> bool {
        self.header().stop.load(Ordering::Relaxed) != 0 || self.abandoned.load(Ordering::Relaxed)
    }

    /// Claims a free chunk; waits for one while the launcher lives. `None` when recording has stopped.
    pub(crate) fn claim(&self, writer: Writer, content: u32, base: u64) -> Option<Chunk> {
        let (mut waited, mut heartbeat) = (0, self.header().heartbeat.load(Ordering::Relaxed));
        while !self.stopped() {
            if let Some(chunk) = self.claim_free(writer, content, base) {
                return Some(chunk);
            }
            if self.extend() {
                continue;
            }
            // SAFETY: sleeps.
            unsafe { libc::usleep(PAUSE_MICROSECONDS) };
            waited += PAUSE_MICROSECONDS;
            let beat = self.header().heartbeat.load(Ordering::Relaxed);
            if beat != heartbeat {
                (waited, heartbeat) = (0, beat);
            } else if waited > PATIENCE_MICROSECONDS {
                self.abandoned.store(true, Ordering::Relaxed);
            }
        }
        None
    }

    fn claim_free(&self, writer: Writer, content: u32, base: u64) -> Option<Chunk> {
        let allocated = self.header().allocated.load(Ordering::Acquire).min(layout::CHUNKS as u32) as usize;
        let take = |index: &usize| {
            let state = &self.slot(*index).state;
            state.load(Ordering::Relaxed) == state::FREE
                && state
                    .compare_exchange(state::FREE, state::CLAIMED, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
        };
        let index = (0..allocated).find(take)?;
        let slot = self.slot(index);
        slot.count.store(0, Ordering::Relaxed);
        slot.process.store(writer.process, Ordering::Relaxed);
        slot.thread.store(writer.thread, Ordering::Relaxed);
        slot.base.store(base, Ordering::Relaxed);
        slot.accesses.store(0, Ordering::Relaxed);
        slot.pid.store(std::process::id(), Ordering::Relaxed);
        slot.kind.store(content, Ordering::Relaxed);
        slot.state.store(state::OPEN, Ordering::Release);
        // SAFETY: chunks below `allocated` lie inside the mapping and the file.
        let records =
            unsafe { self.memory.byte_add(layout::DATA_OFFSET + index * layout::CHUNK_BYTES).cast() };
        Some(Chunk { slot: NonNull::from(slot), records, count: 0, base })
    }

    /// Gets disk space for more chunks, so that no write to the mapping can fail later. The file is opened just for
    /// this; several processes may do the same at once.
    fn extend(&self) -> bool {
        let allocated = self.header().allocated.load(Ordering::Acquire);
        if allocated as usize + EXTENSION as usize > layout::CHUNKS {
            return false;
        }
        let offset = layout::DATA_OFFSET + allocated as usize * layout::CHUNK_BYTES;
        let length = EXTENSION as usize * layout::CHUNK_BYTES;
        // SAFETY: a terminated path; the descriptor is ours between open and close.
        let done = unsafe {
            let file = libc::open(self.path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            let done = file >= 0 && libc::fallocate(file, 0, offset as i64, length as i64) == 0;
            if file >= 0 {
                libc::close(file);
            }
            done
        };
        let next = allocated + EXTENSION;
        if done {
            let exchange = (Ordering::AcqRel, Ordering::Relaxed);
            // A failure means that another process got there first.
            let _ = self.header().allocated.compare_exchange(allocated, next, exchange.0, exchange.1);
        }
        done
    }

    /// Marks the open chunks of a process complete whose program was replaced by `exec`.
    pub(crate) fn release_process(&self, process: u32) {
        for slot in (0..layout::CHUNKS).map(|index| self.slot(index)) {
            if slot.process.load(Ordering::Relaxed) == process {
                let (from, to) = (state::OPEN, state::FULL);
                let _ = slot.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Sends text to the launcher, cut to a chunk's size.
    pub(crate) fn send(&self, writer: Writer, content: u32, text: &[u8]) {
        if content == kind::UNTRACED {
            self.header().untraced.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(chunk) = self.claim(writer, content, crate::stamp::now()) {
            let length = text.len().min(layout::CHUNK_BYTES);
            // SAFETY: the chunk is ours and at least `length` long; the text is elsewhere.
            unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), chunk.records.cast().as_ptr(), length) };
            chunk.slot().count.store(length as u32, Ordering::Release);
            chunk.release(0);
        }
    }
}

impl Chunk {
    fn slot(&self) -> &Slot {
        // SAFETY: slots live as long as the process.
        unsafe { self.slot.as_ref() }
    }

    /// Whether no record with this stamp fits.
    #[inline]
    pub(crate) fn full_at(&self, stamp: u64) -> bool {
        self.count as usize == layout::CHUNK_RECORDS || stamp - self.base > u64::from(u32::MAX)
    }

    /// Appends a record made at `stamp`; the chunk must not be full. The record stands before it counts.
    #[inline]
    pub(crate) fn push(&mut self, record: Record, stamp: u64, accesses: u64) {
        let record = Record { stamp: (stamp - self.base) as u32, ..record };
        // SAFETY: the chunk is ours and `count` is inside it.
        unsafe { self.records.add(self.count as usize).write(record.pack()) };
        self.count += 1;
        self.slot().accesses.store(accesses, Ordering::Relaxed);
        self.slot().count.store(self.count, Ordering::Release);
    }

    /// Hands the chunk to the launcher.
    pub(crate) fn release(self, accesses: u64) {
        self.slot().accesses.store(accesses, Ordering::Relaxed);
        self.slot().state.store(state::FULL, Ordering::Release);
    }
}
