//! Calls of the agent, which neither allocate, lock nor wait for the program. Failures are an `errno`.
//!
//! Contract: addresses lie in memory that the agent mapped or the calling thread owns, without references.

use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use super::mmap::Mapping;
use super::pages::{PAGE, madvise};
use super::range::Range64;
use super::{code, errno, owned};

/// Maps private zeros, not reserved, that no child inherits, until [`unmap`]; `ENOMEM` without space.
pub(crate) fn map(bytes: u64) -> Result<Range64, i32> {
    let bytes = bytes.next_multiple_of(PAGE) as usize;
    let mapping = Mapping::anonymous(bytes, libc::MAP_NORESERVE).map_err(|error| code(&error))?;
    mapping.advise(libc::MADV_DONTFORK);
    Ok(mapping.leak())
}

/// Unmaps memory of [`map`] without references. On registered memory the caller would wait for itself.
pub(crate) fn unmap(range: Range64) {
    // SAFETY: `map` made it, and its owner gives it up.
    drop(unsafe { Mapping::reclaim(range) });
}

/// Drops the contents of memory of [`map`]. On registered memory the caller would wait for itself.
pub(crate) fn drop_pages(range: Range64) {
    // SAFETY: the range belongs to the agent, which holds no reference into it.
    let _ = unsafe { madvise(range.start as *mut u8, range.length() as usize, libc::MADV_DONTNEED) };
}

/// Keeps transparent huge pages out of memory of [`map`].
pub(crate) fn small_pages_only(range: Range64) {
    // SAFETY: advice on the agent's own mapping that changes no contents.
    let _ = unsafe { madvise(range.start as *mut u8, range.length() as usize, libc::MADV_NOHUGEPAGE) };
}

/// Reads a byte, which may wait for the page.
pub(crate) fn touch(address: u64) -> u8 {
    // SAFETY: callers pass addresses in mappings of the agent that stay, or memory of their own thread.
    unsafe { std::ptr::read_volatile(address as usize as *const u8) }
}

/// Writes a byte of a mapping that is the agent's own.
pub(crate) fn write_byte(address: u64, value: u8) {
    // SAFETY: callers pass addresses in the agent's own writable mappings, to which no reference exists.
    unsafe { std::ptr::write_volatile(address as usize as *mut u8, value) }
}

/// Gives this thread its own table of descriptors, empty but for standard error if `keep_errors`, so that the
/// program's descriptors and the agent's do not mix.
pub fn own_descriptors(keep_errors: bool) -> Result<(), i32> {
    let unshare = libc::CLOSE_RANGE_UNSHARE as libc::c_uint;
    let first: libc::c_uint = if keep_errors { 3 } else { 0 };
    // SAFETY: with CLOSE_RANGE_UNSHARE only this thread's table changes; it has opened nothing yet.
    if unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, unshare) } != 0 {
        return Err(errno());
    }
    if keep_errors {
        // SAFETY: the table is this thread's own now.
        unsafe { libc::syscall(libc::SYS_close_range, 0, 1, 0) };
    }
    Ok(())
}

/// The calling thread's signal mask, restored on drop.
pub struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    /// Blocks all signals of this thread; threads that it starts meanwhile inherit that.
    pub fn all() -> Self {
        let (mut every, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both sets are written before they are read; the calls fail for wrong arguments only.
        unsafe {
            libc::sigfillset(every.as_mut_ptr());
            libc::sigemptyset(before.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, every.as_ptr(), before.as_mut_ptr());
            Self(before.assume_init())
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled in by the call that blocked.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// Waits until a descriptor has something to read or the time is over; returns which have. -1 never has.
pub(crate) fn wait<const N: usize>(descriptors: [RawFd; N], time: Duration) -> [bool; N] {
    let mut polled = descriptors.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let time = libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(time.subsec_nanos() as i32),
    };
    let count = N as libc::nfds_t;
    // SAFETY: as many entries as it says, a timeout that lives until the call returns, no signal mask.
    let ready = unsafe { libc::ppoll(polled.as_mut_ptr(), count, &raw const time, std::ptr::null()) };
    polled.map(|entry| ready > 0 && entry.revents != 0)
}

/// Sleeps for a moment: the agent may have priority ([`run_first`]), so yielding would let no thread run.
pub(crate) fn nap() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 20_000 };
    // SAFETY: a time that lives until the call returns; what is left of it is not asked for.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

/// Yields the processor; for threads of the program.
pub(crate) fn give_way() {
    // SAFETY: no arguments.
    unsafe { libc::sched_yield() };
}

/// Name of an agent's process.
pub(crate) const AGENT_NAME: &std::ffi::CStr = c"isotherm-agent";

/// Takes the agent's name and leaves the program's current folder and session, so that signals to its group
/// do not come here.
pub(crate) fn leave_session() {
    // SAFETY: no arguments but a path that ends in 0; failures change nothing.
    unsafe {
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_NAME, AGENT_NAME.as_ptr());
    }
}

/// Has the kernel end this process as soon as the thread that started it ends, whatever it waits for. Returns
/// false if that thread's process has ended already.
pub(crate) fn end_with(parent: u32) -> bool {
    // SAFETY: integers only.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        libc::getppid() as u32 == parent
    }
}

/// Closes every descriptor of this process but these, and takes them over; -1 stands for none.
pub(crate) fn keep_only<const N: usize>(kept: [RawFd; N], keep_errors: bool) -> [Option<OwnedFd>; N] {
    let mut numbers = [libc::STDERR_FILENO; 8];
    let length = N + usize::from(keep_errors);
    numbers[..N].copy_from_slice(&kept);
    let numbers = &mut numbers[..length];
    numbers.sort_unstable();
    let mut first = 0;
    for number in numbers.iter().copied().chain([RawFd::MAX]) {
        if number > first {
            // SAFETY: nothing in this process knows of descriptors in between.
            unsafe { libc::syscall(libc::SYS_close_range, first, number - 1, 0) };
        }
        first = number.saturating_add(1);
    }
    // SAFETY: open, by the contract of callers, and owned by nobody else in this process.
    kept.map(|number| (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) }))
}

/// Returns the address of the word that the kernel clears when the calling thread ends or executes another
/// program (`set_tid_address(2)`); `EINVAL` without `CONFIG_CHECKPOINT_RESTORE`.
pub(crate) fn end_word() -> Result<u64, i32> {
    let mut address = 0usize;
    // SAFETY: the kernel writes one address to a local.
    let answer = unsafe { libc::prctl(libc::PR_GET_TID_ADDRESS, &raw mut address) };
    match (answer, address) {
        (0, 0) => Err(libc::EINVAL),
        (0, address) => Ok(address as u64),
        _ => Err(errno()),
    }
}

/// Reads the word of [`end_word`].
pub(crate) fn read_word(address: u64) -> u32 {
    // SAFETY: the word lies in a control block of the program's main thread, which stays mapped.
    unsafe { std::ptr::read_volatile(address as usize as *const u32) }
}

/// Returns the number of the calling thread or process.
pub(crate) fn thread_number() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::gettid() as u32 }
}

pub(crate) fn process_number() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::getpid() as u32 }
}

/// Returns whether the process has this thread: the kernel has not yet finished with it.
pub(crate) fn thread_exists(process: u32, thread: u32) -> bool {
    // SAFETY: integers only; signal 0 is not sent.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) };
    answer == 0 || errno() != libc::ESRCH
}

/// Returns a process's processor time in nanoseconds (`clock_getcpuclockid(3)`); 0 if it has ended. Of a
/// thread that runs at the moment the kernel knows it as of its last tick, of one that waits to the end.
pub(crate) fn processor_time(process: u32) -> u64 {
    /// The kernel's `CPUCLOCK_SCHED` in the lower bits of the number's complement.
    const SCHEDULED: libc::clockid_t = 2;
    let clock = (!(process as libc::clockid_t) << 3) | SCHEDULED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one structure to a local.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return 0;
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Writes a line to standard error, as far as it takes it.
pub(crate) fn write_line(line: &str) {
    for part in ["isotherm: ", line, "\n"] {
        // SAFETY: readable for its length.
        unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
}

/// Calls that the agent makes once it is confined.
const ALLOWED: [libc::c_long; 25] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_ioctl,
    libc::SYS_pread64,
    libc::SYS_ppoll,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_fcntl,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_clone,
    libc::SYS_wait4,
    libc::SYS_sched_yield,
    libc::SYS_getpid,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Lets this process make only the calls that an agent needs (`seccomp(2)`), and ask whether threads exist
/// without sending signals. All others fail with `EPERM`: the program may give rights up that the agent was
/// started with, and shares its memory. Errors: `EINVAL` where the kernel has no filters.
pub(crate) fn confine() -> Result<(), i32> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const CALLS: usize = 4 + 2 * ALLOWED.len();
    const LENGTH: usize = CALLS + 4 + 1;
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [step(RETURN, 0, 0, refuse); LENGTH];
    let allow = step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW);
    // struct seccomp_data: the call's number, the architecture, and from byte 16 on the arguments.
    filter[0] = step(LOAD, 0, 0, 4);
    filter[1] = step(EQUAL, 1, 0, ARCHITECTURE);
    filter[3] = step(LOAD, 0, 0, 0);
    for (pair, call) in filter[4..CALLS].chunks_exact_mut(2).zip(ALLOWED) {
        pair.copy_from_slice(&[step(EQUAL, 0, 1, call as u32), allow]);
    }
    // The third argument is the signal; without one the call only asks.
    let asks =
        [step(EQUAL, 0, 3, libc::SYS_tgkill as u32), step(LOAD, 0, 0, 32), step(EQUAL, 0, 1, 0), allow];
    filter[CALLS..CALLS + 4].copy_from_slice(&asks);
    let program = libc::sock_fprog { len: LENGTH as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its steps outlive the call; both calls concern this process alone.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if done { Ok(()) } else { Err(errno()) }
}

/// Makes wake-ups precise to a microsecond rather than to 50.
pub(crate) fn wake_precisely() {
    // SAFETY: values only; concerns the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Gives the calling thread, but none that it starts, priority where permitted (`CAP_SYS_NICE`).
pub(crate) fn run_first() {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: concerns the calling thread; the parameters live until the call returns.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const parameters) };
}

/// Reads a file from `offset` into the buffer; returns 0 on failure.
pub(crate) fn read_at(descriptor: RawFd, buffer: &mut [u8], offset: u64) -> usize {
    // SAFETY: the buffer is writable for its length.
    let got = unsafe { libc::pread64(descriptor, buffer.as_mut_ptr().cast(), buffer.len(), offset as i64) };
    usize::try_from(got).unwrap_or(0)
}

/// Opens a file for reading.
pub(crate) fn open(path: &std::ffi::CStr) -> Result<OwnedFd, i32> {
    // SAFETY: a path that ends in 0, flags by value.
    let raw = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    owned(raw.into()).map_err(|error| code(&error))
}

/// Returns the calling thread's stack and control block, as the C library knows them.
pub fn own_stack() -> Option<Range64> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut start, mut length) = (std::ptr::null_mut(), 0usize);
    // SAFETY: the first call initialises the attributes, the second reads and the third destroys them.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut length);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (found == 0).then(|| Range64::new(start as usize as u64, length as u64))
    }
}

// SAFETY: as in pthread_atfork(3).
unsafe extern "C" {
    fn pthread_atfork(
        prepare: extern "C" fn(),
        parent: extern "C" fn(),
        child: extern "C" fn(),
    ) -> libc::c_int;
}

/// Registers handlers around each `fork` of the C library; returns whether that succeeded.
pub(crate) fn at_fork(prepare: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) -> bool {
    // SAFETY: the functions live as long as the library that holds them, which is never unloaded (`-z
    // nodelete`, or linked into the program), and do only what is allowed after a fork.
    unsafe { pthread_atfork(prepare, parent, child) == 0 }
}

/// Bytes of a control block that the kernel may write when the thread ends; glibc's has 2,304 bytes.
pub(crate) const CONTROL_BLOCK: u64 = 2048;

pub(crate) fn own_control_block() -> u64 {
    // SAFETY: no arguments; the C library's answer is the block's address.
    unsafe { libc::pthread_self() as u64 }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    use super::*;
    use crate::sys::companion::Companion;

    /// A program that gave its rights up could send signals through its agent, which keeps them.
    #[test]
    fn a_confined_agent_sends_no_signals() {
        static SEEN: AtomicU64 = AtomicU64::new(0);
        fn work(parent: u32, _: Range64) {
            let confined = confine().is_ok();
            // SAFETY: a signal that its receiver ignores, should the filter let it through.
            let sent = unsafe { libc::syscall(libc::SYS_tgkill, parent, parent, libc::SIGURG) } == 0;
            let denied = errno() == libc::EPERM;
            SEEN.store(u64::from(confined && !sent && denied && thread_exists(parent, parent)), SeqCst);
        }
        Companion::start(work, std::process::id()).unwrap().reap();
        assert_eq!(SEEN.load(SeqCst), 1);
    }
}
