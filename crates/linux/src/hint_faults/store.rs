//! The store: where pages lie while they are armed. Each window has a slot in it.

use std::ops::Range;

use super::window::LARGEST;
use crate::sys::agent as sys;
use crate::sys::pages::PAGE;
use crate::sys::range::Range64;
use crate::sys::userfaultfd::Userfault;

pub(super) const SMALL: u64 = 64;
/// Windows of sampling, of policies' requests, and of huge pages.
const SAMPLED: usize = 64;
const REQUESTED: usize = 128;
const HUGE: usize = 8;
pub(super) const TOTAL: usize = SAMPLED + REQUESTED + HUGE;
const HUGE_BYTES: u64 = LARGEST as u64 * PAGE;
const SMALL_BYTES: u64 = SMALL * PAGE;
const BYTES: u64 = (SAMPLED + REQUESTED) as u64 * SMALL_BYTES + HUGE as u64 * HUGE_BYTES;

pub(super) fn places(huge: bool, requested: bool) -> Range<usize> {
    match (huge, requested) {
        (true, _) => SAMPLED + REQUESTED..TOTAL,
        (false, false) => 0..SAMPLED,
        (false, true) => SAMPLED..SAMPLED + REQUESTED,
    }
}

pub(super) struct Store {
    mapped: Range64,
    /// Aligned to huge pages.
    start: u64,
}

impl Store {
    /// Maps and registers it, so that pages can be moved there.
    pub(super) fn new(userfault: &Userfault) -> Result<Self, i32> {
        let mapped = sys::map(BYTES + HUGE_BYTES)?;
        userfault.register(mapped).inspect_err(|_| sys::unmap(mapped))?;
        Ok(Self { mapped, start: mapped.start.next_multiple_of(HUGE_BYTES) })
    }

    pub(super) fn range(&self) -> Range64 {
        self.mapped
    }

    pub(super) fn slot(&self, window: usize) -> u64 {
        let huge = HUGE as u64 * HUGE_BYTES;
        match window.checked_sub(SAMPLED + REQUESTED) {
            Some(at) => self.start + at as u64 * HUGE_BYTES,
            None => self.start + huge + window as u64 * SMALL_BYTES,
        }
    }

    /// Drops the rest of a window's slot, unregistered meanwhile, or the agent would wait for itself.
    pub(super) fn clean(&self, userfault: &Userfault, window: usize) {
        let bytes = if window < SAMPLED + REQUESTED { SMALL_BYTES } else { HUGE_BYTES };
        let slot = Range64::new(self.slot(window), bytes);
        if userfault.unregister(slot).is_ok() {
            sys::drop_pages(slot);
            let _ = userfault.register(slot);
        }
    }
}
