//! The C library's own allocator, for blocks that it made itself and for processes without regions.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute_copy;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

/// Allocates a block of at least `size` bytes, as [`crate::heap`] does; null if there is no memory.
pub(crate) fn allocate(size: usize, alignment: usize, zeroed: bool) -> *mut c_void {
    // SAFETY: any size is valid, and alignments are powers of two.
    unsafe {
        match (alignment > crate::classes::QUANTUM, zeroed) {
            (true, _) => __libc_memalign(alignment, size),
            (false, true) => __libc_calloc(1, size),
            (false, false) => __libc_malloc(size),
        }
    }
}

/// # Safety
/// The block is the C library's, and nothing uses it afterwards.
pub(crate) unsafe fn release(block: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { __libc_free(block) };
}

/// Null leaves the block unchanged.
///
/// # Safety
/// The block is the C library's, and nothing uses it afterwards unless null is returned.
pub(crate) unsafe fn resize(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { __libc_realloc(block, size) }
}

/// Returns a block's size in bytes, 0 for null.
///
/// # Safety
/// The block is a live one of the C library's, or null.
pub(crate) unsafe fn capacity(block: *mut c_void) -> usize {
    type Capacity = unsafe extern "C" fn(*mut c_void) -> usize;
    if block.is_null() {
        return 0;
    }
    // SAFETY: the type is that of `malloc_usable_size(3)`; the block by the caller's promise.
    unsafe { next::<Capacity>(c"malloc_usable_size").map_or(0, |capacity| capacity(block)) }
}

/// Unloads a library, as `dlclose(3)` does; -1 if the C library has no such function.
///
/// # Safety
/// As for `dlclose(3)`.
pub(crate) unsafe fn unload(handle: *mut c_void) -> c_int {
    type Unload = unsafe extern "C" fn(*mut c_void) -> c_int;
    // SAFETY: the type is that of `dlclose(3)`; the handle by the caller's promise.
    unsafe { next::<Unload>(c"dlclose").map_or(-1, |unload| unload(handle)) }
}

/// Returns the function of this name in the libraries loaded after this one.
///
/// # Safety
/// `F` is the function's type.
pub(crate) unsafe fn next<F>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<Option<F>>() == size_of::<*mut c_void>(), "a function pointer") };
    // SAFETY: the name ends with 0. An optional function pointer has a pointer's size and is `None` for null;
    // any other address is a function of type `F` by the caller's promise.
    unsafe { transmute_copy(&libc::dlsym(libc::RTLD_NEXT, name.as_ptr())) }
}
