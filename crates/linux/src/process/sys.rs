//! Defines the system calls on processes and signals behind safe functions.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use super::Pid;

/// The effective user.
pub(super) fn effective_user() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// `pidfd_open(2)`, since Linux 5.3.
pub(super) fn pidfd_open(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.0 as libc::pid_t, 0) };
    let descriptor = checked(descriptor as libc::c_int)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// `kill(2)`.
pub(super) fn send(pid: Pid, signal: i32) -> io::Result<()> {
    // SAFETY: the call takes two integers; the process is one that the caller started.
    checked(unsafe { libc::kill(pid.0 as libc::pid_t, signal) }).map(drop)
}

/// `prctl(PR_SET_CHILD_SUBREAPER)`: orphaned descendants become this process's children instead of init's.
pub(super) fn become_subreaper() -> io::Result<()> {
    // SAFETY: the call takes integers.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Whom to wait for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who {
    /// One child.
    One(Pid),
    /// Any child.
    Any,
}

/// `waitpid(2)` that does not wait: a child that changed its state, with its status. `None`: there is none.
pub(super) fn reap(who: Who) -> io::Result<Option<(Pid, i32)>> {
    let pid = match who {
        Who::One(pid) => pid.0 as libc::pid_t,
        Who::Any => -1,
    };
    let mut status = 0;
    // SAFETY: `status` outlives the call, which writes one integer to it.
    match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } {
        0 => Ok(None),
        child => {
            let child = checked(child)?;
            Ok(Some((Pid(child as u32), status)))
        }
    }
}

/// `poll(2)`: waits until one of these can be read or the time is over. Writes to `ready` which can.
pub(super) fn poll(
    descriptors: &mut Vec<libc::pollfd>,
    files: impl Iterator<Item = RawFd>,
    timeout: Duration,
    ready: &mut Vec<bool>,
) -> io::Result<()> {
    descriptors.clear();
    descriptors.extend(files.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }));
    let milliseconds = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the length are those of one vector, borrowed mutably.
    let result =
        unsafe { libc::poll(descriptors.as_mut_ptr(), descriptors.len() as libc::nfds_t, milliseconds) };
    ready.clear();
    match checked(result) {
        // A signal is an event like others: its handler has written to the pipe.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
        Ok(_) => ready.extend(descriptors.iter().map(|descriptor| descriptor.revents != 0)),
    }
    ready.resize(descriptors.len(), false);
    Ok(())
}

/// `pipe2(2)`, closed on exec: the reading and the writing end.
pub(super) fn pipe() -> io::Result<(File, File)> {
    let (reader, writer) = io::pipe()?;
    Ok((File::from(OwnedFd::from(reader)), File::from(OwnedFd::from(writer))))
}

/// Makes reads and writes of this file return at once.
pub(super) fn set_nonblocking(file: &File) -> io::Result<()> {
    // SAFETY: the call takes integers; the descriptor is open as long as `file`.
    let flags = checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: as above.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// Who listens at this abstract socket. Never waits, not even for a full queue.
pub(super) fn listener(name: &str) -> io::Result<Pid> {
    // SAFETY: the call takes integers.
    let socket = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | SOCKET_FLAGS, 0) };
    // SAFETY: the kernel has just made this descriptor, and nobody else knows of it.
    let socket = unsafe { OwnedFd::from_raw_fd(checked(socket)?) };
    // SAFETY: all bytes zero are a valid value of this plain structure.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // A first byte of zero makes it abstract.
    for (to, &from) in address.sun_path.iter_mut().skip(1).zip(name.as_bytes()) {
        *to = from as libc::c_char;
    }
    let length = size_of::<libc::sa_family_t>() + 1 + name.len().min(address.sun_path.len() - 1);
    // SAFETY: the address outlives the call, and `length` is within it.
    checked(unsafe {
        libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length as libc::socklen_t)
    })?;
    peer(&socket)
}

/// Sockets as everything else here: closed on exec; and returning at once.
const SOCKET_FLAGS: libc::c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;

/// Who is at the other end of a socket (`SO_PEERCRED`).
fn peer(socket: &OwnedFd) -> io::Result<Pid> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: both pointers are to locals that outlive the call; `length` is the first one's size.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    checked(result).map(|_| Pid(credentials.pid as u32))
}

/// The writing end of the pipe that the handler writes to; -1 while there is none.
static SIGNAL_PIPE: AtomicI32 = AtomicI32::new(-1);

/// Set in a record of [`on_signal`] if the kernel itself sent the signal, as a terminal's keys do.
pub(super) const FROM_KERNEL: u8 = 0x80;

/// Writes the signal's number to the pipe. Everything that it calls is async-signal-safe (`signal-safety(7)`).
extern "C" fn on_signal(number: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid record.
    let code = unsafe { (*info).si_code };
    let byte = number as u8 | if code == SI_KERNEL { FROM_KERNEL } else { 0 };
    // SAFETY: errno's location is always valid in the thread that asks for it.
    let saved = unsafe { *libc::__errno_location() };
    // SAFETY: one byte of a local is written; a bad descriptor or a full pipe makes the call fail and nothing else.
    unsafe { libc::write(SIGNAL_PIPE.load(Ordering::Relaxed), (&raw const byte).cast(), 1) };
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = saved };
}

/// `SI_KERNEL` of include/uapi/asm-generic/siginfo.h.
const SI_KERNEL: libc::c_int = 0x80;

/// A signal's disposition before it was changed.
#[derive(Clone, Copy)]
pub(super) struct Disposition(libc::sigaction);

impl std::fmt::Debug for Disposition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Disposition({:#x})", self.0.sa_sigaction)
    }
}

impl Disposition {
    /// Whether the signal was ignored, as under `nohup`.
    pub(super) fn is_ignored(&self) -> bool {
        self.0.sa_sigaction == libc::SIG_IGN
    }
}

/// Makes the handler write to this descriptor; -1 for none.
pub(super) fn set_signal_pipe(descriptor: RawFd) -> RawFd {
    SIGNAL_PIPE.swap(descriptor, Ordering::SeqCst)
}

/// The signal's present disposition.
pub(super) fn disposition(signal: i32) -> io::Result<Disposition> {
    // SAFETY: all bytes zero are a valid value of this plain structure.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null pointer for the new action only asks; `old` outlives the call.
    checked(unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut old) })?;
    Ok(Disposition(old))
}

/// Handles the signal by [`on_signal`].
pub(super) fn handle(signal: i32) -> io::Result<()> {
    // SAFETY: as in `disposition`; the mask stays empty.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(_, _, _) as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler has the signature that SA_SIGINFO asks for and is async-signal-safe.
    checked(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) }).map(drop)
}

/// Puts a disposition back.
pub(super) fn restore(signal: i32, disposition: &Disposition) -> io::Result<()> {
    // SAFETY: the action is one that was in force before, so its handler, if any, is still there.
    checked(unsafe { libc::sigaction(signal, &raw const disposition.0, std::ptr::null_mut()) }).map(drop)
}

/// Signals that are handled here are not the program's to lose: until exec, they do what they will do after it. Only calls
/// async-signal-safe functions.
fn reset_own_handlers() {
    let own = on_signal as extern "C" fn(_, _, _) as usize;
    for signal in super::signals::ENDING {
        if disposition(signal).is_ok_and(|former| former.0.sa_sigaction == own) {
            // SAFETY: the default disposition is valid for each of these signals.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// In the child, before exec: says that it is there, and waits until it may go on or whoever made it is gone.
///
/// Only calls async-signal-safe functions, and touches no descriptor but these three.
pub(super) fn await_release(ready: RawFd, release: RawFd, release_writer: RawFd) -> io::Result<()> {
    reset_own_handlers();
    // SAFETY: the calls take integers and one byte of a local. Closing the writing end, which is this process's copy,
    // lets the read end when the parent dies.
    unsafe {
        libc::close(release_writer);
        let id = libc::getpid().to_ne_bytes();
        libc::write(ready, id.as_ptr().cast(), id.len());
        let mut byte = 0u8;
        while libc::read(release, (&raw mut byte).cast(), 1) < 0 {
            // Interrupted by a signal that the program handles no differently: it has no handlers yet.
            if *libc::__errno_location() != libc::EINTR {
                break;
            }
        }
    }
    Ok(())
}

/// Runs `await_release` in the child.
pub(super) fn hold_before_exec(
    command: &mut std::process::Command,
    ready: RawFd,
    release: RawFd,
    release_writer: RawFd,
) {
    use std::os::unix::process::CommandExt;
    // SAFETY: the closure is async-signal-safe: it holds three integers and makes system calls only.
    unsafe { command.pre_exec(move || await_release(ready, release, release_writer)) };
}
