//! `libisotherm.so`, the part of Isotherm inside of a program, by `LD_PRELOAD`. It starts before `main`,
//! unseen: with `ISOTHERM_SOCKET` the agent of an engine outside, with `ISOTHERM_POLICY` an engine that is a
//! thread of the program ([`isotherm_live::inside`]), otherwise nothing. In a program with more rights than
//! its user (`AT_SECURE`, as setuid programs) it does nothing either: the environment is the user's.
//!
//! It wraps some functions of the C library. Threads register their stack before they run
//! ([`pthread_create`]), the agent ends before a main thread that leaves its process to other threads
//! ([`pthread_exit`]), and advice that raises no event ([`madvise`]) is given while nothing is armed. An
//! engine inside of the program ends before `_exit`.
#![allow(unsafe_code)]
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use isotherm_linux::hint_faults;

mod arena;
mod engine;

#[global_allocator]
static ALLOCATOR: arena::Arena = arena::Arena;

/// Called by the loader, on the main thread and before `main`.
#[used]
// SAFETY: the section holds pointers to such functions (System V ABI, "Initialization and Termination").
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    // SAFETY: an integer only.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return;
    }
    hint_faults::start_from_environment();
    engine::start_from_environment();
}

type Routine = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Routine, *mut c_void) -> c_int;
type Exit = unsafe extern "C-unwind" fn(*mut c_void) -> !;

/// Returns the C library's own function, looked up once.
fn original(name: &CStr, known: &AtomicUsize) -> usize {
    match known.load(Relaxed) {
        0 => {
            // SAFETY: a name that ends in 0.
            let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
            known.store(found, Relaxed);
            found
        }
        known => known,
    }
}

/// A new thread's routine and argument.
type Task = (Routine, *mut c_void);

// `pthread_exit` and cancellation unwind through this frame, which holds nothing by then.
extern "C-unwind" fn begin(task: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` below made the box for this call alone.
    let (routine, argument) = *unsafe { Box::from_raw(task.cast::<Task>()) };
    hint_faults::note_thread();
    routine(argument)
}

/// # Safety
/// As in `pthread_create(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    let address = original(c"pthread_create", &KNOWN);
    if address == 0 {
        return libc::EAGAIN;
    }
    // SAFETY: the C library's function of this name has this type.
    let create = unsafe { std::mem::transmute::<usize, Create>(address) };
    let task = Box::into_raw(Box::<Task>::new((routine, argument)));
    // SAFETY: the caller's arguments, and a routine that takes the box.
    let result = unsafe { create(thread, attributes, begin, task.cast()) };
    if result != 0 {
        // SAFETY: no thread was made, so the box is still this function's own.
        drop(unsafe { Box::from_raw(task) });
    }
    result
}

/// # Safety
/// As in `pthread_exit(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_exit(value: *mut c_void) -> ! {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: no arguments.
    if unsafe { libc::gettid() == libc::getpid() } {
        engine::finish();
        hint_faults::end_agent();
    }
    let address = original(c"pthread_exit", &KNOWN);
    if address == 0 {
        std::process::abort();
    }
    // SAFETY: the C library's function of this name has this type.
    let exit = unsafe { std::mem::transmute::<usize, Exit>(address) };
    // SAFETY: the caller's argument.
    unsafe { exit(value) }
}

/// Ends the process as `_exit(2)`, as shells do, after an engine inside has written its summary.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    engine::finish();
    // SAFETY: ends the process, as the C library does it.
    unsafe { libc::syscall(libc::SYS_exit_group, status) };
    std::process::abort()
}

/// As in `_Exit(3)`, which is [`_exit`].
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}

/// # Safety
/// As in `madvise(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(start: *mut c_void, length: usize, advice: c_int) -> c_int {
    /// `linux/mman.h`: drops contents without an event.
    const GUARD_INSTALL: c_int = 102;
    let range = start as usize as u64..(start as usize as u64).saturating_add(length as u64);
    // SAFETY: the caller's arguments. The system call, as the C library does it.
    let advise = || unsafe { libc::syscall(libc::SYS_madvise, start, length, advice) } as c_int;
    match advice {
        libc::MADV_WIPEONFORK => {
            // A child must find zeros, but armed pages would be copied into it.
            hint_faults::exclude(range);
            hint_faults::undisturbed(advise)
        }
        GUARD_INSTALL => hint_faults::undisturbed(advise),
        _ => advise(),
    }
}
