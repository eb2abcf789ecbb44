//! The one door to the operating system: every `unsafe` block of this crate is below this module.
//!
//! | Module | Calls |
//! |---|---|
//! | `mmap` | `mmap`, `munmap`, `mprotect`: owners of anonymous, guarded, bound and shared memory |
//! | `memory_file` | `memfd_create`, `ftruncate`, `fstat`, seals |
//! | `plain` | Which types memory of the kernel's making may hold |
//! | `pages` | `move_pages`, `mbind`, `set_mempolicy`, `madvise`, `sysconf` |
//! | `pagemap` | Entries of pagemap, `PAGEMAP_SCAN`, `PROCMAP_QUERY` |
//! | `perf` | `perf_event_open`, its ioctls, rings and AUX areas |
//! | `userfaultfd` | `userfaultfd`, its ioctls and messages |
//! | `registers` | Registers of PCI devices, read and written volatile |
//! | `process` | `pidfd_open`, `kill`, `waitpid`, `poll`, `prctl`, `close_range`, the child before exec |
//! | `sockets` | `connect`, `fchmod`, `bind`, `listen`, `sendmsg`, `recvmsg`, `send`, `recv`, `getsockopt` |
//! | `companion` | `clone` with `CLONE_VM`: processes that share the program's memory |
//! | `agent` | Calls of the agent: `ppoll`, `pthread_*`, `sched_*`, `nanosleep`, `pread64`, `seccomp` |
//! | `allocator` | The allocator of large arrays: `mmap`, `mremap` |
//! | `probe` | Calls that only ask whether the kernel would do something; `faccessat` |
//!
//! Rules: functions here are safe to call, or say under `# Safety` what must hold before; they return the
//! kernel's `errno` unchanged, as [`std::io::Error`] or, where the agent calls them, as a number; they name
//! no policy and keep no state but the signal handler's. A constant of the kernel's interface stands here
//! once. Modules here depend on nothing above.

pub(crate) mod agent;
mod allocator;
pub(crate) mod companion;
mod memory_file;
pub mod mmap;
pub(crate) mod pagemap;
pub(crate) mod pages;
pub mod perf;
pub(crate) mod plain;
pub mod probe;
pub(crate) mod process;
pub(crate) mod range;
pub(crate) mod registers;
pub(crate) mod sockets;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod userfaultfd;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub use allocator::{HugePages, HugePagesOrEnd};

/// Returns the last call's error of this thread.
fn errno() -> i32 {
    // SAFETY: the address is this thread's own for as long as the thread lives.
    unsafe { *libc::__errno_location() }
}

/// Returns the `errno` of an error that a call of this module returned.
fn code(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Turns a call's negative result into its error.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Takes over the descriptor that a call has just made, or its error.
fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(result) {
        // SAFETY: the kernel has just made this descriptor, and nobody else knows of it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
