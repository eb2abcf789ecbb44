//! Map from each page of the regions to the blocks that start in it.
//!
//! `free` learns by one load the free list of a block and whether a block starts at its address. The entry
//! is written when a block is born; all blocks that start in a page share region and class, since jemalloc
//! gives a run of pages to one class. At most one block larger than the classes starts in a page.

use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicUsize};

use crate::sys::{self, PAGE};

static START: AtomicUsize = AtomicUsize::new(0);

/// All zeros: no block starts in this page. The lower half is the number of the blocks' free list, or
/// [`NO_LIST`] for a block that is larger than the classes. The upper half, with a list, is what makes the
/// offset of a block from the start of the regions a multiple of its size; otherwise the block's place in the
/// page, with [`LIVE`] or [`FREED`].
pub(crate) struct Page(AtomicU32);

/// Number of the list that has never room.
pub(crate) const NO_LIST: usize = 0;
const LIVE: usize = 0x8000;
const FREED: usize = 0x4000;
const _: () = assert!(PAGE <= FREED, "a place in a page leaves room for the marks");

/// Reserves the map for `bytes` of regions. Returns false if there are not enough addresses.
pub(crate) fn reserve(bytes: usize) -> bool {
    let Some(start) = sys::reserve(map_bytes(bytes), PAGE) else { return false };
    START.store(start.as_ptr() as usize, Relaxed);
    true
}

/// Commits the entries of a part of the regions. Returns false if the system refuses.
pub(crate) fn commit(offset: usize, bytes: usize) -> bool {
    sys::commit(address(offset), map_bytes(bytes))
}

const fn map_bytes(bytes: usize) -> usize {
    bytes / PAGE * size_of::<Page>()
}

#[inline(always)]
fn address(offset: usize) -> usize {
    START.load(Relaxed) + offset / PAGE * size_of::<Page>()
}

/// # Safety
/// [`commit`] has succeeded for the part of the regions that holds `offset`.
#[inline(always)]
pub(crate) unsafe fn page(offset: usize) -> &'static Page {
    // SAFETY: the entry is aligned, inside the map, committed by the caller's promise, and stays.
    unsafe { &*(address(offset) as *const Page) }
}

/// Forgets what started in the pages that lie wholly in a part of the regions.
///
/// # Safety
/// [`commit`] has succeeded for the part, and no live block starts in these pages.
pub(crate) unsafe fn clear(offset: usize, bytes: usize) {
    let (first, end) = (address(offset.next_multiple_of(PAGE)), address(offset + bytes));
    let inner = (first.next_multiple_of(PAGE), end & !(PAGE - 1));
    let fill = |from: usize, to: usize| {
        // SAFETY: the entries are committed by the caller's promise; without blocks nobody else needs them.
        unsafe { ptr::write_bytes(from as *mut u8, 0, to.saturating_sub(from)) };
    };
    // Of a large part, the map's own pages need no memory.
    if inner.0 < inner.1 && sys::discard(inner.0, inner.1 - inner.0) {
        fill(first, inner.0);
        fill(inner.1, end);
    } else {
        fill(first, end);
    }
}

const fn entry(list: usize, upper: usize) -> u32 {
    (upper << 16 | list) as u32
}

/// Returns the entry of a block that is larger than the classes, in state [`LIVE`] or [`FREED`].
const fn large(offset: usize, state: usize) -> u32 {
    entry(NO_LIST, state | (offset % PAGE))
}

impl Page {
    /// Returns the number of the free list of the page's blocks, and, for a list, a number that is a multiple
    /// of the blocks' size if one starts at `offset`.
    #[inline(always)]
    pub(crate) fn list(&self, offset: usize) -> (usize, usize) {
        let entry = self.0.load(Relaxed) as usize;
        (entry & 0xffff, offset + (entry >> 16))
    }

    /// Notes a block of a list, of `size` bytes.
    pub(crate) fn set_list(&self, offset: usize, list: usize, size: usize) {
        let (known, position) = self.list(offset);
        if known != list || !position.is_multiple_of(size) {
            // A run of pages begins at a page and has seven pages at most.
            let shift = (0..7).map(|pages| pages * PAGE).find(|shift| (offset + shift).is_multiple_of(size));
            self.0.store(entry(list, shift.unwrap_or(0)), Relaxed);
        }
    }

    /// Notes a live block that is larger than the classes.
    pub(crate) fn set_large(&self, offset: usize) {
        self.0.store(large(offset, LIVE), Relaxed);
    }

    /// Returns whether a live block larger than the classes starts at `offset`.
    pub(crate) fn is_large(&self, offset: usize) -> bool {
        self.0.load(Relaxed) == large(offset, LIVE)
    }

    /// Returns whether the last block larger than the classes that started at `offset` has been freed.
    pub(crate) fn was_large(&self, offset: usize) -> bool {
        self.0.load(Relaxed) == large(offset, FREED)
    }

    /// Notes the end of a block larger than the classes. Returns false if none lives at `offset`.
    pub(crate) fn end_large(&self, offset: usize) -> bool {
        let (live, freed) = (large(offset, LIVE), large(offset, FREED));
        self.0.compare_exchange(live, freed, AcqRel, Relaxed).is_ok()
    }
}

/// Notes a block larger than the classes, and that no block starts in the pages that it fills.
///
/// # Safety
/// The block is live, and has at least `bytes` bytes.
pub(crate) unsafe fn set_large(offset: usize, bytes: usize) {
    // SAFETY: a block's part of the regions is committed, and its entries with it; the pages behind the
    // first one belong to the block.
    unsafe {
        page(offset).set_large(offset);
        let inside = PAGE - offset % PAGE;
        if bytes > inside {
            clear(offset + inside, bytes - inside);
        }
    }
}
