//! Defines the functions that jemalloc adds to the C library's: programs linked to a shared jemalloc mix them with `free`.
//!
//! Arenas and thread caches that a program names are its own jemalloc's, and are not followed.

use std::ffi::{c_int, c_void};

use crate::context::Registers;
use crate::exports::with_registers;
use crate::{classes, heap, jemalloc};

with_registers! {
    /// As in `jemalloc(3)`.
    mallocx(size: usize, flags: c_int) -> *mut c_void, "rdx", "rcx" => allocate;
    /// As in `jemalloc(3)`.
    rallocx(block: *mut c_void, size: usize, flags: c_int) -> *mut c_void, "rcx", "r8" => resize;
}

/// The alignment that flags ask for.
fn alignment(flags: c_int) -> usize {
    1 << (flags & 0x3f)
}

unsafe extern "C" fn allocate(size: usize, flags: c_int, stack: *const usize, frame: usize) -> *mut c_void {
    let (alignment, registers) = (alignment(flags).max(classes::QUANTUM), Registers { stack, frame });
    // SAFETY: the caller's registers; a block has at least its size.
    unsafe {
        if flags & tikv_jemalloc_sys::MALLOCX_ZERO == 0 {
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

unsafe extern "C" fn resize(
    block: *mut c_void,
    size: usize,
    flags: c_int,
    stack: *const usize,
    frame: usize,
) -> *mut c_void {
    // SAFETY: the caller's block and registers; blocks hold what is copied.
    unsafe {
        let old = heap::capacity(block);
        if alignment(flags) <= classes::QUANTUM && flags & tikv_jemalloc_sys::MALLOCX_ZERO == 0 {
            return heap::resize(block, size, Registers { stack, frame });
        }
        let new = allocate(size, flags, stack, frame);
        if !new.is_null() {
            std::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), old.min(size));
            heap::release(block);
        }
        new
    }
}

/// As in `jemalloc(3)`; a block never changes in place.
///
/// # Safety
/// As its manual says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xallocx(block: *mut c_void, _size: usize, _extra: usize, _flags: c_int) -> usize {
    // SAFETY: the caller's block.
    unsafe { heap::capacity(block) }
}

/// As in `jemalloc(3)`.
///
/// # Safety
/// As its manual says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sallocx(block: *mut c_void, _flags: c_int) -> usize {
    // SAFETY: the caller's block.
    unsafe { heap::capacity(block) }
}

/// As in `jemalloc(3)`.
///
/// # Safety
/// As its manual says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dallocx(block: *mut c_void, _flags: c_int) {
    // SAFETY: the caller's block.
    unsafe { heap::release(block) };
}

/// As in `jemalloc(3)`.
///
/// # Safety
/// As its manual says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sdallocx(block: *mut c_void, _size: usize, _flags: c_int) {
    // SAFETY: the caller's block.
    unsafe { heap::release(block) };
}

/// As in `jemalloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn nallocx(size: usize, flags: c_int) -> usize {
    match classes::aligned(size, alignment(flags)) {
        Some(class) => usize::from(classes::SIZES[class]),
        None => jemalloc::usable(size.max(alignment(flags))),
    }
}
