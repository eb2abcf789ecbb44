//! Defines the system calls that ask the kernel whether it would do something, and leave nothing behind.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// `PERF_TYPE_HARDWARE` and `PERF_TYPE_SOFTWARE` of `linux/perf_event.h`.
#[derive(Debug, Clone, Copy)]
pub enum EventType {
    Hardware = 0,
    Software = 1,
}

/// `PERF_ATTR_SIZE_VER0`: the fields up to `config1`, which every kernel takes.
const ATTRIBUTE_BYTES: u64 = 64;
/// Words of the kernel's structure that are handed over.
const ATTRIBUTE_WORDS: usize = 8;
/// The bits `disabled`, `exclude_kernel` and `exclude_hv`.
const FLAGS: u64 = 1 << 0 | 1 << 5 | 1 << 6;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `UFFD_USER_MODE_ONLY` of `linux/userfaultfd.h`.
const USER_MODE_ONLY: libc::c_int = 1;
/// `UFFD_API`, `UFFDIO_API` (`_IOWR(0xAA, 0x3F, struct uffdio_api)`, whose size is 24) and `UFFD_FEATURE_MOVE`.
const UFFD_API: u64 = 0xaa;
const UFFDIO_API: libc::Ioctl = 0xc018_aa3f;
const FEATURE_MOVE: u64 = 1 << 16;

/// Opens event 0 of the type (cycles, or the processor's clock) for this thread, never enabled, and closes it.
pub fn perf_event(kind: EventType) -> io::Result<()> {
    let mut attribute = [0u64; ATTRIBUTE_WORDS];
    attribute[0] = kind as u64 | ATTRIBUTE_BYTES << 32;
    attribute[5] = FLAGS;
    // SAFETY: the kernel reads `ATTRIBUTE_BYTES` bytes, the size of the array, as the structure itself says.
    let answer =
        unsafe { libc::syscall(libc::SYS_perf_event_open, attribute.as_ptr(), 0, -1, -1, CLOSE_ON_EXEC) };
    owned(answer).map(drop)
}

/// Makes a userfaultfd and closes it; without `user_mode` one that handles faults inside of system calls as well.
pub fn userfaultfd(user_mode: bool) -> io::Result<()> {
    new_userfaultfd(user_mode).map(drop)
}

/// Whether userfaultfd can move pages (`UFFDIO_MOVE`, Linux 6.8): ENOSYS where it cannot.
pub fn userfaultfd_move() -> io::Result<()> {
    let descriptor = new_userfaultfd(true)?;
    // `struct uffdio_api`: the version, the features, the commands; the kernel answers with all features that it has.
    let mut handshake = [UFFD_API, 0, 0];
    // SAFETY: the command reads and writes one such structure, which lives through the call.
    let answer = unsafe { libc::ioctl(descriptor.as_raw_fd(), UFFDIO_API, handshake.as_mut_ptr()) };
    match handshake[1] & FEATURE_MOVE {
        _ if answer < 0 => Err(io::Error::last_os_error()),
        0 => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
        _ => Ok(()),
    }
}

fn new_userfaultfd(user_mode: bool) -> io::Result<OwnedFd> {
    let flags = libc::O_CLOEXEC | if user_mode { USER_MODE_ONLY } else { 0 };
    // SAFETY: the call takes flags alone.
    owned(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) })
}

/// Asks where a page of this process is, as `move_pages(2)` does with `nodes` null.
pub fn move_pages() -> io::Result<()> {
    let word = 1u8;
    let pages = [(&raw const word).cast::<libc::c_void>()];
    let mut status = [0 as libc::c_int];
    // SAFETY: one address to read and one status to write, for a count of one; no page is moved where `nodes` is null.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            1,
            pages.as_ptr(),
            std::ptr::null::<libc::c_int>(),
            &raw mut status,
            0,
        )
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether this process may write the file: EACCES, EROFS or ENOENT where it may not. The file is not opened.
pub fn writable(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` ends with a null byte and lives through the call.
    let answer = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes the cache line of a word out of all caches, so that its next access misses; does nothing where user mode cannot.
pub fn flush_line(word: &AtomicU64) {
    let address: *const AtomicU64 = word;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the address is that of a live word, and every x86-64 has CLFLUSH (SSE2).
    unsafe {
        std::arch::x86_64::_mm_clflush(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the address is that of a live word, and Linux permits cleaning by address in user mode (SCTLR_EL1.UCI).
    unsafe {
        std::arch::asm!("dc civac, {}", in(reg) address, options(nostack, preserves_flags));
    }
    let _ = address;
}

/// Private memory between two guard pages, hence a mapping of its own that merges with no other.
#[derive(Debug)]
pub struct GuardedPages {
    base: NonNull<libc::c_void>,
    bytes: usize,
}

/// A guard before and one after: no smaller than any page size of Linux.
const GUARD_BYTES: usize = 1 << 16;

impl GuardedPages {
    /// Maps `bytes`, a multiple of the page size, filled with zeros.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let whole = bytes + 2 * GUARD_BYTES;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), whole, libc::PROT_NONE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base).ok_or_else(|| io::Error::other("mmap gave address 0"))?;
        let pages = Self { base, bytes };
        // SAFETY: the range lies inside of the mapping just made.
        let answer =
            unsafe { libc::mprotect(pages.start().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(pages) }
    }

    fn start(&self) -> *mut u8 {
        self.base.as_ptr().cast::<u8>().wrapping_add(GUARD_BYTES)
    }

    /// The first byte's address.
    pub fn address(&self) -> usize {
        self.start().addr()
    }

    /// The memory as words, which any thread may read and write.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the pages are mapped readable and writable for as long as `self` lives, aligned to a page, and all
        // bit patterns are words; writes go through the atomics alone.
        unsafe { std::slice::from_raw_parts(self.start().cast(), self.bytes / size_of::<AtomicU64>()) }
    }
}

impl Drop for GuardedPages {
    fn drop(&mut self) {
        // SAFETY: the whole mapping made in `new`, to which no reference can be left.
        unsafe { libc::munmap(self.base.as_ptr(), self.bytes + 2 * GUARD_BYTES) };
    }
}

fn owned(descriptor: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(descriptor) {
        // SAFETY: the kernel has just made the descriptor, and nobody else knows it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
