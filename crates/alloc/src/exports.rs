//! Defines the functions of the C library that the allocator takes over.
//!
//! Those that allocate pass on the stack pointer and the frame pointer of their caller, before anything is pushed: so
//! the first return address lies where the stack pointer points.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::context::Registers;
use crate::sys::PAGE;
use crate::{heap, library, thread};

/// Defines functions of so many arguments that pass their caller's registers on as two more.
macro_rules! with_registers {
    ($($(#[$text:meta])* $name:ident($($argument:ident: $type:ty),+) -> $result:ty, $stack:literal, $frame:literal => $target:path;)*) => {$(
        $(#[$text])*
        ///
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
pub(crate) use with_registers;

with_registers! {
    /// As `malloc(3)`.
    malloc(size: usize) -> *mut c_void, "rsi", "rdx" => allocate;
    /// As `calloc(3)`.
    calloc(count: usize, size: usize) -> *mut c_void, "rdx", "rcx" => allocate_zeroed;
    /// As `realloc(3)`.
    realloc(block: *mut c_void, size: usize) -> *mut c_void, "rdx", "rcx" => resize;
    /// As `reallocarray(3)`.
    reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void, "rcx", "r8" => resize_array;
    /// As `memalign(3)`.
    memalign(alignment: usize, size: usize) -> *mut c_void, "rdx", "rcx" => allocate_aligned;
    /// As `aligned_alloc(3)`.
    aligned_alloc(alignment: usize, size: usize) -> *mut c_void, "rdx", "rcx" => allocate_aligned;
    /// As `posix_memalign(3)`.
    posix_memalign(block: *mut *mut c_void, alignment: usize, size: usize) -> c_int, "rcx", "r8" => store_aligned;
    /// As `valloc(3)`.
    valloc(size: usize) -> *mut c_void, "rsi", "rdx" => allocate_pages;
    /// As `pvalloc(3)`.
    pvalloc(size: usize) -> *mut c_void, "rsi", "rdx" => allocate_whole_pages;
}

unsafe extern "C" fn allocate(size: usize, stack: *const usize, frame: usize) -> *mut c_void {
    // SAFETY: the caller's registers.
    unsafe { heap::allocate(size, Registers { stack, frame }) }
}

unsafe extern "C" fn allocate_zeroed(
    count: usize,
    size: usize,
    stack: *const usize,
    frame: usize,
) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return heap::or_errno(ptr::null_mut()) };
    // SAFETY: the caller's registers.
    unsafe { heap::allocate_zeroed(size, Registers { stack, frame }) }
}

unsafe extern "C" fn resize(
    block: *mut c_void,
    size: usize,
    stack: *const usize,
    frame: usize,
) -> *mut c_void {
    // SAFETY: the caller's block and registers.
    unsafe {
        if size == 0 && !block.is_null() {
            // What glibc does.
            heap::release(block);
            return ptr::null_mut();
        }
        heap::resize(block, size, Registers { stack, frame })
    }
}

unsafe extern "C" fn resize_array(
    block: *mut c_void,
    count: usize,
    size: usize,
    stack: *const usize,
    frame: usize,
) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return heap::or_errno(ptr::null_mut()) };
    // SAFETY: the caller's.
    unsafe { resize(block, size, stack, frame) }
}

unsafe extern "C" fn allocate_aligned(
    alignment: usize,
    size: usize,
    stack: *const usize,
    frame: usize,
) -> *mut c_void {
    // glibc takes the next power of two.
    let Some(alignment) = alignment.checked_next_power_of_two() else { return invalid() };
    // SAFETY: the caller's registers.
    unsafe { heap::allocate_aligned(size, alignment, Registers { stack, frame }) }
}

fn invalid() -> *mut c_void {
    // SAFETY: this thread's `errno`.
    unsafe { *libc::__errno_location() = libc::EINVAL };
    ptr::null_mut()
}

unsafe extern "C" fn store_aligned(
    place: *mut *mut c_void,
    alignment: usize,
    size: usize,
    stack: *const usize,
    frame: usize,
) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    // SAFETY: the caller's registers and place.
    unsafe {
        let block = heap::allocate_aligned(size, alignment, Registers { stack, frame });
        if block.is_null() {
            return libc::ENOMEM;
        }
        *place = block;
    }
    0
}

unsafe extern "C" fn allocate_pages(size: usize, stack: *const usize, frame: usize) -> *mut c_void {
    // SAFETY: the caller's registers.
    unsafe { allocate_aligned(PAGE, size, stack, frame) }
}

unsafe extern "C" fn allocate_whole_pages(size: usize, stack: *const usize, frame: usize) -> *mut c_void {
    let Some(size) = size.checked_next_multiple_of(PAGE) else { return heap::or_errno(ptr::null_mut()) };
    // SAFETY: the caller's registers.
    unsafe { allocate_aligned(PAGE, size.max(PAGE), stack, frame) }
}

/// As `free(3)`.
///
/// # Safety
/// As its manual says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: the caller's block. `errno` stays: a full list is emptied by jemalloc, which keeps it.
    unsafe { heap::release(block) };
}

/// As C23's `free_sized`.
///
/// # Safety
/// As the standard says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut c_void, _size: usize) {
    // SAFETY: the caller's block.
    unsafe { heap::release(block) };
}

/// As C23's `free_aligned_sized`.
///
/// # Safety
/// As the standard says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut c_void, _alignment: usize, _size: usize) {
    // SAFETY: the caller's block.
    unsafe { heap::release(block) };
}

/// As `malloc_usable_size(3)`.
///
/// # Safety
/// As its manual says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    // SAFETY: the caller's block.
    unsafe { heap::capacity(block) }
}

/// As `dlclose(3)`: what is known about addresses of code may be wrong afterwards.
///
/// # Safety
/// As its manual says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    // SAFETY: the caller's handle.
    let result = unsafe { library::unload(handle) };
    thread::note_unloaded();
    result
}
