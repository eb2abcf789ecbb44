//! Requests, settings and counts of the mover.

use isotherm_core::{Bytes, MoveStatus, Nanos};

use crate::memory::{BASE, HUGE};

/// Kind of page at a move's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A page of 4 KiB. For a part of a huge page the kernel moves the whole, 512 times what is counted here:
    /// use [`Self::Huge`].
    Base,
    /// A huge page mapped as one ([`crate::memory::pagemap::PageRun::huge`]), moved by its first address. One
    /// that the kernel has split meanwhile is moved page by page.
    Huge,
    /// 2 MiB of address space with any pages.
    HugeRange,
}

impl Shape {
    /// Returns the bytes that it spans.
    pub fn bytes(self) -> u64 {
        if self == Self::Base { BASE } else { HUGE }
    }
}

/// One page to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageMove {
    /// First address.
    pub address: u64,
    /// Kind of page.
    pub shape: Shape,
    /// Target node.
    pub node: u32,
}

/// Settings of a mover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoverOptions {
    /// Base pages per call; a huge page counts as one. The default is 512: the kernel unmaps, flushes and
    /// copies at most that many at once (`NR_MAX_BATCHED_MIGRATION`), so that longer calls only delay the
    /// answer.
    pub batch: usize,
    /// Retries of busy pages.
    pub retries: u32,
    /// Pause before a retry.
    pub pause: Nanos,
    /// Longest total pause of one step.
    pub pause_budget: Nanos,
    /// Requests for room per batch.
    pub room_requests: u32,
    /// Also moves pages that several processes map; needs CAP_SYS_NICE.
    pub shared: bool,
    /// Bytes per second; `None` for no limit.
    pub rate: Option<Bytes>,
    /// Bytes that may move at once after a rest; at least 2 MiB.
    pub burst: Bytes,
}

impl Default for MoverOptions {
    fn default() -> Self {
        Self {
            batch: 512,
            retries: 2,
            pause: Nanos(100_000),
            pause_budget: Nanos(1_000_000),
            room_requests: 2,
            shared: false,
            rate: None,
            burst: Bytes(64 << 20),
        }
    }
}

/// Progress of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Every move has a status.
    Done,
    /// The rate allows no more before this time; `u64::MAX` if never, at a rate of 0.
    Wait {
        /// When to call again.
        until: Nanos,
    },
}

/// Counts of a mover: moves by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MoverStatistics {
    /// Moved.
    pub moved: u64,
    /// Bytes moved.
    pub bytes: Bytes,
    /// Already on their node.
    pub already_there: u64,
    /// Not moved: no room.
    pub no_room: u64,
    /// Not moved: busy after every retry.
    pub busy: u64,
    /// No longer mapped.
    pub gone: u64,
    /// Not moved: not allowed.
    pub denied: u64,
    /// Calls to move pages, with retries and without queries.
    pub calls: u64,
    /// Rounds of retries.
    pub retries: u64,
}

impl MoverStatistics {
    pub(super) fn count(&mut self, statuses: &[MoveStatus], moved: Bytes) {
        self.bytes += moved;
        for status in statuses {
            *match status {
                MoveStatus::Moved => &mut self.moved,
                MoveStatus::AlreadyThere => &mut self.already_there,
                MoveStatus::NoRoom => &mut self.no_room,
                MoveStatus::Busy => &mut self.busy,
                MoveStatus::Gone => &mut self.gone,
                MoveStatus::Denied => &mut self.denied,
            } += 1;
        }
    }
}
