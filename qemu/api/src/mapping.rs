//! Memory that a plugin shares with other processes through a file.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// Maps the first `bytes` bytes of `file`, shared with everybody who maps it, until the process ends.
///
/// The mapping may reach beyond the file's end, and the caller must not touch pages that the file does not
/// have (yet). Nobody may shorten the file.
///
/// # Errors
/// If the kernel refuses, as it does for 0 bytes.
pub fn map_shared(file: &File, bytes: usize) -> io::Result<NonNull<u8>> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
    // SAFETY: a new mapping of an open file at an address that the kernel chooses.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, file.as_raw_fd(), 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
}
