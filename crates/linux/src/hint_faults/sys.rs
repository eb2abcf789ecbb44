//! Defines the other system calls of hint faults behind safe wrappers. None of them allocates or locks.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::time::Duration;

use super::userfault::Range64;

/// The size of a page.
pub(super) const PAGE: u64 = 4096;

/// The last call's error of this thread.
pub(super) fn errno() -> i32 {
    // SAFETY: the address is this thread's own for as long as the thread lives.
    unsafe { *libc::__errno_location() }
}

/// Types that may be all zero bytes.
///
/// # Safety
/// Every bit pattern of zeros must be a valid value.
pub(super) unsafe trait Zeroed {}

// SAFETY: integers.
unsafe impl<const N: usize> Zeroed for [u64; N] {}

/// One value in a mapping of its own, outside of any heap; children do not inherit it.
pub(super) struct Arena<T: Zeroed> {
    value: NonNull<T>,
}

impl<T: Zeroed> Arena<T> {
    /// Maps it, all zero.
    pub(super) fn new() -> Result<Self, i32> {
        let start = map(size_of::<T>() as u64)?;
        let value = NonNull::new(start as usize as *mut T).ok_or(libc::ENOMEM)?;
        Ok(Self { value })
    }

    /// Where it lies.
    pub(super) fn range(&self) -> Range64 {
        Range64::new(self.value.as_ptr() as usize as u64, whole_pages(size_of::<T>() as u64))
    }
}

impl<T: Zeroed> Deref for Arena<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: mapped, page-aligned, zero is valid for `T`, and owned by `self`.
        unsafe { self.value.as_ref() }
    }
}

impl<T: Zeroed> DerefMut for Arena<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { self.value.as_mut() }
    }
}

impl<T: Zeroed> Drop for Arena<T> {
    fn drop(&mut self) {
        unmap(self.range());
    }
}

/// Rounds up to whole pages.
pub(super) fn whole_pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE)
}

/// Maps private zero memory that no child inherits and that is not reserved; returns where.
pub(super) fn map(bytes: u64) -> Result<u64, i32> {
    let length = whole_pages(bytes) as usize;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at a place of the kernel's choice touches nothing in use.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(errno());
    }
    // SAFETY: advice on the mapping just made.
    unsafe { libc::madvise(start, length, libc::MADV_DONTFORK) };
    Ok(start as usize as u64)
}

/// Unmaps what [`map`] mapped and nobody refers to any more. Not to be called on registered memory: see [`drop_pages`].
pub(super) fn unmap(range: Range64) {
    // SAFETY: the mapping was made by this module and its owner gives it up.
    unsafe { libc::munmap(range.start as usize as *mut _, (range.end - range.start) as usize) };
}

/// Forgets the contents of memory that [`map`] mapped. On registered memory the caller would wait for itself.
pub(super) fn drop_pages(range: Range64) {
    let length = (range.end - range.start) as usize;
    // SAFETY: the range belongs to the agent, which holds no reference into it.
    unsafe { libc::madvise(range.start as usize as *mut _, length, libc::MADV_DONTNEED) };
}

/// Whether transparent huge pages are kept out of the range from now on.
pub(super) fn small_pages_only(range: Range64) {
    let length = (range.end - range.start) as usize;
    // SAFETY: advice on the agent's own mapping.
    unsafe { libc::madvise(range.start as usize as *mut _, length, libc::MADV_NOHUGEPAGE) };
}

/// Reads a byte, which may wait for a page.
pub(super) fn touch(address: u64) -> u8 {
    // SAFETY: callers pass addresses in mappings of the agent that stay mapped, or memory of their own thread.
    unsafe { std::ptr::read_volatile(address as usize as *const u8) }
}

/// Writes a byte of a mapping that is the agent's own.
pub(super) fn write_byte(address: u64, value: u8) {
    // SAFETY: callers pass addresses in the agent's own writable mappings, to which no reference exists.
    unsafe { std::ptr::write_volatile(address as usize as *mut u8, value) }
}

/// Gives this thread a table of descriptors of its own, empty but for standard error if `keep_errors`: what the program
/// closes, lists or passes on is none of the agent's business, and the reverse.
pub fn own_descriptors(keep_errors: bool) -> Result<(), i32> {
    let unshare = libc::CLOSE_RANGE_UNSHARE as libc::c_uint;
    let first: libc::c_uint = if keep_errors { 3 } else { 0 };
    // SAFETY: with CLOSE_RANGE_UNSHARE only this thread's table changes, and this thread has opened nothing yet.
    if unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, unshare) } != 0 {
        return Err(errno());
    }
    if keep_errors {
        // SAFETY: the table is this thread's own now.
        unsafe { libc::syscall(libc::SYS_close_range, 0, 1, 0) };
    }
    Ok(())
}

/// The calling thread's signal mask, put back on drop.
pub struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    /// Blocks all signals of this thread; threads started meanwhile inherit that.
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

/// Waits until one of the descriptors has something to read, or the time is over; says which have.
pub(super) fn wait(descriptors: [RawFd; 2], time: Option<Duration>) -> [bool; 2] {
    let mut polled = descriptors.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let time = time.map(|time| libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(time.subsec_nanos() as i32),
    });
    let timeout = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: two entries, a timeout that lives until the call returns, no signal mask.
    let ready = unsafe { libc::ppoll(polled.as_mut_ptr(), 2, timeout, std::ptr::null()) };
    polled.map(|entry| ready > 0 && entry.revents != 0)
}

/// Sleeps for a moment, so that threads of the program can run: the agent may run before all of them ([`run_first`]), and
/// then giving way would not let them.
pub(super) fn nap() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 20_000 };
    // SAFETY: a time that lives until the call returns; what is left of it is not asked for.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

/// Lets another thread run; for threads of the program.
pub(super) fn give_way() {
    // SAFETY: no arguments.
    unsafe { libc::sched_yield() };
}

/// Asks for wake-ups to the microsecond rather than to 50 of them.
pub(super) fn wake_precisely() {
    // SAFETY: values only; concerns the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Runs before others where that is permitted (`CAP_SYS_NICE`), for threads of the program wait for the caller, which
/// works for microseconds at a time. Threads that it starts are not concerned.
pub(super) fn run_first() {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: concerns the calling thread; the parameters live until the call returns.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const parameters) };
}

/// Reads a file from its start into the buffer; 0 if that fails.
pub(super) fn read_at(descriptor: RawFd, buffer: &mut [u8], offset: u64) -> usize {
    // SAFETY: the buffer is writable for its length.
    let got = unsafe { libc::pread64(descriptor, buffer.as_mut_ptr().cast(), buffer.len(), offset as i64) };
    usize::try_from(got).unwrap_or(0)
}

/// Opens a file for reading without allocating.
pub(super) fn open(path: &std::ffi::CStr) -> Result<std::os::fd::OwnedFd, i32> {
    use std::os::fd::FromRawFd;
    // SAFETY: a path that ends in 0, flags by value.
    let raw = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if raw < 0 {
        return Err(errno());
    }
    // SAFETY: the kernel has just opened it for this caller.
    Ok(unsafe { std::os::fd::OwnedFd::from_raw_fd(raw) })
}

/// `ioctl` with a structure of 64-bit words.
pub(super) fn ioctl_words<const N: usize>(fd: RawFd, request: u64, words: &mut [u64; N]) -> Result<i32, i32> {
    // SAFETY: callers pass structures of N words for requests whose numbers encode that size; pointers inside of them
    // point to buffers that outlive the call and are as long as the structure says.
    let result = unsafe { libc::ioctl(fd, request as _, words.as_mut_ptr()) };
    if result < 0 { Err(errno()) } else { Ok(result) }
}

/// The calling thread's stack and control block, as the C library knows them.
pub fn own_stack() -> Option<Range64> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut start, mut length) = (std::ptr::null_mut(), 0usize);
    // SAFETY: the attributes are initialised by the first call, read by the second and destroyed by the third.
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

/// Registers what runs around each `fork` of the C library.
pub(super) fn at_fork(prepare: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) -> bool {
    // SAFETY: the functions live as long as the library that holds them, which is never unloaded (`-z nodelete`, or
    // linked into the program), and do only what is allowed after a fork.
    unsafe { pthread_atfork(prepare, parent, child) == 0 }
}

/// Bytes of a thread's control block that the kernel may write when the thread ends; glibc's is 2,304 bytes long.
pub(super) const CONTROL_BLOCK: u64 = 2048;

/// Where the calling thread's control block lies.
pub(super) fn own_control_block() -> u64 {
    // SAFETY: no arguments; the C library's answer is the block's address.
    unsafe { libc::pthread_self() as u64 }
}
