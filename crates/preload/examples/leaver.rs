//! A program whose main thread leaves it to another one, which ends a little later. The last thread ends the
//! process and only then flushes its output. Rust's own `main` cannot be left in this way.
#![no_main]
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

unsafe extern "C-unwind" {
    fn pthread_exit(value: *mut c_void) -> !;
    fn pthread_create(
        thread: *mut libc::pthread_t,
        attributes: *const libc::pthread_attr_t,
        routine: extern "C-unwind" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
}

extern "C-unwind" fn last(_: *mut c_void) -> *mut c_void {
    // SAFETY: values, and a string that ends in 0.
    unsafe {
        libc::usleep(300_000);
        libc::printf(c"ok\n".as_ptr());
    }
    std::ptr::null_mut()
}

// SAFETY: the only function of this name in the program, with the type that C asks for.
#[unsafe(no_mangle)]
extern "C-unwind" fn main(_: c_int, _: *const *const c_char) -> c_int {
    let mut thread = 0;
    // SAFETY: the thread's number is writable; this frame holds nothing that would have to be dropped.
    unsafe {
        libc::usleep(100_000);
        pthread_create(&raw mut thread, std::ptr::null(), last, std::ptr::null_mut());
        pthread_exit(std::ptr::null_mut())
    }
}
