//! Defines blocks that a signal handler gave back while it interrupted the allocator: they wait for the next call that can take them.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::thread::Guard;
use crate::{heap, regions};

/// The blocks, linked through their first words. Blocks are put singly and taken all at once, so a reused one confuses nothing.
static WAITING: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Puts a block in. Takes no lock.
///
/// # Safety
/// A block of a region that nothing uses any more.
pub(crate) unsafe fn put(block: *mut c_void) {
    let mut first = WAITING.load(Acquire);
    loop {
        // SAFETY: no block is smaller than a pointer.
        unsafe { *block.cast::<*mut c_void>() = first };
        match WAITING.compare_exchange_weak(first, block, AcqRel, Acquire) {
            Ok(_) => break,
            Err(now) => first = now,
        }
    }
}

/// Gives all back.
pub(crate) fn release_all(guard: &mut Guard) {
    if WAITING.load(Relaxed).is_null() {
        return;
    }
    let mut block = WAITING.swap(ptr::null_mut(), AcqRel);
    while !block.is_null() {
        // SAFETY: blocks that `put` took; the link is read before the block goes.
        unsafe {
            let next = *block.cast::<*mut c_void>();
            if let Some(offset) = regions::offset(block) {
                heap::release_to(guard, block, offset);
            }
            block = next;
        }
    }
}
