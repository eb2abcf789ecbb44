//! Defines how a vCPU's dependences are followed through blocks: the tracker is told of each instruction in order,
//! though QEMU only calls for blocks and accesses, and of none while it is idle.

use std::ptr::NonNull;

use crate::dependence::Tracker;
use crate::summary::Summary;

/// A tracker and the place of the program that it has come to.
pub(crate) struct Follower {
    /// `None` while the tracker is idle.
    position: Option<Position>,
    /// `None` before the first miss.
    tracker: Option<Box<Tracker>>,
}

/// A block's summaries and the next instruction to step over.
#[derive(Clone, Copy)]
struct Position {
    first: NonNull<Summary>,
    length: u32,
    next: u32,
}

impl Position {
    /// The start of the block that `instruction` is in; it must lie in a block's array of summaries.
    #[inline]
    fn start(instruction: &Summary) -> Self {
        // SAFETY: summaries of a block lie in one array, each knowing its index.
        let first = unsafe { NonNull::from(instruction).sub(usize::from(instruction.index)) };
        Self { first, length: instruction.block_length() as u32, next: 0 }
    }

    #[inline]
    fn block(&self) -> &'static [Summary] {
        // SAFETY: the array lives until QEMU drops its translations, and then every position is forgotten
        // (`forget`). `'static` does not leave this module.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.length as usize) }
    }

    /// Steps over the instructions before the one of index `target`.
    #[inline(always)]
    fn advance(&mut self, tracker: &mut Tracker, target: u32) {
        let target = target.min(self.length);
        if self.next >= target {
            return;
        }
        if !tracker.is_clean() {
            tracker.pass(&self.block()[self.next as usize..target as usize]);
        }
        self.next = target;
    }
}

impl Follower {
    pub(crate) const fn new() -> Self {
        Self { position: None, tracker: None }
    }

    /// Whether a miss lies inside the window.
    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.position.is_some()
    }

    /// Forgets every miss, and the block.
    pub(crate) fn forget(&mut self) {
        self.position = None;
        if let Some(tracker) = &mut self.tracker {
            tracker.forget();
        }
    }

    /// The block of `instruction` begins, which ends at instruction `end` of the thread.
    #[inline(never)]
    pub(crate) fn change_block(&mut self, instruction: &Summary, end: u64) {
        let (Some(position), Some(tracker)) = (&mut self.position, &mut self.tracker) else { return };
        position.advance(tracker, u32::MAX);
        tracker.age(end);
        self.position = (!tracker.idle()).then(|| Position::start(instruction));
    }

    /// A miss of `line` by `instruction` at instruction `at` of the thread. Returns the distance to the miss that its
    /// address depends on.
    #[inline]
    pub(crate) fn miss(&mut self, instruction: &Summary, line: u64, at: u64) -> u8 {
        let tracker = self.tracker.get_or_insert_default();
        match &mut self.position {
            Some(position) => position.advance(tracker, u32::from(instruction.index)),
            None => {
                let next = u32::from(instruction.index);
                self.position = Some(Position { next, ..Position::start(instruction) });
            }
        }
        tracker.miss(instruction, line, at)
    }

    /// `instruction` loads from `address` or stores there; a miss has been told already.
    #[inline(always)]
    pub(crate) fn access(&mut self, instruction: &Summary, address: u64, store: bool, missed: bool) {
        let (Some(position), Some(tracker)) = (&mut self.position, &mut self.tracker) else { return };
        position.advance(tracker, u32::from(instruction.index));
        if store {
            tracker.store(instruction, address);
        } else {
            tracker.load(instruction, address, missed);
        }
    }
}
