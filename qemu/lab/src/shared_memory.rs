//! Defines how the device's memory is mapped.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::{io, slice};

use crate::model::Memory;

/// Maps the whole file, shared with QEMU's device, for as long as QEMU runs.
pub(crate) fn map(path: &Path) -> io::Result<Memory> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    if bytes < size_of::<AtomicU64>() {
        return Err(io::Error::other("the file is empty; it must be as large as the ivshmem device"));
    }
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping of an open file, placed by the kernel.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file.as_raw_fd(), 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is never unmapped, is aligned to a page and `bytes` long; whoever else writes to it, words are
    // atomic here, and any value is valid. QEMU and the host must not shorten the file, as for any mapping.
    Ok(unsafe { slice::from_raw_parts(memory.cast::<AtomicU64>(), bytes / size_of::<AtomicU64>()) })
}
