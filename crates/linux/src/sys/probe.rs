//! Calls that ask the kernel whether it would do something, and leave nothing behind.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicU64;

pub use super::perf::kind::{HARDWARE, SOFTWARE};
use super::perf::{Attr, Join, flag, open};
use super::process::Pid;
use super::userfaultfd;

/// Opens event 0 of a type (cycles, or the processor's clock) for this thread, never enabled, and closes it.
///
/// # Errors
/// `EACCES` or `EPERM` where it is not permitted, `ENOENT` without such hardware, `ENOSYS` without perf.
pub fn perf_event(kind: u32) -> io::Result<()> {
    let flags = flag::DISABLED | flag::EXCLUDE_KERNEL | flag::EXCLUDE_HYPERVISOR;
    open(&Attr { kind, flags, ..Attr::default() }, 0, -1, Join::Alone).map(drop)
}

/// Asks for userfaultfd, which everybody may use for faults of user mode.
///
/// # Errors
/// `ENOSYS` without it; else whatever a system call filter answers.
pub fn userfaultfd() -> io::Result<()> {
    userfaultfd::features().map(drop)
}

/// Asks whether userfaultfd can move pages (`UFFDIO_MOVE`, Linux 6.8).
///
/// # Errors
/// `ENOSYS` where it cannot; else as [`userfaultfd()`].
pub fn userfaultfd_move() -> io::Result<()> {
    let moves = userfaultfd::features()? & userfaultfd::FEATURE_MOVE != 0;
    if moves { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ENOSYS)) }
}

/// Opens a userfaultfd as the agent of hint faults does, and closes it.
///
/// # Errors
/// `EPERM` without `CAP_SYS_PTRACE`; else as [`userfaultfd_move()`].
pub fn hint_faults() -> io::Result<()> {
    userfaultfd::Userfault::open().map(drop)
}

/// Asks where a page of this process is; fails as `move_pages(2)`.
pub fn move_pages() -> io::Result<()> {
    let word = 1u8;
    super::pages::move_pages(Pid(0), &[(&raw const word).addr() as u64], None, &mut [0], false).map(drop)
}

/// Asks whether this process may write the file, without opening it.
///
/// # Errors
/// `EACCES`, `EROFS` or `ENOENT` where it may not.
pub fn writable(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` ends with a null byte and lives through the call.
    let answer = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS) };
    super::checked(answer).map(drop)
}

/// Flushes the cache line of a word, so that its next access misses; does nothing where user mode cannot.
pub fn flush_line(word: &AtomicU64) {
    let address: *const AtomicU64 = word;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the address is that of a live word, and every x86-64 has CLFLUSH (SSE2).
    unsafe {
        std::arch::x86_64::_mm_clflush(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a live word's address, which Linux lets user mode clean (SCTLR_EL1.UCI).
    unsafe {
        std::arch::asm!("dc civac, {}", in(reg) address, options(nostack, preserves_flags));
    }
    let _ = address;
}
