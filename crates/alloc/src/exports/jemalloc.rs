//! Functions of `jemalloc(3)` that programs linked to a shared jemalloc mix with the C library's.
//!
//! Arenas and thread caches named in flags belong to the program's own jemalloc and are ignored.

use std::ffi::{c_int, c_void};

use tikv_jemalloc_sys::MALLOCX_ZERO;

use super::{Block, releasing, with_registers};
use crate::context::Registers;
use crate::{classes, heap, jemalloc};

with_registers! {
    mallocx(size: usize, flags: c_int) -> *mut c_void, "rdx", "rcx" => allocate;
    rallocx(block: *mut c_void, size: usize, flags: c_int) -> *mut c_void, "rcx", "r8" => resize;
}

fn alignment(flags: c_int) -> usize {
    1 << (flags & 0x3f)
}

/// # Safety
/// `registers` are those of a call that has not returned.
unsafe extern "C" fn allocate(size: usize, flags: c_int, registers: Registers) -> Block {
    let alignment = alignment(flags).max(classes::QUANTUM);
    // SAFETY: the caller's promise; the alignment is a power of two; a block has at least `size` bytes.
    unsafe {
        if flags & MALLOCX_ZERO == 0 {
            return heap::allocate_aligned(size, alignment, registers);
        }
        if alignment == classes::QUANTUM {
            return heap::allocate_zeroed(size, registers);
        }
        let block = heap::allocate_aligned(size, alignment, registers);
        if !block.is_null() {
            std::ptr::write_bytes(block.cast::<u8>(), 0, size);
        }
        block
    }
}

/// # Safety
/// `block` is live and not used afterwards unless null is returned; `registers` are those of a call that has
/// not returned.
unsafe extern "C" fn resize(block: Block, size: usize, flags: c_int, registers: Registers) -> Block {
    // SAFETY: the caller's promise; both blocks hold the smaller of the two sizes.
    unsafe {
        if alignment(flags) <= classes::QUANTUM && flags & MALLOCX_ZERO == 0 {
            return heap::resize(block, size, registers);
        }
        let old = heap::capacity(block);
        heap::replace(block, allocate(size, flags, registers), old.min(size))
    }
}

/// A block never changes in place.
///
/// # Safety
/// `block` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xallocx(block: Block, _size: usize, _extra: usize, _flags: c_int) -> usize {
    // SAFETY: the caller's promise.
    unsafe { heap::capacity(block) }
}

/// # Safety
/// `block` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sallocx(block: Block, _flags: c_int) -> usize {
    // SAFETY: the caller's promise.
    unsafe { heap::capacity(block) }
}

releasing! {
    dallocx(_flags: c_int);
    sdallocx(_size: usize, _flags: c_int);
}

#[unsafe(no_mangle)]
pub extern "C" fn nallocx(size: usize, flags: c_int) -> usize {
    match classes::aligned(size, alignment(flags)) {
        Some(class) => usize::from(classes::SIZES[class]),
        None => jemalloc::usable(size.max(alignment(flags))),
    }
}
