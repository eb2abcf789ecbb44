//! The counts of a run.

mod heat;

use std::ops::Range;

use isotherm_core::live_result::Traffic;
use isotherm_core::{Bytes, MoveStatus, Nanos, PageId, PageSize, TierId};
use isotherm_linux::clock;

use super::evidence::Evidence;
pub(crate) use heat::Heat;

pub(crate) struct Tally {
    start: Nanos,
    pub(crate) samples: u64,
    /// Accesses outside of tiered memory.
    pub(crate) foreign: u64,
    pub(crate) traffic: Traffic,
    pub(crate) heat: Heat,
    pub(crate) evidence: Evidence,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            start: clock::monotonic(),
            samples: 0,
            foreign: 0,
            traffic: Traffic::default(),
            heat: Heat::default(),
            evidence: Evidence::default(),
        }
    }

    pub(crate) fn since_start(&self, monotonic: Nanos) -> Nanos {
        monotonic - self.start
    }

    pub(crate) fn now(&self) -> Nanos {
        clock::monotonic() - self.start
    }

    #[inline]
    pub(crate) fn count(&mut self, page: PageId, weight: u32) {
        self.samples += 1;
        self.heat.add(page, weight);
    }

    pub(crate) fn forget(&mut self, pages: Range<u32>) {
        self.evidence.forget(pages.clone());
        self.heat.forget(pages);
    }

    pub(crate) fn moved(
        &mut self,
        (from, to): (Option<TierId>, TierId),
        status: MoveStatus,
        pages: u64,
        page_size: PageSize,
    ) {
        let traffic = &mut self.traffic;
        let up = from.is_some_and(|from| from > to);
        // A part of a huge page may have moved where the rest is refused.
        *(if up { &mut traffic.promotions } else { &mut traffic.demotions }) += pages;
        traffic.bytes_moved += Bytes(pages * page_size.bytes().0);
        match status {
            MoveStatus::Moved | MoveStatus::AlreadyThere => {}
            MoveStatus::NoRoom => traffic.refused.no_room += 1,
            MoveStatus::Busy => traffic.refused.busy += 1,
            MoveStatus::Gone => traffic.refused.gone += 1,
            MoveStatus::Denied => traffic.refused.denied += 1,
        }
    }

    /// Notes that so many of the pages that were counted as gone are in swap.
    pub(crate) fn swapped(&mut self, pages: u64) {
        let refused = &mut self.traffic.refused;
        refused.gone -= pages;
        refused.swapped += pages;
    }

    pub(crate) fn bytes(&self) -> Bytes {
        Bytes((self.heat.bytes() + self.evidence.bytes()) as u64)
    }
}
