//! The request of a policy ([`Plan`]) and its result ([`Outcome`]).

use crate::{DeviceRequest, Nanos, PageId, Pages, Sampling, TierId};

/// One page to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Move {
    /// The page; the others of its unit ([`crate::View::unit`]) move with it.
    pub page: PageId,
    /// The target tier.
    pub to: TierId,
}

/// A request to the host's own LRU: make room on a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Reclaim {
    /// The tier to take pages from; they go to the next slower one.
    pub from: TierId,
    /// The number of pages.
    pub pages: Pages,
}

/// Pages that are unmapped, copied and mapped again together: whoever touches one meanwhile waits for it.
/// Linux would take 512 (`NR_MAX_BATCHED_MIGRATION` in mm/migrate.c), so that a page is away as long as a
/// huge one. Each batch flushes translations once, and the waits grow with its square. Linux's own demotion
/// takes as many (`SWAP_CLUSTER_MAX`).
pub const MOVED_AT_ONCE: usize = 32;

/// The way in which moved pages are copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Copying {
    /// Unmapped, copied and mapped again, as `move_pages(2)` does: an access meanwhile waits.
    #[default]
    Exclusive,
    /// Copied while mapped, and again later if it was written meanwhile ([`MoveStatus::Busy`]). A promoted
    /// page keeps its slow copy as a shadow until it is written: demoting it till then is free (Nomad, OSDI
    /// 2024).
    Transactional,
}

/// The cost of the policy's own computation, in units that the host turns into time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Work {
    /// Random cache lines of metadata touched.
    pub touches: u64,
    /// Simple operations on values at hand (a comparison, an increment of a local).
    pub operations: u64,
    /// Bytes of metadata swept sequentially, as ageing does.
    pub swept: u64,
}

impl Work {
    /// Takes the accumulated work and starts from zero.
    #[must_use]
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

/// A policy's request. Reused from step to step.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Pages to move, carried out in this order.
    pub moves: Vec<Move>,
    /// Pages whose huge pages are split into base pages, before the moves. Those that are in none are passed
    /// over, and so are those that the kernel refuses: [`crate::View::unit`] tells afterwards.
    pub split: Vec<PageId>,
    /// Pages whose 2 MiB ranges become huge pages, after the moves; passed over alike.
    pub collapse: Vec<PageId>,
    /// Room to make by the host's LRU, before the moves.
    pub reclaim: Vec<Reclaim>,
    /// The way in which the moves copy.
    pub copying: Copying,
    /// Pages whose next access faults ([`crate::HintFault`]), armed after the moves. Those not mapped, or
    /// armed already, are passed over.
    pub arm: Vec<PageId>,
    /// A request to the profiling devices, after the moves: threshold, then clear.
    pub device: Option<DeviceRequest>,
    /// A new sampling request, where it changes.
    pub sampling: Option<Sampling>,
    /// The cost of deciding.
    pub work: Work,
    /// Sleep of the policy's thread afterwards (a throttle).
    pub sleep: Nanos,
}

impl Plan {
    /// Empties the plan and keeps its memory.
    pub fn clear(&mut self) {
        self.moves.clear();
        self.split.clear();
        self.collapse.clear();
        self.reclaim.clear();
        self.copying = Copying::default();
        self.arm.clear();
        self.device = None;
        self.sampling = None;
        self.work = Work::default();
        self.sleep = Nanos(0);
    }

    /// Returns whether the host has anything to carry out.
    pub fn acts(&self) -> bool {
        let resizes = !self.split.is_empty() || !self.collapse.is_empty();
        self.moves_pages() || resizes || !self.arm.is_empty() || self.device.is_some()
    }

    /// Returns whether anything is to be moved or reclaimed.
    pub fn moves_pages(&self) -> bool {
        !self.moves.is_empty() || !self.reclaim.is_empty()
    }
}

/// The result of a move, with the kernel's error if there was one (`move_pages(2)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum MoveStatus {
    /// The page is where it was asked to be, moved by this call.
    Moved,
    /// It was there already.
    AlreadyThere,
    /// ENOMEM: the target tier has no room.
    NoRoom,
    /// EBUSY: pinned or under I/O.
    Busy,
    /// ENOENT or EFAULT: not mapped any more.
    Gone,
    /// EPERM or EACCES.
    Denied,
}

/// The result of a plan. Reused from step to step.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// One status for each of the plan's moves, in order.
    pub moves: Vec<MoveStatus>,
    /// Pages that each reclaim request freed, in order.
    pub reclaimed: Vec<Pages>,
    /// The pages that reclaim demoted, where the host can tell which.
    pub demoted: Vec<PageId>,
}

impl Outcome {
    /// Empties the outcome and keeps its memory.
    pub fn clear(&mut self) {
        self.moves.clear();
        self.reclaimed.clear();
        self.demoted.clear();
    }
}
