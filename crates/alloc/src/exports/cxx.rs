//! C++'s `operator new` and `operator delete` in all forms, under their names of the Itanium C++ ABI.
//!
//! libstdc++'s operators call `malloc` and would be the innermost frame of every context.

use std::ffi::c_void;
use std::ptr;

use super::{Block, releasing, with_registers};
use crate::context::Registers;
use crate::{heap, library};

with_registers! {
    // `new` and `new[]`: plain, nothrow, aligned, and aligned nothrow.
    _Znwm(size: usize) -> *mut c_void, "rsi", "rdx" => new;
    _Znam(size: usize) -> *mut c_void, "rsi", "rdx" => new;
    _ZnwmRKSt9nothrow_t(size: usize, nothrow: *const c_void) -> *mut c_void, "rsi", "rdx" => new_or_null;
    _ZnamRKSt9nothrow_t(size: usize, nothrow: *const c_void) -> *mut c_void, "rsi", "rdx" => new_or_null;
    _ZnwmSt11align_val_t(size: usize, alignment: usize) -> *mut c_void, "rdx", "rcx" => new_aligned;
    _ZnamSt11align_val_t(size: usize, alignment: usize) -> *mut c_void, "rdx", "rcx" => new_aligned;
    _ZnwmSt11align_val_tRKSt9nothrow_t(size: usize, alignment: usize, nothrow: *const c_void) -> *mut c_void, "rdx", "rcx" => new_aligned_or_null;
    _ZnamSt11align_val_tRKSt9nothrow_t(size: usize, alignment: usize, nothrow: *const c_void) -> *mut c_void, "rdx", "rcx" => new_aligned_or_null;
}

// The targets' contract: `registers` are those of the operator's caller, whose call has not returned; an
// alignment is a power of two, as C++ demands.

unsafe extern "C-unwind" fn new(size: usize, registers: Registers) -> Block {
    // SAFETY: the contract of targets.
    unsafe {
        let block = heap::allocate(size, registers);
        if block.is_null() { fail(size) } else { block }
    }
}

unsafe extern "C-unwind" fn new_or_null(size: usize, registers: Registers) -> Block {
    // SAFETY: the contract of targets.
    unsafe {
        let block = heap::allocate(size, registers);
        if block.is_null() { fail_quietly(size) } else { block }
    }
}

unsafe extern "C-unwind" fn new_aligned(size: usize, alignment: usize, registers: Registers) -> Block {
    // SAFETY: the contract of targets.
    unsafe {
        let block = heap::allocate_aligned(size, alignment, registers);
        if block.is_null() { fail_aligned(size, alignment) } else { block }
    }
}

unsafe extern "C-unwind" fn new_aligned_or_null(
    size: usize,
    alignment: usize,
    registers: Registers,
) -> Block {
    // SAFETY: the contract of targets.
    unsafe { heap::allocate_aligned(size, alignment, registers) }
}

/// Fails through libstdc++'s own operator, which calls the program's new-handler, retries, and throws.
#[cold]
unsafe fn fail(size: usize) -> Block {
    type New = unsafe extern "C-unwind" fn(usize) -> Block;
    // SAFETY: the Itanium C++ ABI gives the function of this name this type.
    unsafe { library::next::<New>(c"_Znwm").map_or_else(|| libc::abort(), |new| new(size)) }
}

#[cold]
unsafe fn fail_quietly(size: usize) -> Block {
    type New = unsafe extern "C-unwind" fn(usize, *const c_void) -> Block;
    let nothrow = 0_u8;
    // SAFETY: the Itanium C++ ABI gives the function of this name this type; `std::nothrow_t` is empty, so
    // any byte stands for one.
    unsafe {
        let new = library::next::<New>(c"_ZnwmRKSt9nothrow_t");
        new.map_or(ptr::null_mut(), |new| new(size, (&raw const nothrow).cast()))
    }
}

#[cold]
unsafe fn fail_aligned(size: usize, alignment: usize) -> Block {
    type New = unsafe extern "C-unwind" fn(usize, usize) -> Block;
    // SAFETY: the Itanium C++ ABI gives the function of this name this type.
    unsafe {
        let new = library::next::<New>(c"_ZnwmSt11align_val_t");
        new.map_or_else(|| libc::abort(), |new| new(size, alignment))
    }
}

macro_rules! deletes {
    ($($name:ident)*) => {
        releasing! { $($name();)* }
    };
}

deletes! {
    _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t
    _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t
    _ZdlPvSt11align_val_tRKSt9nothrow_t _ZdaPvSt11align_val_tRKSt9nothrow_t
}
