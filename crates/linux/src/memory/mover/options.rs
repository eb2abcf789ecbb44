//! Defines what a mover is asked, how it goes about it, and what it counts.

use isotherm_core::{Bytes, MoveStatus, Nanos};

use crate::memory::{BASE, HUGE};

/// What lies at a move's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A page of 4 KiB. Of a part of a huge page the kernel moves the whole, 512 times what is counted here: ask for that
    /// as [`Self::Huge`].
    Base,
    /// A huge page that is mapped as one ([`crate::memory::pagemap::PageRun::huge`]): it is moved by its first address. One
    /// that the kernel split meanwhile is noticed and moved page by page.
    Huge,
    /// 2 MiB of address space, of whatever pages.
    HugeRange,
}

impl Shape {
    /// How much memory it spans.
    pub fn bytes(self) -> u64 {
        if self == Self::Base { BASE } else { HUGE }
    }
}

/// One page to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageMove {
    /// Its first address.
    pub address: u64,
    /// What lies there.
    pub shape: Shape,
    /// The node to move it to.
    pub node: u32,
}

/// How a mover goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoverOptions {
    /// Base pages a call; a huge page counts as one. The default is 512: the kernel unmaps, flushes and copies at most
    /// that many at once (`NR_MAX_BATCHED_MIGRATION`), so that longer calls only delay the answer.
    pub batch: usize,
    /// How often pages that are busy are tried again.
    pub retries: u32,
    /// How long to wait before.
    pub pause: Nanos,
    /// The most that one step waits so.
    pub pause_budget: Nanos,
    /// How often room is asked for in one batch.
    pub room_requests: u32,
    /// Also moves pages that several processes map; needs CAP_SYS_NICE.
    pub shared: bool,
    /// Bytes a second; `None` for no limit.
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

/// Whether all was carried out.
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

/// What a mover has done since it was made: moves by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MoverStatistics {
    /// Moved.
    pub moved: u64,
    /// Bytes moved.
    pub bytes: Bytes,
    /// On their node already.
    pub already_there: u64,
    /// Not moved: no room.
    pub no_room: u64,
    /// Not moved: busy after every retry.
    pub busy: u64,
    /// Not mapped any more.
    pub gone: u64,
    /// Not moved: not allowed.
    pub denied: u64,
    /// Calls that moved, retries included and queries not.
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
