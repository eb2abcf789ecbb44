//! Calls on processes and signals.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use super::{checked, errno, owned};

/// A process, by its number in Isotherm's own PID namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Pid(pub u32);

/// The signals that ask a program to end.
pub const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Returns the user whose rights this thread has.
pub(crate) fn user() -> u32 {
    // SAFETY: no arguments; it always succeeds.
    unsafe { libc::geteuid() }
}

/// Opens a descriptor that can be read when the process ends: `ESRCH` without it, `ENOSYS` before Linux 5.3.
pub(crate) fn pidfd_open(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.0 as libc::pid_t, 0) })
}

/// Sends a signal to a process that this one started and has not reaped. Errors: `ESRCH` if it has ended.
pub(crate) fn send(pid: Pid, signal: i32) -> io::Result<()> {
    // SAFETY: the call takes two integers.
    checked(unsafe { libc::kill(pid.0 as libc::pid_t, signal) }).map(drop)
}

/// Sends a signal to the process of a [`pidfd_open`]. Errors: `ESRCH` if it has ended, `EPERM`.
pub(crate) fn send_by_descriptor(process: &OwnedFd, signal: i32) -> io::Result<()> {
    let (process, none) = (process.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
    // SAFETY: integers and a null pointer, which the call takes for an ordinary signal.
    checked(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process, signal, none, 0) } as i32).map(drop)
}

/// Raises the limit of open files to the most that is allowed. Children inherit it, and one that calls
/// `select(2)` may not expect it: for processes that start no program.
pub fn raise_open_files() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills in the record, which is borrowed mutably.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the kernel reads the record.
    checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }).map(drop)
}

/// Makes orphaned descendants children of this process instead of init's (`PR_SET_CHILD_SUBREAPER`).
pub(crate) fn become_subreaper() -> io::Result<()> {
    // SAFETY: the call takes integers.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Returns a child, this one or any, that has ended, with its status, without waiting; `None` if none has.
/// Errors: `ECHILD` without such a child, `EINTR` if a signal came.
pub(crate) fn reap(child: Option<Pid>) -> io::Result<Option<(Pid, i32)>> {
    let (kind, number) = child.map_or((libc::P_ALL, 0), |pid| (libc::P_PID, pid.0));
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: all zero is a valid record, and the kernel fills in one of a child that has ended.
    let (pid, code, status) = unsafe {
        let mut ended: libc::siginfo_t = std::mem::zeroed();
        checked(libc::waitid(kind, number, &raw mut ended, flags))?;
        (ended.si_pid(), ended.si_code, ended.si_status())
    };
    if pid == 0 {
        return Ok(None);
    }
    let status = match code {
        libc::CLD_EXITED => status << 8,
        libc::CLD_DUMPED => status | 0x80,
        _ => status,
    };
    // Known before it is gone: a thread that fails between the two calls can still tell it.
    if pid == PROGRAM.load(Ordering::SeqCst) {
        PROGRAM_END.store(status, Ordering::SeqCst);
    }
    // SAFETY: a null pointer asks for no status.
    checked(unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) })?;
    Ok(Some((Pid(pid as u32), status)))
}

/// The launched program, 0 without one, and its status of `wait(2)`, negative until it is known.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
static PROGRAM_END: AtomicI32 = AtomicI32::new(-1);
/// Whether this process does nothing any more but wait for the program and pass signals on.
static OUTLASTING: AtomicBool = AtomicBool::new(false);

/// Notes the program that this process has launched, for [`outlast_program`], which this process calls from
/// then on if a library aborts it: the C library does so where a thread's destructor finds no memory.
pub(crate) fn set_program(program: Pid) {
    extern "C" fn on_abort(_: libc::c_int) {
        if let Some(status) = outlast_program() {
            // SAFETY: ends the process without running anything of it.
            unsafe { libc::_exit(status) };
        }
    }
    PROGRAM_END.store(-1, Ordering::SeqCst);
    PROGRAM.store(program.0 as libc::pid_t, Ordering::SeqCst);
    // SAFETY: all zero is a valid action; the handler makes async-signal-safe calls alone.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_abort as extern "C" fn(_) as usize;
        libc::sigaction(libc::SIGABRT, &raw const action, std::ptr::null_mut());
    }
}

/// Stops this process's other threads for good, with async-signal-safe calls alone. A thread that waits in
/// the kernel without heeding signals is not waited for longer than a second.
fn stop_other_threads() {
    static STOPPED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn stop(_: libc::c_int) {
        STOPPED.fetch_add(1, Ordering::SeqCst);
        loop {
            // SAFETY: no arguments.
            unsafe { libc::pause() };
        }
    }
    /// Place of the name in `struct linux_dirent64`, whose length is in the two bytes at 16: getdents64(2).
    const NAME: usize = 19;
    let (mut sent, mut entries) = (0, [0u64; 512]);
    // SAFETY: the handler is async-signal-safe and blocks all signals in its thread; the kernel fills in
    // `entries`, which are plain bytes, no further than their length.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = stop as extern "C" fn(_) as usize;
        libc::sigfillset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut());
        let (process, own) = (libc::getpid(), libc::gettid());
        let tasks = libc::open(c"/proc/self/task".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        loop {
            let room = size_of_val(&entries);
            let got = libc::syscall(libc::SYS_getdents64, tasks, entries.as_mut_ptr(), room);
            let Ok(got @ 1..) = usize::try_from(got) else { break };
            let mut rest = std::slice::from_raw_parts(entries.as_ptr().cast::<u8>(), got);
            while rest.len() > NAME {
                let length = usize::from(u16::from_ne_bytes([rest[16], rest[17]]));
                let digits = rest[NAME..].iter().take_while(|byte| byte.is_ascii_digit());
                let thread = digits.fold(0, |number, digit| number * 10 + i32::from(digit - b'0'));
                let other = thread > 0 && thread != own;
                sent += usize::from(
                    other && libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR2) == 0,
                );
                rest = &rest[length.clamp(1, rest.len())..];
            }
        }
        let moment = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        for _ in 0..1000 {
            if STOPPED.load(Ordering::SeqCst) >= sent {
                break;
            }
            libc::nanosleep(&raw const moment, std::ptr::null_mut());
        }
    }
}

/// Waits for the launched program, if there is one, and returns its status as a shell shows it. For a process
/// of which nothing else can go on: stops its other threads, closes what it has open, so that others see its
/// end, and calls async-signal-safe functions only.
pub(crate) fn outlast_program() -> Option<i32> {
    let program = PROGRAM.load(Ordering::SeqCst);
    if program == 0 {
        return None;
    }
    let mut status = PROGRAM_END.load(Ordering::SeqCst);
    if status < 0 {
        while OUTLASTING.swap(true, Ordering::SeqCst) {
            // Another thread waits already. SAFETY: no arguments.
            unsafe { libc::pause() };
        }
        stop_other_threads();
        // SAFETY: integers only. No code that knows these descriptors runs after this.
        unsafe { libc::syscall(libc::SYS_close_range, libc::STDERR_FILENO + 1, libc::c_uint::MAX, 0) };
        // SAFETY: `status` outlives the call, which writes one integer to it.
        while unsafe { libc::waitpid(program, &raw mut status, 0) } < 0 {
            if errno() != libc::EINTR {
                // Another thread has reaped it just before it was stopped.
                status = PROGRAM_END.load(Ordering::SeqCst);
                break;
            }
        }
    }
    let signal = libc::WIFSIGNALED(status).then(|| 128 + libc::WTERMSIG(status));
    (status >= 0).then(|| signal.unwrap_or_else(|| libc::WEXITSTATUS(status)))
}

/// Waits until one of these can be read, a signal came or the time is over. Returns which can be read.
/// Errors: `EINVAL` for more than `RLIMIT_NOFILE`, `ENOMEM`.
pub(crate) fn poll(files: impl Iterator<Item = RawFd>, timeout: Duration) -> io::Result<Vec<bool>> {
    let mut polled: Vec<_> = files.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    let milliseconds = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the length are those of one vector, borrowed mutably.
    let result = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, milliseconds) };
    // After a signal, whose handler has written to its pipe, none can be read.
    checked(result).map(drop).or_else(|error| match error.kind() {
        io::ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    })?;
    Ok(polled.iter().map(|entry| result > 0 && entry.revents != 0).collect())
}

/// Makes a pipe that exec closes: the reading and the writing end.
pub(crate) fn pipe() -> io::Result<(File, File)> {
    let (reader, writer) = io::pipe()?;
    Ok((File::from(OwnedFd::from(reader)), File::from(OwnedFd::from(writer))))
}

/// Makes reads and writes of this file return at once.
pub(crate) fn set_nonblocking(file: &File) -> io::Result<()> {
    // SAFETY: the call takes integers; the descriptor is open as long as `file`.
    let flags = checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: as above.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// The writing end of the pipe that the handler writes to; -1 without one.
static SIGNAL_PIPE: AtomicI32 = AtomicI32::new(-1);

/// Set in a record of [`on_signal`] if the kernel itself sent the signal, as a terminal's keys do.
pub(crate) const FROM_KERNEL: u8 = 0x80;

/// Writes the signal's number to the pipe, with async-signal-safe calls alone (`signal-safety(7)`).
extern "C" fn on_signal(number: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid record.
    let code = unsafe { (*info).si_code };
    let byte = number as u8 | if code == SI_KERNEL { FROM_KERNEL } else { 0 };
    // SAFETY: errno's location is always valid in the thread that asks for it.
    let saved = unsafe { *libc::__errno_location() };
    // SAFETY: writes one byte of a local; a bad descriptor or a full pipe only makes the call fail.
    unsafe { libc::write(SIGNAL_PIPE.load(Ordering::Relaxed), (&raw const byte).cast(), 1) };
    if OUTLASTING.load(Ordering::SeqCst) && code != SI_KERNEL {
        // SAFETY: integers only; the program is this process's child and not reaped.
        unsafe { libc::kill(PROGRAM.load(Ordering::SeqCst), number) };
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = saved };
}

/// `SI_KERNEL` of include/uapi/asm-generic/siginfo.h.
const SI_KERNEL: libc::c_int = 0x80;

#[derive(Clone, Copy)]
pub(crate) struct Disposition(libc::sigaction);

impl std::fmt::Debug for Disposition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Disposition({:#x})", self.0.sa_sigaction)
    }
}

impl Disposition {
    /// Returns whether the signal was ignored, as under `nohup`.
    pub(crate) fn is_ignored(&self) -> bool {
        self.0.sa_sigaction == libc::SIG_IGN
    }
}

/// Makes the handler write to this descriptor, -1 for none, and returns the former one.
pub(crate) fn set_signal_pipe(descriptor: RawFd) -> RawFd {
    SIGNAL_PIPE.swap(descriptor, Ordering::SeqCst)
}

/// Returns the signal's disposition. Errors, also of the next two: `EINVAL` without such a signal.
pub(crate) fn disposition(signal: i32) -> io::Result<Disposition> {
    // SAFETY: all bytes zero are a valid value of this plain structure.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null pointer for the new action only asks; `old` outlives the call.
    checked(unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut old) })?;
    Ok(Disposition(old))
}

pub(crate) fn handle(signal: i32) -> io::Result<()> {
    // SAFETY: as in `disposition`; the mask stays empty.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(_, _, _) as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler has the signature that SA_SIGINFO asks for and is async-signal-safe.
    checked(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) }).map(drop)
}

pub(crate) fn restore(signal: i32, disposition: &Disposition) -> io::Result<()> {
    // SAFETY: the action is one that was in force before, so its handler, if any, is still there.
    checked(unsafe { libc::sigaction(signal, &raw const disposition.0, std::ptr::null_mut()) }).map(drop)
}

/// Gives signals handled here the disposition of exec, with async-signal-safe calls alone.
fn reset_own_handlers() {
    let own = on_signal as extern "C" fn(_, _, _) as usize;
    for signal in ENDING {
        if disposition(signal).is_ok_and(|former| former.0.sa_sigaction == own) {
            // SAFETY: the default disposition is valid for each of these signals.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// Tells the parent of this child and waits before exec until the parent releases it or ends; fails if the
/// parent writes a byte instead. Calls async-signal-safe functions only, and touches no descriptor but these
/// three.
fn await_release(ready: RawFd, release: RawFd, release_writer: RawFd) -> io::Result<()> {
    reset_own_handlers();
    // SAFETY: the calls take integers and one byte of a local. Closing the writing end, which is this
    // process's copy, lets the read end when the parent dies.
    unsafe {
        libc::close(release_writer);
        let id = libc::getpid().to_ne_bytes();
        libc::write(ready, id.as_ptr().cast(), id.len());
        let mut byte = 0u8;
        loop {
            match libc::read(release, (&raw mut byte).cast(), 1) {
                1 => return Err(io::Error::from_raw_os_error(libc::ECANCELED)),
                // A signal that the program does not handle either may interrupt it.
                -1 if errno() == libc::EINTR => {}
                _ => return Ok(()),
            }
        }
    }
}

/// Makes the command's child write its number to `ready` and wait before exec until `release` closes; a byte
/// there makes it end instead.
pub(crate) fn hold_before_exec(
    command: &mut std::process::Command,
    ready: RawFd,
    release: RawFd,
    release_writer: RawFd,
) {
    use std::os::unix::process::CommandExt;
    // SAFETY: the closure is async-signal-safe: it holds three integers and makes system calls only.
    unsafe { command.pre_exec(move || await_release(ready, release, release_writer)) };
}
