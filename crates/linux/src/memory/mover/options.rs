//! Requests, settings and counts of the mover.

use isotherm_core::{Bytes, MoveStatus, Nanos};

use crate::memory::{BASE, HUGE};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A page of 4 KiB. For a part of a huge page the kernel moves the whole: use [`Self::Huge`].
    Base,
    /// A huge page mapped as one ([`crate::memory::pagemap::PageRun::huge`]), moved by its first address. One
    /// that the kernel has split meanwhile is moved page by page.
    Huge,
    /// 2 MiB of address space with any pages.
    HugeRange,
}

impl Shape {
    pub fn bytes(self) -> u64 {
        if self == Self::Base { BASE } else { HUGE }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageMove {
    pub address: u64,
    pub shape: Shape,
    pub node: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoverOptions {
    /// Base pages per call; a huge page counts as one. By default 512: each call makes all processors drain
    /// their lists of new pages.
    pub batch: usize,
    pub retries: u32,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Done,
    /// The rate allows no more before this time; `u64::MAX` if never, at a rate of 0.
    Wait {
        until: Nanos,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MoverStatistics {
    pub moved: u64,
    pub bytes: Bytes,
    pub already_there: u64,
    pub no_room: u64,
    /// Not moved: busy after every retry.
    pub busy: u64,
    pub gone: u64,
    pub denied: u64,
    /// Calls to move pages, with retries and without queries.
    pub calls: u64,
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
