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

/// Forks past the C library, and the child drops, moves and forks again before it looks at its memory.
pub(crate) fn raw_fork_changes(area: &mut Area) -> Result {
    for _ in 0..20 {
        let child = clone_process();
        if child == 0 {
            leave(changes_in_child(area));
        }
        reap(child, "child")?;
    }
    area.check()
}

fn changes_in_child(area: &Area) -> bool {
    // SAFETY: this process's own copy of the area; the new place is the kernel's choice.
    let moved = unsafe {
        let dropped = libc::madvise(area.at(16) as *mut _, 16 * PAGE, libc::MADV_DONTNEED) == 0;
        let unmapped = libc::munmap(area.at(200) as *mut _, 32 * PAGE) == 0;
        if !dropped || !unmapped {
            return false;
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let place = crate::memory::map(0, 32 * PAGE);
        libc::mremap(area.at(64) as *mut _, 32 * PAGE, 32 * PAGE, flags, place) as usize
    };
    let grandchild = clone_process();
    let there = Area { start: moved.wrapping_sub(64 * PAGE), pages: area.pages };
    let right = area.check_pages(0, 16).is_ok()
        && area.check_zero(16, 16).is_ok()
        && area.check_pages(32, 32).is_ok()
        && there.check_pages(64, 32).is_ok()
        && area.check_pages(96, 104).is_ok();
    if grandchild == 0 {
        leave(right);
    }
    right && reap(grandchild, "grandchild").is_ok()
}

/// Lays a filter over all threads that makes calls which the agent needs fail, or ends who makes them.
pub(crate) fn filter(area: &Area, action: u32) -> Result {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let mut steps = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for call in [libc::SYS_ioctl, libc::SYS_ppoll, libc::SYS_pread64, libc::SYS_userfaultfd] {
        steps.push(step(equal, 0, 1, call as u32));
        steps.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, action));
    }
    steps.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the program and its steps outlive the calls.
    let laid = unsafe {
        let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) == 0
    };
    ensure(laid, "seccomp")?;
    for _ in 0..300 {
        area.check()?;
        // SAFETY: sleeps.
        unsafe { libc::usleep(500) };
    }
    // A child must not try what the filter forbids either.
    // SAFETY: the child only reads, waits and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: sleeps.
        unsafe { libc::usleep(150_000) };
        leave(area.is_right());
    }
    reap(child, "child")?;
    area.check()
}

/// Does what only a process with one thread may do.
pub(crate) fn single(area: &mut Area) -> Result {
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count).unwrap_or(0);
    ensure(threads == 1, &format!("{threads} threads"))?;
    // SAFETY: changes this process's own namespaces.
    let entered = unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) } == 0;
    if !entered && std::env::var_os("LD_PRELOAD").is_none() {
        return Err(crate::Failure::Impossible("no user namespaces".into()));
    }
    ensure(entered, "unshare")?;
    area.check()
}

/// Finds no children but its own.
pub(crate) fn childless(area: &mut Area) -> Result {
    let mut status = 0;
    // SAFETY: a status to be written.
    let none = unsafe { libc::waitpid(-1, &raw mut status, 0) };
    let error = std::io::Error::last_os_error().raw_os_error();
    ensure(none == -1 && error == Some(libc::ECHILD), "waitpid without children")?;
    area.check()
}

/// Changes identity for good and finds its memory.
pub(crate) fn drop_rights(area: &mut Area) -> Result {
    // SAFETY: no memory is passed.
    if unsafe { libc::geteuid() } != 0 {
        return Err(crate::Failure::Impossible("needs root".into()));
    }
    // SAFETY: as above.
    ensure(unsafe { libc::setresuid(65534, 65534, 65534) } == 0, "setresuid")?;
    for _ in 0..100 {
        area.check()?;
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(())
}

/// Sleeps without the C library's state of a thread, so that a page touched before can be armed again.
fn let_it_be_armed() {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 30_000_000 };
    // SAFETY: reads this frame's `pause`.
    unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
}

/// Threads die as owners of a robust mutex, which the next one must be told.
pub(crate) fn robust(area: &mut Area) -> Result {
    struct Shared(usize);
    extern "C" fn die(mutex: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the mutex that `robust` made.
        unsafe { libc::pthread_mutex_lock(mutex.cast()) };
        let_it_be_armed();
        std::ptr::null_mut()
    }
    let mutex = Shared(area.at(0));
    // SAFETY: all zero is a valid start, and the calls fill it in; the mutex lies in the area's first page.
    unsafe {
        let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
        libc::pthread_mutexattr_init(&raw mut attributes);
        libc::pthread_mutexattr_setrobust(&raw mut attributes, libc::PTHREAD_MUTEX_ROBUST);
        libc::pthread_mutex_init(mutex.0 as *mut _, &raw const attributes);
    }
    for round in 0..60 {
        let mut thread = 0;
        // SAFETY: as in `pthread_create(3)`; the mutex stays where it is.
        let answer = unsafe {
            libc::pthread_create(&raw mut thread, std::ptr::null(), die, mutex.0 as *mut _);
            libc::pthread_join(thread, std::ptr::null_mut());
            libc::pthread_mutex_trylock(mutex.0 as *mut _)
        };
        ensure(answer == libc::EOWNERDEAD, &format!("a dead owner is not told in round {round}: {answer}"))?;
        // SAFETY: this thread owns the mutex.
        unsafe {
            libc::pthread_mutex_consistent(mutex.0 as *mut _);
            libc::pthread_mutex_unlock(mutex.0 as *mut _);
        }
    }
    area.check_pages(1, area.pages - 1)
}

/// Threads of a raw `clone` that end clear a word each, in the area.
pub(crate) fn thread_words(area: &mut Area) -> Result {
    extern "C" fn leave(_: *mut libc::c_void) -> libc::c_int {
        let_it_be_armed();
        0
    }
    let stack = crate::memory::map(0, 64 * PAGE) + 64 * PAGE;
    for round in 0..60 {
        let word = area.at(round % 4);
        crate::memory::write(word, 1);
        let flags = libc::CLONE_VM
            | libc::CLONE_FS
            | libc::CLONE_FILES
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_SYSVSEM
            | libc::CLONE_CHILD_CLEARTID;
        // SAFETY: a stack of its own, used by one thread at a time; the thread touches nothing else.
        let thread = unsafe {
            let none = std::ptr::null_mut::<libc::c_void>();
            libc::clone(leave, stack as *mut _, flags, none, none, none, word as *mut libc::c_void)
        };
        ensure(thread > 0, "clone")?;
        for _ in 0..2000 {
            if crate::memory::read(word) as u32 == 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        ensure(crate::memory::read(word) as u32 == 0, &format!("the word of thread {round} is not cleared"))?;
    }
    area.check_pages(4, area.pages - 4)
}

/// Children that share all memory end by a raw exit; then the area is read for a while.
pub(crate) fn vfork_exits(area: &mut Area) -> Result {
    extern "C" fn exit(_: *mut libc::c_void) -> libc::c_int {
        // SAFETY: ends this process, which is no thread of the parent.
        unsafe { libc::syscall(libc::SYS_exit, 0) as i32 }
    }
    // The C library's `syscall` reads the place of a seventh argument, above the caller's frame.
    let stack = crate::memory::map(0, 64 * PAGE) + 64 * PAGE - 64;
    for _ in 0..20 {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: a stack of its own; the parent waits until the child has ended.
        let child = unsafe { libc::clone(exit, stack as *mut _, flags, std::ptr::null_mut()) };
        ensure(child > 0, "clone")?;
        reap(child, "child that shares memory")?;
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    area.check()
}

/// More threads, each on a larger stack than the one before, than the agent has places for.
pub(crate) fn short_threads(area: &mut Area) -> Result {
    let area: &Area = area;
    for round in 0..2100 {
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let builder = std::thread::Builder::new().stack_size((64 + 8 * round + thread) * PAGE);
                let _ = builder.spawn_scoped(scope, || std::hint::black_box(area.start));
            }
        });
    }
    // What is armed is touched, so that it can be armed again. The agent's next pass may come a second later:
    // thousands of stacks make a pass dear, and it may use one part in 200 of a processor.
    for _ in 0..2000 {
        area.check()?;
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    Ok(())
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
