//! Follows a vCPU's dependences through blocks. QEMU calls only for blocks and accesses; the tracker gets
//! each instruction in order, unless it is idle.

use std::ptr::NonNull;

use crate::dependence::Tracker;
use crate::summary::Summary;

pub(crate) struct Follower {
    /// `None` while the tracker is idle.
    position: Option<Position>,
    /// `None` before the first miss.
    tracker: Option<Box<Tracker>>,
}

/// Block's summaries and the index of the next instruction.
#[derive(Clone, Copy)]
struct Position {
    first: NonNull<Summary>,
    length: u32,
    next: u32,
}

impl Position {
    /// Returns the start of the block of `instruction`, which must lie in a block's array of summaries.
    #[inline]
    fn start(instruction: &Summary) -> Self {
        // SAFETY: the summaries of a block lie in one array, each at its index.
        let first = unsafe { NonNull::from(instruction).sub(usize::from(instruction.index)) };
        Self { first, length: instruction.block_length() as u32, next: 0 }
    }

    #[inline]
    fn block(&self) -> &'static [Summary] {
        // SAFETY: the array lives until QEMU drops its translations, which forgets every position (`forget`).
        // The reference does not leave this module.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.length as usize) }
    }

    /// Steps over the instructions before index `target`.
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

    /// Returns whether a miss lies inside the window.
    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.position.is_some()
    }

    pub(crate) fn forget(&mut self) {
        self.position = None;
        if let Some(tracker) = &mut self.tracker {
            tracker.forget();
        }
    }

    /// Enters the block of `instruction`, which ends at instruction `end` of the thread.
    #[inline(never)]
    pub(crate) fn change_block(&mut self, instruction: &Summary, end: u64) {
        let (Some(position), Some(tracker)) = (&mut self.position, &mut self.tracker) else { return };
        position.advance(tracker, u32::MAX);
        tracker.age(end);
        self.position = (!tracker.idle()).then(|| Position::start(instruction));
    }

    /// Notes a miss, instruction `at`. Returns the distance to the miss that its address depends on, or 0.
    #[inline]
    pub(crate) fn miss(&mut self, instruction: &Summary, line: u64, at: u64) -> u8 {
        let tracker = self.tracker.get_or_insert_default();
        let next = u32::from(instruction.index);
        match &mut self.position {
            Some(position) => position.advance(tracker, next),
            None => self.position = Some(Position { next, ..Position::start(instruction) }),
        }
        tracker.miss(instruction, line, at)
    }

    /// Notes a load or store of `instruction` at `address`; `missed` if [`Self::miss`] was called for it.
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
