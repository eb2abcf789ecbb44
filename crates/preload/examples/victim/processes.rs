//! Processes and threads that start and end while all of the memory is armed.
#![allow(unsafe_code)]

use crate::memory::{Area, PAGE};
use crate::{Result, ensure};

const MIDDLE: usize = 64;

/// Waits for the child and fails unless it exits with 0.
fn reap(child: i32, what: &str) -> Result {
    let mut status = 0;
    // SAFETY: a status to be written.
    let reaped = unsafe { libc::waitpid(child, &raw mut status, 0) };
    ensure(child > 0 && reaped == child && status == 0, &format!("{what}: status {status:#x}"))
}

/// Ends a child.
fn leave(right: bool) -> ! {
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(i32::from(!right)) }
}

pub(crate) fn fork(area: &mut Area) -> Result {
    // SAFETY: the child only reads, writes its memory and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let right = area.is_right();
        (0..area.pages).for_each(|page| area.set(page, 3));
        leave(right);
    }
    reap(child, "child")?;
    area.check()
}

/// Forks by a raw system call, past the C library.
fn clone_process() -> i32 {
    // SAFETY: as fork: no memory is shared, no stack passed.
    unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32 }
}

pub(crate) fn raw_fork(area: &mut Area) -> Result {
    let child = clone_process();
    if child == 0 {
        let right = area.is_right();
        (0..area.pages).for_each(|page| area.set(page, 3));
        leave(right);
    }
    reap(child, "child")?;
    area.check()
}

pub(crate) fn dont_fork(area: &mut Area) -> Result {
    let half = area.pages / 2 * PAGE;
    // SAFETY: advice on the area's own pages.
    let advised = unsafe {
        libc::madvise(area.start as *mut _, half / 2, libc::MADV_DONTFORK) == 0
            && libc::madvise((area.start + half) as *mut _, half, libc::MADV_WIPEONFORK) == 0
    };
    ensure(advised, "madvise")?;
    for raw in [true, false] {
        // SAFETY: as in `fork`.
        let child = if raw { clone_process() } else { unsafe { libc::fork() } };
        if child == 0 {
            let half = area.pages / 2;
            let kept = area.check_pages(half / 2, half - half / 2).is_ok();
            leave(kept && area.check_zero(half, area.pages - half).is_ok());
        }
        reap(child, if raw { "child of clone" } else { "child of fork" })?;
    }
    area.check()
}

/// Copies a string with its end into the area.
fn put(area: &Area, page: usize, text: &str) -> *mut libc::c_char {
    let place = area.at(page) as *mut u8;
    for (at, byte) in text.bytes().chain([0]).enumerate() {
        // SAFETY: within the area's page, to which no reference exists.
        unsafe { place.add(at).write_volatile(byte) };
    }
    place.cast()
}

/// Starts a program whose name and arguments lie in armed memory.
pub(crate) fn spawn(area: &mut Area) -> Result {
    for _ in 0..20 {
        let mut child = 0;
        // The words were written before the area was armed, or come back by being written: both are wanted.
        let arguments =
            [put(area, 0, "/bin/sh"), put(area, 1, "-c"), put(area, 2, "exit 0"), std::ptr::null_mut()];
        // SAFETY: strings that end in 0, a list that ends in null, the environment as it is.
        let result = unsafe {
            unsafe extern "C" {
                static environ: *const *mut libc::c_char;
            }
            let none = std::ptr::null();
            libc::posix_spawn(&raw mut child, arguments[0], none, none.cast(), arguments.as_ptr(), environ)
        };
        ensure(result == 0, "posix_spawn")?;
        reap(child, "spawned")?;
    }
    area.check_pages(3, area.pages - 3)
}

pub(crate) fn exec(area: &mut Area) -> Result {
    let arguments = [put(area, 0, "/bin/echo"), put(area, MIDDLE, "ok"), std::ptr::null_mut()];
    // SAFETY: as in `spawn`.
    unsafe { libc::execv(arguments[0], arguments.as_ptr().cast()) };
    ensure(false, "execv")
}

pub(crate) fn exit_now(_: &mut Area) -> Result {
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(42) }
}

pub(crate) fn abort_now(_: &mut Area) -> Result {
    std::process::abort()
}

pub(crate) fn kill_now(_: &mut Area) -> Result {
    // SAFETY: concerns this process alone.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    ensure(false, "kill")
}

/// Closes all files, as a daemon does.
pub(crate) fn close_all(area: &mut Area) -> Result {
    // SAFETY: this program has no open files that anybody relies on.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    area.check()
}

/// Changes the user, for which the C library signals every thread.
pub(crate) fn identity(area: &mut Area) -> Result {
    std::thread::scope(|scope| {
        let sleepers: Vec<_> = (0..8).map(|_| scope.spawn(std::thread::park)).collect();
        for _ in 0..100 {
            // SAFETY: changes nothing.
            ensure(unsafe { libc::setresuid(u32::MAX, u32::MAX, u32::MAX) } == 0, "setresuid")?;
        }
        sleepers.iter().for_each(|sleeper| sleeper.thread().unpark());
        area.check()
    })
}

pub(crate) fn threads(area: &mut Area) -> Result {
    let area: &Area = area;
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..200).map(|_| scope.spawn(|| area.is_right())).collect();
        let right = all.into_iter().filter_map(|thread| thread.join().ok()).filter(|right| *right).count();
        ensure(right == 200, &format!("{right} of 200 threads found what they should"))
    })
}

/// Announces a thread's stack, then ends and joins the thread, for which the kernel writes into its control
/// block.
pub(crate) fn stack() -> std::process::ExitCode {
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        // SAFETY: all zero is a valid start, and the call fills it in.
        let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
        let (mut start, mut bytes) = (std::ptr::null_mut(), 0usize);
        // SAFETY: as in `pthread_getattr_np(3)`.
        unsafe {
            libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes);
            libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut bytes);
            libc::pthread_attr_destroy(&raw mut attributes);
        }
        let _ = tell.send((start as usize, bytes));
        std::thread::park();
    });
    let Ok((start, bytes)) = told.recv() else { return std::process::ExitCode::FAILURE };
    // The upper end, with the control block and what the thread uses.
    let pages = 64;
    Area { start: start + bytes - pages * PAGE, pages }.announce();
    thread.thread().unpark();
    let joined = thread.join().is_ok();
    println!("{}", if joined { "ok" } else { "not joined" });
    std::process::ExitCode::from(u8::from(!joined))
}
