//! Defines the system calls that have no file: advice on mappings and the limit on core dumps.
#![allow(unsafe_code)]

use std::io;
use std::ops::Range;

/// Advice that changes a mapping's flags and never its contents (madvise(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Advice {
    /// `MADV_HUGEPAGE`.
    HugePages = libc::MADV_HUGEPAGE,
    /// `MADV_NOHUGEPAGE`.
    NoHugePages = libc::MADV_NOHUGEPAGE,
    /// `MADV_DONTDUMP`.
    NoDump = libc::MADV_DONTDUMP,
    /// `MADV_DODUMP`.
    Dump = libc::MADV_DODUMP,
}

/// Gives advice on a range of this process; the addresses need not be mapped (`ENOMEM` then, after the rest is done).
pub(super) fn advise(range: &Range<u64>, advice: Advice) -> io::Result<()> {
    let length = range.end.saturating_sub(range.start) as usize;
    // SAFETY: none of the advice above changes what memory holds or whether it can be accessed, and the kernel checks
    // the range; the pointer is not dereferenced here.
    let result = unsafe { libc::madvise(range.start as *mut libc::c_void, length, advice as libc::c_int) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether core files of this process may not grow (`RLIMIT_CORE` is 0).
pub(super) fn core_files_are_off() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
    // SAFETY: `limit` may be written to.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit) };
    result == 0 && limit.rlim_cur == 0
}
