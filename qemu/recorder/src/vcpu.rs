//! State of a vCPU, which is a guest thread, and the effects of an access on it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};

use isotherm_core::cache::LINE_SHIFT;
use isotherm_qemu_api::access::Kind;

use crate::filter::Filter;
use crate::follower::Follower;
use crate::mappings::{self, Call};
use crate::pool::{Chunk, Writer};
use crate::recorder::Recorder;
use crate::stamp;
use crate::summary::{Summary, Ticket};
use isotherm_recorder_protocol::Record;
use isotherm_recorder_protocol::layout::kind;

/// More vCPUs than one process can have at once (`vm.max_map_count` and `threads-max` are far below).
const VCPUS: usize = 1 << 16;

/// In place, since every access looks its vCPU up. Memory that no vCPU uses is never touched.
static TABLE: [Place; VCPUS] = [const { Place(UnsafeCell::new(Vcpu::new())) }; VCPUS];
static USED: AtomicU32 = AtomicU32::new(0);

struct Place(UnsafeCell<Vcpu>);

// SAFETY: only the thread that runs a vCPU (or creates, forks or ends it) uses it.
unsafe impl Sync for Place {}

/// Guest thread. The fields that every access needs come first, on one cache line.
#[repr(C, align(256))]
pub(crate) struct Vcpu {
    /// Instructions begun, the running block's included.
    instructions: u64,
    filter: Filter,
    /// While it is active, accesses must be followed though they change nothing in a cache.
    pub(crate) follower: Follower,
    /// Accesses since the chunk was claimed. Not beside `instructions`: if both were added at once, the pair
    /// could not be forwarded from the previous stores, which are single.
    pub(crate) accesses: u64,
    /// Value of `instructions` at the last record.
    recorded: u64,
    /// Stamp of the last record: stamps of a thread never go back.
    stamp: u64,
    pub(crate) thread: u32,
    /// The running system call, if it changes mappings.
    pub(crate) call: Option<Call>,
    chunk: Option<Chunk>,
}

/// # Safety
/// The caller is the thread that runs this vCPU (or creates, forks or ends it), and has no other reference.
#[inline(always)]
pub(crate) unsafe fn get<'a>(index: u32) -> &'a mut Vcpu {
    // SAFETY: the caller's contract; other vCPUs have other places.
    unsafe { &mut *TABLE[index as usize & (VCPUS - 1)].0.get() }
}

/// Returns all vCPUs that have ever started.
///
/// # Safety
/// No other thread uses a vCPU meanwhile, and the caller has no other reference to one.
pub(crate) unsafe fn all<'a>() -> impl Iterator<Item = &'a mut Vcpu> {
    // SAFETY: the caller's contract; each index comes once.
    (0..USED.load(Ordering::Relaxed).min(VCPUS as u32)).map(|index| unsafe { get(index) })
}

/// Starts a vCPU as a thread with a new number. Indices are reused after a thread's end.
///
/// # Safety
/// As for [`get`].
pub(crate) unsafe fn start(index: u32, recorder: &Recorder) {
    // SAFETY: the caller's contract.
    let vcpu = unsafe { get(index) };
    if USED.fetch_max(index + 1, Ordering::Relaxed) > index {
        vcpu.end(recorder);
    }
    let filter = recorder.filter.map_or(Filter::none(), Filter::new);
    *vcpu = Vcpu { thread: recorder.next_thread(), filter, ..Vcpu::new() };
}

impl Vcpu {
    const fn new() -> Self {
        Self {
            instructions: 0,
            filter: Filter::none(),
            follower: Follower::new(),
            accesses: 0,
            recorded: 0,
            stamp: 0,
            thread: 0,
            call: None,
            chunk: None,
        }
    }

    /// Ends the thread, or the program, and hands its records over.
    pub(crate) fn end(&mut self, recorder: &Recorder) {
        let accesses = std::mem::take(&mut self.accesses);
        if let Some(chunk) = self.chunk.take() {
            chunk.release(accesses);
        } else {
            recorder.pool.header().accesses.fetch_add(accesses, Ordering::Relaxed);
        }
    }

    /// Continues as another thread in a forked child; the chunk stays the parent's.
    pub(crate) fn adopt(&mut self, thread: u32) {
        self.chunk = None;
        self.accesses = 0;
        self.recorded = self.instructions;
        self.thread = thread;
        self.follower.forget();
    }

    #[inline(always)]
    pub(crate) fn enter<const TRACKED: bool>(&mut self, ticket: Ticket) {
        self.instructions += ticket.block_length();
        self.accesses += ticket.once();
        if TRACKED && self.follower.is_active() {
            // SAFETY: the block's translation is alive, since it runs.
            self.follower.change_block(unsafe { ticket.summary() }, self.instructions);
        }
    }

    /// Returns whether all of `reach + 1` bytes at `address`, at most 64, hit in the thread's filter. Then no
    /// access to them changes anything in a cache. Most accesses end here.
    #[inline(always)]
    pub(crate) fn hits(&self, address: u64, reach: u64) -> bool {
        self.filter.covers(address, reach)
    }

    /// Returns whether the accesses of the ticket's group, hits in the bytes from `address` on, matter to the
    /// follower.
    #[inline(always)]
    pub(crate) fn must_follow(&self, address: u64, ticket: Ticket) -> bool {
        self.follower.is_active() && !self.follower.skips(address, ticket)
    }

    /// Touches the one or two lines of an access of `instruction` at `address`. With `HITS` they are in the
    /// filter, and the access only feeds the follower.
    #[inline(always)]
    pub(crate) fn touch<const TRACKED: bool, const HITS: bool>(
        &mut self,
        recorder: &Recorder,
        kind: Kind,
        address: u64,
        instruction: &Summary,
    ) {
        self.touch_line::<TRACKED, HITS>(recorder, kind.store, address, instruction);
        let last = address + kind.reach;
        if last >> 6 != address >> 6 {
            self.touch_line::<TRACKED, HITS>(recorder, kind.store, last & !63, instruction);
        }
    }

    #[inline(always)]
    fn touch_line<const TRACKED: bool, const HITS: bool>(
        &mut self,
        recorder: &Recorder,
        store: bool,
        address: u64,
        instruction: &Summary,
    ) {
        let line = address >> 6;
        let missed = !HITS && self.misses(recorder, line);
        if missed {
            let behind = u64::from(instruction.behind);
            let dependence = match TRACKED {
                true => self.follower.miss(instruction, line, self.instructions - behind),
                false => 0,
            };
            self.record(recorder, Record { line, store, dependence, instructions: 0, stamp: 0 }, behind);
        }
        if TRACKED && self.follower.is_active() {
            self.follower.access(instruction, address, store, missed);
        }
    }

    /// Touches a line in the filter and then, if needed, in the shared cache. Returns whether both missed.
    #[inline(always)]
    fn misses(&mut self, recorder: &Recorder, line: u64) -> bool {
        !self.filter.touch(line) && !recorder.cache.touch(line)
    }

    #[inline(never)]
    fn record(&mut self, recorder: &Recorder, record: Record, behind: u64) {
        mappings::begin(recorder, self.thread, record.line << LINE_SHIFT);
        self.stamp = stamp::now().max(self.stamp);
        let position = self.instructions.saturating_sub(behind);
        let since = position.saturating_sub(self.recorded);
        let instructions = u32::try_from(since).unwrap_or(u32::MAX);
        if recorder.pool.stopped() || !self.has_room(recorder) {
            return;
        }
        self.recorded = position;
        if let Some(chunk) = &mut self.chunk {
            chunk.push(Record { instructions, ..record }, self.stamp, self.accesses);
        }
    }

    /// Claims another chunk where needed. Without one, the miss is lost.
    fn has_room(&mut self, recorder: &Recorder) -> bool {
        if self.chunk.as_ref().is_some_and(|chunk| !chunk.full_at(self.stamp)) {
            return true;
        }
        if let Some(chunk) = self.chunk.take() {
            chunk.release(self.accesses);
            self.accesses = 0;
        }
        let writer = Writer { process: recorder.process(), thread: self.thread };
        self.chunk = recorder.pool.claim(writer, kind::RECORDS, self.stamp);
        if self.chunk.is_none() {
            recorder.pool.header().lost.fetch_add(1, Ordering::Relaxed);
        }
        self.chunk.is_some()
    }
}
