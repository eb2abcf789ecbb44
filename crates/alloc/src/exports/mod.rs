//! The C library's functions that the allocator replaces, and one of its own.
//!
//! An exported function that allocates passes on its caller's stack pointer and frame pointer before anything
//! is pushed, so the first return address lies where the stack pointer points.

pub mod cxx;
pub mod jemalloc;

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::context::Registers;
use crate::sys::PAGE;
use crate::{heap, library, regions, thread};

type Block = *mut c_void;

/// Exports functions that pass their arguments and their caller's registers to a target. `$stack` and
/// `$frame` are the argument registers after the function's own, in which the ABI passes the two words of
/// [`Registers`] (System V ABI, x86-64, "Parameter Passing").
macro_rules! with_registers {
    ($($name:ident($($argument:ident: $type:ty),+) -> $result:ty, $stack:literal, $frame:literal => $target:path;)*) => {$(
        /// # Safety
        /// As its manual says.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),+) -> $result {
            std::arch::naked_asm!(
                concat!("mov ", $stack, ", rsp"),
                concat!("mov ", $frame, ", rbp"),
                "jmp {target}",
                target = sym $target,
            )
        }
    )*};
}
use with_registers;

/// Exports functions that release a block; their other arguments carry nothing new.
macro_rules! releasing {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// `block` is null or a live block of this process, and nothing uses it afterwards.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(block: *mut c_void $(, $argument: $type)*) {
            // SAFETY: the caller promises what `release` asks for.
            unsafe { $crate::heap::release(block) };
        }
    )*};
}
use releasing;

with_registers! {
    malloc(size: usize) -> *mut c_void, "rsi", "rdx" => allocate;
    calloc(count: usize, size: usize) -> *mut c_void, "rdx", "rcx" => allocate_zeroed;
    realloc(block: *mut c_void, size: usize) -> *mut c_void, "rdx", "rcx" => resize;
    reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void, "rcx", "r8" => resize_array;
    memalign(alignment: usize, size: usize) -> *mut c_void, "rdx", "rcx" => allocate_aligned;
    aligned_alloc(alignment: usize, size: usize) -> *mut c_void, "rdx", "rcx" => allocate_aligned;
    posix_memalign(block: *mut *mut c_void, alignment: usize, size: usize) -> c_int, "rcx", "r8" => store_aligned;
    valloc(size: usize) -> *mut c_void, "rsi", "rdx" => allocate_pages;
    pvalloc(size: usize) -> *mut c_void, "rsi", "rdx" => allocate_whole_pages;
}

// The targets' contract: `registers` are those of the exported function's caller, whose call has not
// returned, as `with_registers` passes them; the other arguments are as the exported function's manual says.

unsafe extern "C" fn allocate(size: usize, registers: Registers) -> Block {
    // SAFETY: the contract of targets.
    unsafe { heap::allocate(size, registers) }
}

unsafe extern "C" fn allocate_zeroed(count: usize, size: usize, registers: Registers) -> Block {
    let Some(size) = count.checked_mul(size) else { return heap::or_errno(ptr::null_mut()) };
    // SAFETY: the contract of targets.
    unsafe { heap::allocate_zeroed(size, registers) }
}

unsafe extern "C" fn resize(block: Block, size: usize, registers: Registers) -> Block {
    // SAFETY: the contract of targets: the block is null or live, and the program does not use it afterwards
    // unless the result is null with a size above 0.
    unsafe {
        if size == 0 && !block.is_null() {
            // As in glibc.
            heap::release(block);
            return ptr::null_mut();
        }
        heap::resize(block, size, registers)
    }
}

unsafe extern "C" fn resize_array(block: Block, count: usize, size: usize, registers: Registers) -> Block {
    let Some(size) = count.checked_mul(size) else { return heap::or_errno(ptr::null_mut()) };
    // SAFETY: the contract of targets.
    unsafe { resize(block, size, registers) }
}

unsafe extern "C" fn allocate_aligned(alignment: usize, size: usize, registers: Registers) -> Block {
    // glibc rounds up to a power of two.
    let Some(alignment) = alignment.checked_next_power_of_two() else {
        // SAFETY: the address of this thread's `errno` is valid for the thread's life.
        unsafe { *libc::__errno_location() = libc::EINVAL };
        return ptr::null_mut();
    };
    // SAFETY: the contract of targets; the alignment is a power of two.
    unsafe { heap::allocate_aligned(size, alignment, registers) }
}

unsafe extern "C" fn store_aligned(
    place: *mut Block,
    alignment: usize,
    size: usize,
    registers: Registers,
) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<Block>() {
        return libc::EINVAL;
    }
    // SAFETY: the contract of targets: `place` can be written. The alignment is a power of two.
    unsafe {
        let block = heap::allocate_aligned(size, alignment, registers);
        if block.is_null() {
            return libc::ENOMEM;
        }
        *place = block;
    }
    0
}

unsafe extern "C" fn allocate_pages(size: usize, registers: Registers) -> Block {
    // SAFETY: the contract of targets.
    unsafe { allocate_aligned(PAGE, size, registers) }
}

unsafe extern "C" fn allocate_whole_pages(size: usize, registers: Registers) -> Block {
    let Some(size) = size.checked_next_multiple_of(PAGE) else { return heap::or_errno(ptr::null_mut()) };
    // SAFETY: the contract of targets.
    unsafe { allocate_aligned(PAGE, size.max(PAGE), registers) }
}

releasing! {
    // It preserves `errno`, as jemalloc does when it empties a full list.
    free();
    free_sized(_size: usize);
    free_aligned_sized(_alignment: usize, _size: usize);
}

/// # Safety
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: Block) -> usize {
    // SAFETY: the caller promises what `capacity` asks for.
    unsafe { heap::capacity(block) }
}

/// Afterwards threads forget what they know about addresses of code.
///
/// # Safety
/// As its manual says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    // SAFETY: the caller promises what `dlclose` asks for.
    let result = unsafe { library::unload(handle) };
    thread::note_unloaded();
    result
}

/// Returns the region that a block lies in, from 0, or -1 if it is in none.
#[unsafe(no_mangle)]
pub extern "C" fn isotherm_alloc_region(block: *const c_void) -> c_int {
    regions::offset(block).map_or(-1, |offset| regions::index(offset) as c_int)
}
