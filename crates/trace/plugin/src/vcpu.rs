//! Defines what the recorder knows of a vCPU, which is a guest thread, and what an access does to it.

use std::sync::atomic::{AtomicPtr, Ordering};

use crate::dependence::Tracker;
use crate::layout::{Record, kind};
use crate::pool::{Chunk, Writer};
use crate::recorder::Recorder;
use crate::stamp;
use crate::summary::Summary;

/// More vCPUs than one process can have at once (`vm.max_map_count` and `threads-max` end far below).
const VCPUS: usize = 1 << 16;

static TABLE: [AtomicPtr<Vcpu>; VCPUS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; VCPUS];

/// A guest thread.
#[derive(Default)]
pub(crate) struct Vcpu {
    /// Line of the last access.
    last_line: u64,
    /// Instructions begun, the running block's included.
    instructions: u64,
    /// The value of `instructions` at the last record.
    recorded: u64,
    /// Accesses since the chunk was claimed.
    accesses: u64,
    /// The stamp of the last record: stamps of a thread never go back.
    stamp: u64,
    thread: u32,
    chunk: Option<Chunk>,
    tracker: Tracker,
    /// The block that the tracker is in, and the instruction of it that comes next; null while idle.
    block: Option<Place>,
}

/// A block's summaries and the next instruction to step over.
#[derive(Clone, Copy)]
struct Place {
    first: *const Summary,
    length: usize,
    next: usize,
}

impl Place {
    /// Where `instruction` stands, which must lie in a block's array of summaries.
    fn of(instruction: &Summary) -> Self {
        let next = usize::from(instruction.index);
        // SAFETY: summaries of a block lie in one array, each knowing its index.
        let first = unsafe { std::ptr::from_ref(instruction).sub(next) };
        Self { first, length: next + usize::from(instruction.behind) + 1, next }
    }

    fn block(&self) -> &'static [Summary] {
        // SAFETY: the array lives until QEMU drops its translations, and then every place is forgotten
        // (`forget_blocks`). `'static` does not leave this module.
        unsafe { std::slice::from_raw_parts(self.first, self.length) }
    }
}

/// The vCPU of this index.
#[inline]
pub(crate) fn get(index: u32) -> Option<&'static mut Vcpu> {
    // SAFETY: a vCPU is only used by the thread that runs it (or creates, forks or ends it), so the reference is the
    // only one; boxes are never freed.
    unsafe { TABLE[index as usize & (VCPUS - 1)].load(Ordering::Relaxed).as_mut() }
}

/// All vCPUs that there were; for moments when no other thread runs.
pub(crate) fn all() -> impl Iterator<Item = &'static mut Vcpu> {
    (0..VCPUS as u32).filter_map(get)
}

/// A vCPU starts: a thread with a new number. Indices are reused after a thread's end.
pub(crate) fn start(index: u32, recorder: &Recorder) {
    if let Some(vcpu) = get(index) {
        vcpu.end(recorder);
    }
    let thread = recorder.next_thread();
    let fresh = Vcpu { thread, ..Vcpu::default() };
    match get(index) {
        Some(vcpu) => *vcpu = fresh,
        None => TABLE[index as usize & (VCPUS - 1)].store(Box::into_raw(Box::new(fresh)), Ordering::Release),
    }
}

impl Vcpu {
    /// The thread ends, or the program: what it recorded is handed over.
    pub(crate) fn end(&mut self, recorder: &Recorder) {
        match self.chunk.take() {
            Some(chunk) => chunk.release(self.accesses),
            None => recorder.count_accesses(self.accesses),
        }
        self.accesses = 0;
    }

    /// In a forked child the thread is another one, and the chunk stays the parent's.
    pub(crate) fn adopt(&mut self, thread: u32) {
        self.chunk = None;
        self.accesses = 0;
        self.recorded = self.instructions;
        self.thread = thread;
        self.tracker.forget();
        self.block = None;
    }

    /// QEMU drops the translations.
    pub(crate) fn forget_blocks(&mut self) {
        self.block = None;
        self.tracker.forget();
    }

    /// A block of `length` instructions begins.
    #[inline]
    pub(crate) fn enter(&mut self, length: u64) {
        self.instructions += length;
    }

    /// A block begins, of which `first` is the first instruction.
    #[inline]
    pub(crate) fn enter_tracked(&mut self, first: &Summary) {
        self.instructions += u64::from(first.behind) + 1;
        if self.block.is_some() {
            self.change_block(first);
        }
    }

    fn change_block(&mut self, first: &Summary) {
        self.finish_block();
        self.tracker.age(self.instructions);
        self.block = (!self.tracker.idle()).then(|| Place::of(first));
    }

    fn finish_block(&mut self) {
        if let Some(place) = self.block {
            place.block()[place.next..].iter().for_each(|instruction| self.tracker.step(instruction));
        }
    }

    /// Steps over the instructions before `instruction`, which is in the block.
    #[inline]
    fn advance(&mut self, instruction: &Summary) {
        if let Some(place) = &mut self.block {
            let target = usize::from(instruction.index);
            while place.next < target && place.next < place.length {
                self.tracker.step(&place.block()[place.next]);
                place.next += 1;
            }
        }
    }

    /// An access of the instruction that `behind` others of its block follow.
    #[inline]
    pub(crate) fn access(&mut self, recorder: &Recorder, store: bool, address: u64, behind: u64) {
        self.accesses += 1;
        self.touch(recorder, store, address >> 6, behind);
    }

    /// The rest of an access that reaches into the next line; it counts once.
    #[cold]
    pub(crate) fn access_rest(&mut self, recorder: &Recorder, store: bool, address: u64, behind: u64) {
        self.touch(recorder, store, (address >> 6) + 1, behind);
    }

    #[inline]
    fn touch(&mut self, recorder: &Recorder, store: bool, line: u64, behind: u64) {
        if line == self.last_line {
            return;
        }
        self.last_line = line;
        if !recorder.cache.touch(line) {
            self.record(recorder, Record { line, store, dependence: 0, instructions: 0, stamp: 0 }, behind);
        }
    }

    /// An access of `instruction`, with its dependence.
    #[inline]
    pub(crate) fn access_tracked(
        &mut self,
        recorder: &Recorder,
        store: bool,
        address: u64,
        instruction: &Summary,
    ) {
        self.accesses += 1;
        self.touch_tracked(recorder, store, address, instruction);
    }

    /// As [`Vcpu::access_rest`].
    #[cold]
    pub(crate) fn access_rest_tracked(
        &mut self,
        recorder: &Recorder,
        store: bool,
        address: u64,
        instruction: &Summary,
    ) {
        self.touch_tracked(recorder, store, (address | 63) + 1, instruction);
    }

    #[inline]
    fn touch_tracked(&mut self, recorder: &Recorder, store: bool, address: u64, instruction: &Summary) {
        let line = address >> 6;
        let missed = line != self.last_line && !recorder.cache.touch(line);
        self.last_line = line;
        if missed || self.block.is_some() {
            self.track(recorder, store, address, instruction, missed);
        }
    }

    #[inline(never)]
    fn track(&mut self, recorder: &Recorder, store: bool, address: u64, instruction: &Summary, missed: bool) {
        self.advance(instruction);
        if missed {
            let (line, behind) = (address >> 6, u64::from(instruction.behind));
            let dependence = self.tracker.miss(instruction, line, self.instructions - behind);
            self.record(recorder, Record { line, store, dependence, instructions: 0, stamp: 0 }, behind);
            if self.block.is_none() {
                self.block = Some(Place::of(instruction));
            }
        }
        if store {
            self.tracker.store(instruction, address);
        } else {
            self.tracker.load(instruction, address, missed);
        }
    }

    #[inline(never)]
    fn record(&mut self, recorder: &Recorder, record: Record, behind: u64) {
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
            recorder.count_lost();
        }
        self.chunk.is_some()
    }
}
