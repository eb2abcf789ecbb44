//! Defines the map from each page of the regions to the free list that blocks starting in it belong to.
//!
//! Where a page holds blocks of one small class, `free` finds the class and the region by one load. The entry is written when a
//! block is born; all blocks that start in a page share region and class, since jemalloc gives a run of pages to one class.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU16, AtomicUsize};

use crate::sys::{self, PAGE};

/// The address of the first entry.
static START: AtomicUsize = AtomicUsize::new(0);

/// Reserves the map for so many bytes of regions; false if there are no addresses for it.
pub(crate) fn reserve(bytes: usize) -> bool {
    let Some(start) = sys::reserve(bytes / PAGE * size_of::<AtomicU16>(), PAGE) else { return false };
    START.store(start.as_ptr() as usize, Relaxed);
    true
}

/// Puts memory behind the entries of a part of the regions.
pub(crate) fn commit(offset: usize, bytes: usize) -> bool {
    sys::commit(entry_address(offset), bytes / PAGE * size_of::<AtomicU16>())
}

#[inline(always)]
fn entry_address(offset: usize) -> usize {
    START.load(Relaxed) + offset / PAGE * size_of::<AtomicU16>()
}

/// # Safety
/// The part of the regions at `offset` was committed.
#[inline(always)]
unsafe fn entry(offset: usize) -> &'static AtomicU16 {
    // SAFETY: inside the map, and committed with its part of the regions.
    unsafe { &*(entry_address(offset) as *const AtomicU16) }
}

/// The free list of a block at this offset into the regions; none where blocks are not cached.
///
/// # Safety
/// A live block starts there.
#[inline(always)]
pub(crate) unsafe fn list(offset: usize) -> Option<usize> {
    // SAFETY: a block lies in committed memory.
    usize::from(unsafe { entry(offset) }.load(Relaxed)).checked_sub(1)
}

/// Sets the free list of blocks that start in the page of this offset.
///
/// # Safety
/// As for [`list`].
pub(crate) unsafe fn set(offset: usize, list: Option<usize>) {
    let value = list.map_or(0, |list| list as u16 + 1);
    // SAFETY: a block lies in committed memory.
    let entry = unsafe { entry(offset) };
    if entry.load(Relaxed) != value {
        entry.store(value, Relaxed);
    }
}
