//! Blocks for calls made while the allocator starts, or by a signal handler that interrupted it.
//!
//! Such calls are rare, so the blocks are cut off one after the other and never reused. Nothing here takes a
//! lock, so a handler can interrupt it anywhere.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::{regions, sys};

static USED: AtomicUsize = AtomicUsize::new(0);
static COMMITTED: AtomicUsize = AtomicUsize::new(0);
const STEP: usize = 256 << 10;
/// Bytes before each block, which hold its size.
const HEADER: usize = 16;

/// Allocates a block of zeros at a multiple of `alignment`, a power of two; null if the range is used up.
pub(crate) fn allocate(size: usize, alignment: usize) -> *mut c_void {
    let (start, end) = regions::behind();
    let Some(needed) = size.checked_add(HEADER + alignment.max(HEADER)) else { return ptr::null_mut() };
    if needed > end - start {
        return ptr::null_mut();
    }
    let from = USED.fetch_add(needed.next_multiple_of(HEADER), Relaxed);
    let to = from.saturating_add(needed);
    if to > end - start || !commit(start, to.next_multiple_of(STEP).min(end - start)) {
        return ptr::null_mut();
    }
    let block = (start + from + HEADER).next_multiple_of(alignment.max(HEADER));
    // SAFETY: the header is aligned and lies in committed memory that `fetch_add` gave to this call alone.
    unsafe { *((block - HEADER) as *mut usize) = size };
    block as *mut c_void
}

fn commit(start: usize, to: usize) -> bool {
    let done = to <= COMMITTED.load(Relaxed) || sys::commit(start, to);
    if done {
        COMMITTED.fetch_max(to, Relaxed);
    }
    done
}

/// Returns the size of a block that [`allocate`] made, or `None` for any other address.
pub(crate) fn size(block: *const c_void) -> Option<usize> {
    let (start, _) = regions::behind();
    let inside = (block as usize).wrapping_sub(start) < USED.load(Relaxed);
    // SAFETY: a block inside the used range has the header that `allocate` wrote.
    inside.then(|| unsafe { *((block as usize - HEADER) as *const usize) })
}
