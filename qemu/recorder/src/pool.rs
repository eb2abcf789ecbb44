//! The plugin's side of the pool: mapping it, claiming chunks, writing records and messages.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isotherm_qemu_api::map_shared;
use isotherm_recorder_protocol::Record;
use isotherm_recorder_protocol::layout::{self, Header, Slot, kind, state};

/// Chunks that get disk space at once.
const EXTENSION: u32 = 64;
/// How long the plugin trusts a recorder whose heartbeat stands still.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_micros(200);

pub(crate) struct Pool {
    memory: NonNull<u8>,
    path: PathBuf,
    /// Set when the recorder does not answer any more.
    abandoned: AtomicBool,
}

// SAFETY: header and slots are used through atomics, and a chunk's records only by its claimant.
unsafe impl Sync for Pool {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl Send for Pool {}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer {
    pub(crate) process: u32,
    pub(crate) thread: u32,
}

pub(crate) struct Chunk {
    slot: NonNull<Slot>,
    records: NonNull<[u64; 2]>,
    count: u32,
    base: u64,
}

impl Pool {
    /// Maps the pool at `path`; `None` if that file is not a pool.
    pub(crate) fn open(path: PathBuf) -> Option<Self> {
        // Pages after the file's end are not touched: chunks are claimed below `allocated` only.
        let memory = map_shared(&open(&path).ok()?, layout::POOL_BYTES).ok()?;
        let pool = Self { memory, path, abandoned: AtomicBool::new(false) };
        (pool.header().magic.load(Ordering::Relaxed) == layout::MAGIC).then_some(pool)
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the mapping begins with the header and lives as long as the process; all fields are atomic.
        unsafe { self.memory.cast().as_ref() }
    }

    fn slot(&self, index: usize) -> &Slot {
        debug_assert!(index < layout::CHUNKS);
        // SAFETY: the table lies inside the mapping, which lives as long as the process; all fields are
        // atomic.
        unsafe { self.memory.byte_add(layout::HEADER_BYTES + index * layout::SLOT_BYTES).cast().as_ref() }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.header().stop.load(Ordering::Relaxed) != 0 || self.abandoned.load(Ordering::Relaxed)
    }

    /// Claims a free chunk, and waits for one while the recorder lives; `None` when recording has stopped.
    pub(crate) fn claim(&self, writer: Writer, content: u32, base: u64) -> Option<Chunk> {
        let (mut waited, mut heartbeat) = (Duration::ZERO, self.header().heartbeat.load(Ordering::Relaxed));
        let mut starved = Duration::ZERO;
        while !self.stopped() {
            if let Some(chunk) = self.claim_free(writer, content, base) {
                return Some(chunk);
            }
            let Err(error) = self.extend() else { continue };
            std::thread::sleep(PAUSE);
            waited += PAUSE;
            starved = if self.any_full() { Duration::ZERO } else { starved + PAUSE };
            let beat = self.header().heartbeat.load(Ordering::Relaxed);
            if beat != heartbeat {
                (waited, heartbeat) = (Duration::ZERO, beat);
            } else if waited > PATIENCE {
                self.abandoned.store(true, Ordering::Relaxed);
            }
            if starved > PATIENCE {
                self.fail(error);
            }
        }
        None
    }

    /// Returns whether the recorder has a chunk to free. Without one, whoever waits may wait for ever, since
    /// threads keep the chunks that they have begun.
    fn any_full(&self) -> bool {
        let allocated = self.header().allocated.load(Ordering::Acquire).min(layout::CHUNKS as u32) as usize;
        (0..allocated).any(|index| self.slot(index).state.load(Ordering::Relaxed) == state::FULL)
    }

    /// Ends the recording, in every process, and tells the recorder why.
    fn fail(&self, error: i32) {
        self.header().failed.store(error.cast_unsigned(), Ordering::Relaxed);
        self.header().stop.store(1, Ordering::Relaxed);
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

    /// Allocates disk space for more chunks, so that no write to the mapping can fail later. Opens the file
    /// just for this; several processes may do so at once.
    ///
    /// # Errors
    /// The number of the operating system's error; that of a lack of resources if the pool is as large as it
    /// may be.
    fn extend(&self) -> Result<(), i32> {
        let allocated = self.header().allocated.load(Ordering::Acquire);
        if allocated as usize + EXTENSION as usize > layout::CHUNKS {
            return Err(libc::EAGAIN);
        }
        let offset = layout::DATA_OFFSET + allocated as usize * layout::CHUNK_BYTES;
        let length = EXTENSION as usize * layout::CHUNK_BYTES;
        let extended = open(&self.path).and_then(|file| {
            // SAFETY: an open file; changes no memory of this process.
            let failed = unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as i64, length as i64) != 0 };
            if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
        });
        extended.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
        // A failure means that another process was faster.
        let (total, next) = (&self.header().allocated, allocated + EXTENSION);
        let _ = total.compare_exchange(allocated, next, Ordering::AcqRel, Ordering::Relaxed);
        Ok(())
    }

    /// Marks the open chunks of a process complete, whose program was replaced by `exec`.
    pub(crate) fn release_process(&self, process: u32) {
        for slot in (0..layout::CHUNKS).map(|index| self.slot(index)) {
            if slot.process.load(Ordering::Relaxed) == process {
                let (from, to) = (state::OPEN, state::FULL);
                let _ = slot.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Sends text to the recorder, cut to a chunk's size.
    pub(crate) fn send(&self, writer: Writer, content: u32, text: &[u8]) {
        if content == kind::UNTRACED {
            self.header().untraced.fetch_add(1, Ordering::Relaxed);
        }
        self.send_at(crate::stamp::now(), writer, content, text);
    }

    /// Sends text about what happened at `stamp`.
    pub(crate) fn send_at(&self, stamp: u64, writer: Writer, content: u32, text: &[u8]) {
        if let Some(chunk) = self.claim(writer, content, stamp) {
            let length = text.len().min(layout::CHUNK_BYTES);
            // SAFETY: the chunk is claimed, at least `length` long, and does not overlap the text.
            unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), chunk.records.cast().as_ptr(), length) };
            chunk.slot().count.store(length as u32, Ordering::Release);
            chunk.release(0);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

impl Chunk {
    fn slot(&self) -> &Slot {
        // SAFETY: slots live as long as the process.
        unsafe { self.slot.as_ref() }
    }

    /// Returns whether no record with this stamp fits.
    #[inline]
    pub(crate) fn full_at(&self, stamp: u64) -> bool {
        self.count as usize == layout::CHUNK_RECORDS || stamp - self.base > u64::from(u32::MAX)
    }

    /// Appends a record made at `stamp` and then counts it; the chunk must not be full.
    #[inline]
    pub(crate) fn push(&mut self, record: Record, stamp: u64, accesses: u64) {
        let record = Record { stamp: (stamp - self.base) as u32, ..record };
        // SAFETY: the chunk is claimed, and `count` is inside it since it is not full.
        unsafe { self.records.add(self.count as usize).write(record.pack()) };
        self.count += 1;
        self.slot().accesses.store(accesses, Ordering::Relaxed);
        self.slot().count.store(self.count, Ordering::Release);
    }

    pub(crate) fn release(self, accesses: u64) {
        self.slot().accesses.store(accesses, Ordering::Relaxed);
        self.slot().state.store(state::FULL, Ordering::Release);
    }
}
