//! Map from each page of the regions to the free list of the blocks that start in it.
//!
//! `free` finds class and region by one load. The entry is written when a block is born; all blocks that
//! start in a page share region and class, since jemalloc gives a run of pages to one class.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU16, AtomicUsize};

use crate::sys::{self, PAGE};

static START: AtomicUsize = AtomicUsize::new(0);

/// Reserves the map for `bytes` of regions. Returns false if there are not enough addresses.
pub(crate) fn reserve(bytes: usize) -> bool {
    let Some(start) = sys::reserve(bytes / PAGE * size_of::<AtomicU16>(), PAGE) else { return false };
    START.store(start.as_ptr() as usize, Relaxed);
    true
}

/// Commits the entries of a part of the regions. Returns false if the system refuses.
pub(crate) fn commit(offset: usize, bytes: usize) -> bool {
    sys::commit(entry_address(offset), bytes / PAGE * size_of::<AtomicU16>())
}

#[inline(always)]
fn entry_address(offset: usize) -> usize {
    START.load(Relaxed) + offset / PAGE * size_of::<AtomicU16>()
}

/// # Safety
/// [`commit`] has succeeded for the part of the regions that holds `offset`.
#[inline(always)]
unsafe fn entry(offset: usize) -> &'static AtomicU16 {
    // SAFETY: the entry is aligned, inside the map, committed by the caller's promise, and stays.
    unsafe { &*(entry_address(offset) as *const AtomicU16) }
}

/// Returns the free list of a block at this offset, or `None` if it is not cached.
///
/// # Safety
/// A live block starts at `offset`.
#[inline(always)]
pub(crate) unsafe fn list(offset: usize) -> Option<usize> {
    // SAFETY: a block's part of the regions is committed, and its entries with it.
    usize::from(unsafe { entry(offset) }.load(Relaxed)).checked_sub(1)
}

/// # Safety
/// As for [`list`].
pub(crate) unsafe fn set(offset: usize, list: Option<usize>) {
    let value = list.map_or(0, |list| list as u16 + 1);
    // SAFETY: a block's part of the regions is committed, and its entries with it.
    let entry = unsafe { entry(offset) };
    if entry.load(Relaxed) != value {
        entry.store(value, Relaxed);
    }
}
