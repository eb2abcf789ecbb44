//! Blocks released by a signal handler that interrupted the allocator; the next call takes them.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::thread::Guard;
use crate::{heap, regions};

/// The blocks, linked through their first words; put singly and taken all at once, which avoids ABA.
static WAITING: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// # Safety
/// The block is of a region, and nothing uses it afterwards.
pub(crate) unsafe fn put(block: *mut c_void) {
    let mut first = WAITING.load(Acquire);
    loop {
        // SAFETY: the block is unused, at least as large as a pointer and aligned for one.
        unsafe { *block.cast::<*mut c_void>() = first };
        match WAITING.compare_exchange_weak(first, block, AcqRel, Acquire) {
            Ok(_) => break,
            Err(now) => first = now,
        }
    }
}

pub(crate) fn release_all(guard: &mut Guard) {
    if WAITING.load(Relaxed).is_null() {
        return;
    }
    let mut block = WAITING.swap(ptr::null_mut(), AcqRel);
    while !block.is_null() {
        // SAFETY: `put` took the blocks and the swap made them this call's; the link is read first.
        unsafe {
            let next = *block.cast::<*mut c_void>();
            if let Some(offset) = regions::offset(block) {
                heap::release_to(guard, block, offset);
            }
            block = next;
        }
    }
}
