//! `libisotherm.so`, the part of Isotherm inside of a program, by `LD_PRELOAD`. It starts before `main`,
//! unseen: with `ISOTHERM_SOCKET` the agent of an engine outside, with `ISOTHERM_POLICY` an engine that is a
//! thread of the program ([`isotherm_live::inside`]), otherwise nothing. In a program with more rights than
//! its user (`AT_SECURE`, as setuid programs) it does nothing either: the environment is the user's.
//!
//! It wraps some functions of the C library. Threads register their stack before they run
//! ([`pthread_create`]). What the kernel writes when a thread ends is never armed ([`pthread_mutex_init`],
//! [`clone`], [`syscall`]). Calls that raise no event, or fail on registered memory, are made while nothing
//! is armed ([`madvise`], [`mremap`], [`ioctl`]). A program that filters its system calls gets no agent in
//! its children ([`prctl`]). An engine inside of the program ends before `_exit`.
#![allow(unsafe_code)]
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

use std::ffi::{CStr, c_int, c_long, c_ulong, c_void};
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

type Work = extern "C-unwind" fn(*mut c_void) -> c_int;

extern "C-unwind" fn begin_c11(task: *mut c_void) -> *mut c_void {
    // SAFETY: `thrd_create` below made the box for this call alone.
    let (work, argument) = *unsafe { Box::from_raw(task.cast::<(Work, *mut c_void)>()) };
    // The C library keeps the number in the pointer too: thrd_join(3).
    work(argument) as usize as *mut c_void
}

/// Starts a C11 thread as one of POSIX, which the C library does without calling [`pthread_create`].
///
/// # Safety
/// As in `thrd_create(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_create(
    thread: *mut libc::pthread_t,
    work: Work,
    argument: *mut c_void,
) -> c_int {
    /// `thrd_success`, `thrd_error` and `thrd_nomem` of threads.h.
    const SUCCESS: c_int = 0;
    const ERROR: c_int = 2;
    const NO_MEMORY: c_int = 3;
    let task = Box::into_raw(Box::<(Work, *mut c_void)>::new((work, argument)));
    // SAFETY: the caller's place for the thread, and a routine that takes the box.
    match unsafe { pthread_create(thread, std::ptr::null(), begin_c11, task.cast()) } {
        0 => SUCCESS,
        error => {
            // SAFETY: no thread was made, so the box is still this function's own.
            drop(unsafe { Box::from_raw(task) });
            if error == libc::EAGAIN { NO_MEMORY } else { ERROR }
        }
    }
}

/// Ends engine and agent if the main thread, which started them, ends without its process.
fn leave() {
    // SAFETY: no arguments.
    if unsafe { libc::gettid() == libc::getpid() } {
        engine::finish();
    }
    if hint_faults::is_first_thread() {
        hint_faults::give_up();
    }
}

/// # Safety
/// As in `pthread_exit(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_exit(value: *mut c_void) -> ! {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    leave();
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

/// Calls the kernel; returns its answer as the C library does, with `errno` set.
///
/// # Safety
/// As for the call.
unsafe fn call(number: c_long, arguments: [c_long; 6]) -> c_long {
    let [a, b, c, d, e, f] = arguments;
    let answer: c_long;
    // SAFETY: the caller's arguments, as the ABI passes them: syscall(2).
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") number => answer, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _);
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("svc 0", in("x8") number, inlateout("x0") a => answer, in("x1") b, in("x2") c,
            in("x3") d, in("x4") e, in("x5") f);
    }
    if (-4095..0).contains(&answer) {
        // SAFETY: the address is this thread's own.
        unsafe { *libc::__errno_location() = -answer as c_int };
        return -1;
    }
    answer
}

/// Excludes the word that the kernel clears when a thread ends, and makes its page present: the kernel does
/// not wait for a first touch either.
fn exclude_word(word: u64) {
    const PAGE: u64 = 4096;
    hint_faults::exclude(word..word.saturating_add(size_of::<c_int>() as u64));
    let arguments =
        [(word & !(PAGE - 1)) as c_long, PAGE as c_long, libc::MADV_POPULATE_READ.into(), 0, 0, 0];
    // SAFETY: reads at most the page; an address without memory is refused. `errno` is as it was.
    unsafe {
        let before = *libc::__errno_location();
        call(libc::SYS_madvise, arguments);
        *libc::__errno_location() = before;
    }
}

/// # Safety
/// As in `madvise(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(start: *mut c_void, length: usize, advice: c_int) -> c_int {
    /// `linux/mman.h`: drops contents without an event.
    const GUARD_INSTALL: c_int = 102;
    let range = start as usize as u64..(start as usize as u64).saturating_add(length as u64);
    let arguments = [start as c_long, length as c_long, c_long::from(advice), 0, 0, 0];
    // SAFETY: the caller's arguments.
    let advise = || unsafe { call(libc::SYS_madvise, arguments) } as c_int;
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

/// Moves mappings while none is registered: a call over several mappings (Linux 6.17) refuses those.
///
/// # Safety
/// As in `mremap(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    length: usize,
    new_length: usize,
    flags: c_int,
    new: *mut c_void,
) -> *mut c_void {
    let lengths = [old as c_long, length as c_long, new_length as c_long];
    let arguments = [lengths[0], lengths[1], lengths[2], c_long::from(flags), new as c_long, 0];
    // SAFETY: the caller's arguments.
    hint_faults::undisturbed(|| unsafe { call(libc::SYS_mremap, arguments) }) as *mut c_void
}

/// # Safety
/// As in `ioctl(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(descriptor: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    /// `UFFDIO_REGISTER` of linux/userfaultfd.h: refused for memory that another userfaultfd has.
    const REGISTER: c_ulong = 0xc020_aa00;
    let arguments = [c_long::from(descriptor), request as c_long, argument as c_long, 0, 0, 0];
    // SAFETY: the caller's arguments.
    let control = || unsafe { call(libc::SYS_ioctl, arguments) } as c_int;
    if request != REGISTER || argument.is_null() || hint_faults::is_agent() {
        return control();
    }
    // SAFETY: the argument of this request begins with the start and the length of a range.
    let [start, length] = unsafe { argument.cast::<[u64; 2]>().read_unaligned() };
    hint_faults::exclude(start..start.saturating_add(length));
    hint_faults::undisturbed(control)
}

/// # Safety
/// As in `prctl(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    note_filter(option == libc::PR_SET_SECCOMP);
    let arguments = [c_long::from(option), a as c_long, b as c_long, c as c_long, d as c_long, 0];
    // SAFETY: the caller's arguments.
    (unsafe { call(libc::SYS_prctl, arguments) }) as c_int
}

/// Keeps agents out of children, and of programs that they execute, once a filter is laid: it could end them
/// for the agent's calls.
fn note_filter(filter: bool) {
    unsafe extern "C" {
        static environ: *const *mut u8;
    }
    if !filter || hint_faults::is_agent() {
        return;
    }
    hint_faults::note_filter();
    // SAFETY: the environment is a list of strings that ends in null (environ(7)). One byte of Isotherm's own
    // variable becomes the end of its value: the strings stay where they are, which threads may be reading.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr((*entry).cast()).to_bytes();
            if let Some(value) = text.strip_prefix(hint_faults::SOCKET_VARIABLE.as_bytes())
                && value.starts_with(b"=")
            {
                (*entry).add(hint_faults::SOCKET_VARIABLE.len() + 1).write(0);
            }
            entry = entry.add(1);
        }
    }
}

/// `SECCOMP_SET_MODE_STRICT` and `SECCOMP_SET_MODE_FILTER` of linux/seccomp.h.
const LAYS_FILTER: [c_long; 2] = [0, 1];

/// # Safety
/// As in `syscall(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: the caller's arguments, for each of the calls below.
    let plain = || unsafe { call(number, [a, b, c, d, e, f]) };
    match number {
        libc::SYS_mremap => hint_faults::undisturbed(plain),
        libc::SYS_exit => {
            leave();
            plain()
        }
        libc::SYS_seccomp => {
            note_filter(LAYS_FILTER.contains(&a));
            plain()
        }
        libc::SYS_prctl => {
            // SAFETY: as above.
            let result = unsafe { prctl(a as c_int, b as c_ulong, c as c_ulong, d as c_ulong, e as c_ulong) };
            result.into()
        }
        // SAFETY: as above.
        libc::SYS_madvise => (unsafe { madvise(a as *mut c_void, b as usize, c as c_int) }).into(),
        // SAFETY: as above.
        libc::SYS_ioctl => (unsafe { ioctl(a as c_int, b as c_ulong, c as *mut c_void) }).into(),
        // A list of robust mutexes that the C library does not know of.
        libc::SYS_set_robust_list => {
            hint_faults::give_up();
            plain()
        }
        libc::SYS_set_tid_address => {
            exclude_word(a as u64);
            plain()
        }
        libc::SYS_clone => {
            // The word is the fourth argument on x86-64 and the fifth on others (clone(2)).
            let word = if cfg!(target_arch = "x86_64") { d } else { e };
            if a & c_long::from(libc::CLONE_CHILD_CLEARTID) != 0 {
                exclude_word(word as u64);
            }
            plain()
        }
        libc::SYS_clone3 if a != 0 && b >= 24 => {
            // SAFETY: struct clone_args begins with flags, a descriptor's place and the word's address.
            let [flags, _, word] = unsafe { (a as *const [u64; 3]).read_unaligned() };
            if flags & libc::CLONE_CHILD_CLEARTID as u64 != 0 {
                exclude_word(word);
            }
            plain()
        }
        _ => plain(),
    }
}

type Clone = unsafe extern "C" fn(
    extern "C" fn(*mut c_void) -> c_int,
    *mut c_void,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
) -> c_int;

/// # Safety
/// As in `clone(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clone(
    work: extern "C" fn(*mut c_void) -> c_int,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent_word: *mut c_void,
    block: *mut c_void,
    child_word: *mut c_void,
) -> c_int {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    if flags & libc::CLONE_CHILD_CLEARTID != 0 {
        exclude_word(child_word as u64);
    }
    let address = original(c"clone", &KNOWN);
    if address == 0 {
        // SAFETY: the address is this thread's own.
        unsafe { *libc::__errno_location() = libc::ENOSYS };
        return -1;
    }
    // SAFETY: the C library's function of this name has this type, its last arguments being optional.
    let clone = unsafe { std::mem::transmute::<usize, Clone>(address) };
    // SAFETY: the caller's arguments.
    unsafe { clone(work, stack, flags, argument, parent_word, block, child_word) }
}

type InitialiseMutex =
    unsafe extern "C" fn(*mut libc::pthread_mutex_t, *const libc::pthread_mutexattr_t) -> c_int;

/// # Safety
/// As in `pthread_mutex_init(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_init(
    mutex: *mut libc::pthread_mutex_t,
    attributes: *const libc::pthread_mutexattr_t,
) -> c_int {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    let address = original(c"pthread_mutex_init", &KNOWN);
    if address == 0 {
        return libc::ENOMEM;
    }
    let mut robust = libc::PTHREAD_MUTEX_STALLED;
    if !attributes.is_null() {
        // SAFETY: the caller's attributes, and a place for the answer.
        unsafe { libc::pthread_mutexattr_getrobust(attributes, &raw mut robust) };
    }
    if robust == libc::PTHREAD_MUTEX_ROBUST {
        let start = mutex as usize as u64;
        hint_faults::exclude(start..start + size_of::<libc::pthread_mutex_t>() as u64);
    }
    // SAFETY: the C library's function of this name has this type.
    let initialise = unsafe { std::mem::transmute::<usize, InitialiseMutex>(address) };
    // SAFETY: the caller's arguments.
    unsafe { initialise(mutex, attributes) }
}
