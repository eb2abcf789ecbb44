//! Defines the C library's own allocator: for blocks that it made by itself, and where there are no regions.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

/// As [`crate::heap`]'s.
pub(crate) fn allocate(size: usize, alignment: usize, zeroed: bool) -> *mut c_void {
    // SAFETY: no conditions.
    unsafe {
        match (alignment > crate::classes::QUANTUM, zeroed) {
            (true, _) => __libc_memalign(alignment, size),
            (false, true) => __libc_calloc(1, size),
            (false, false) => __libc_malloc(size),
        }
    }
}

/// # Safety
/// The block is the C library's.
pub(crate) unsafe fn release(block: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { __libc_free(block) };
}

/// # Safety
/// The block is the C library's.
pub(crate) unsafe fn resize(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { __libc_realloc(block, size) }
}

/// # Safety
/// The block is the C library's, or null.
pub(crate) unsafe fn capacity(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the library's function of this name has this type.
    unsafe {
        let function = libc::dlsym(libc::RTLD_NEXT, c"malloc_usable_size".as_ptr());
        let function = transmute::<*mut c_void, Option<unsafe extern "C" fn(*mut c_void) -> usize>>(function);
        function.map_or(0, |function| function(block))
    }
}

/// Unloads a library.
///
/// # Safety
/// As for `dlclose(3)`.
pub(crate) unsafe fn unload(handle: *mut c_void) -> c_int {
    // SAFETY: the library's function of this name has this type.
    unsafe {
        let function = libc::dlsym(libc::RTLD_NEXT, c"dlclose".as_ptr());
        let function = transmute::<*mut c_void, Option<unsafe extern "C" fn(*mut c_void) -> c_int>>(function);
        function.map_or(-1, |function| function(handle))
    }
}
