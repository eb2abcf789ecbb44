//! Defines C++'s `operator new` and `operator delete` in all forms, under their names of the Itanium C++ ABI.
//!
//! libstdc++'s call `malloc`, and would be the innermost frame of every context.

use std::ffi::c_void;
use std::mem::transmute;

use crate::context::Registers;
use crate::exports::with_registers;
use crate::heap;

with_registers! {
    /// `operator new(size_t)`
    _Znwm(size: usize) -> *mut c_void, "rsi", "rdx" => new;
    /// `operator new[](size_t)`
    _Znam(size: usize) -> *mut c_void, "rsi", "rdx" => new;
    /// `operator new(size_t, const std::nothrow_t&)`
    _ZnwmRKSt9nothrow_t(size: usize, nothrow: *const c_void) -> *mut c_void, "rsi", "rdx" => new_or_null;
    /// `operator new[](size_t, const std::nothrow_t&)`
    _ZnamRKSt9nothrow_t(size: usize, nothrow: *const c_void) -> *mut c_void, "rsi", "rdx" => new_or_null;
    /// `operator new(size_t, std::align_val_t)`
    _ZnwmSt11align_val_t(size: usize, alignment: usize) -> *mut c_void, "rdx", "rcx" => new_aligned;
    /// `operator new[](size_t, std::align_val_t)`
    _ZnamSt11align_val_t(size: usize, alignment: usize) -> *mut c_void, "rdx", "rcx" => new_aligned;
    /// `operator new(size_t, std::align_val_t, const std::nothrow_t&)`
    _ZnwmSt11align_val_tRKSt9nothrow_t(size: usize, alignment: usize, nothrow: *const c_void) -> *mut c_void, "rdx", "rcx" => new_aligned_or_null;
    /// `operator new[](size_t, std::align_val_t, const std::nothrow_t&)`
    _ZnamSt11align_val_tRKSt9nothrow_t(size: usize, alignment: usize, nothrow: *const c_void) -> *mut c_void, "rdx", "rcx" => new_aligned_or_null;
}

unsafe extern "C-unwind" fn new(size: usize, stack: *const usize, frame: usize) -> *mut c_void {
    // SAFETY: the caller's registers.
    unsafe {
        let block = heap::allocate(size, Registers { stack, frame });
        if block.is_null() { fail(size) } else { block }
    }
}

unsafe extern "C-unwind" fn new_or_null(size: usize, stack: *const usize, frame: usize) -> *mut c_void {
    // SAFETY: the caller's registers.
    unsafe {
        let block = heap::allocate(size, Registers { stack, frame });
        if block.is_null() { fail_quietly(size) } else { block }
    }
}

unsafe extern "C-unwind" fn new_aligned(
    size: usize,
    alignment: usize,
    stack: *const usize,
    frame: usize,
) -> *mut c_void {
    // SAFETY: the caller's registers.
    unsafe {
        let block = heap::allocate_aligned(size, alignment, Registers { stack, frame });
        if block.is_null() { fail_aligned(size, alignment) } else { block }
    }
}

unsafe extern "C-unwind" fn new_aligned_or_null(
    size: usize,
    alignment: usize,
    stack: *const usize,
    frame: usize,
) -> *mut c_void {
    // SAFETY: the caller's registers.
    unsafe { heap::allocate_aligned(size, alignment, Registers { stack, frame }) }
}

/// Lets libstdc++'s own operator fail: it calls the program's new-handler, tries again, and throws.
#[cold]
unsafe fn fail(size: usize) -> *mut c_void {
    type New = unsafe extern "C-unwind" fn(usize) -> *mut c_void;
    // SAFETY: the library's function of this name has this type.
    unsafe {
        let function = libc::dlsym(libc::RTLD_NEXT, c"_Znwm".as_ptr());
        transmute::<*mut c_void, Option<New>>(function).map_or_else(|| libc::abort(), |new| new(size))
    }
}

/// The same for what does not throw.
#[cold]
unsafe fn fail_quietly(size: usize) -> *mut c_void {
    type New = unsafe extern "C-unwind" fn(usize, *const c_void) -> *mut c_void;
    let nothrow = 0_u8;
    // SAFETY: the library's function of this name has this type.
    unsafe {
        let function = libc::dlsym(libc::RTLD_NEXT, c"_ZnwmRKSt9nothrow_t".as_ptr());
        let function = transmute::<*mut c_void, Option<New>>(function);
        function.map_or(std::ptr::null_mut(), |new| new(size, (&raw const nothrow).cast()))
    }
}

/// The same for alignments.
#[cold]
unsafe fn fail_aligned(size: usize, alignment: usize) -> *mut c_void {
    type New = unsafe extern "C-unwind" fn(usize, usize) -> *mut c_void;
    // SAFETY: the library's function of this name has this type.
    unsafe {
        let function = libc::dlsym(libc::RTLD_NEXT, c"_ZnwmSt11align_val_t".as_ptr());
        let function = transmute::<*mut c_void, Option<New>>(function);
        function.map_or_else(|| libc::abort(), |new| new(size, alignment))
    }
}

/// Defines forms of `operator delete`: what follows the block says nothing that is not known.
macro_rules! deletes {
    ($($name:ident)*) => {$(
        /// A form of `operator delete`.
        ///
        /// # Safety
        /// As C++ says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(block: *mut c_void) {
            // SAFETY: the caller's block.
            unsafe { heap::release(block) };
        }
    )*};
}

deletes! {
    _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t
    _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t
    _ZdlPvSt11align_val_tRKSt9nothrow_t _ZdaPvSt11align_val_tRKSt9nothrow_t
}
