//! Defines how the device's memory is mapped.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::AtomicU64;

use isotherm_virtual_pmu::Words;

/// A file's memory, mapped and shared with whoever else maps it.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory is atomic words that any thread may use, and it is mapped as long as this lives.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of a file, which must be at least one word.
    pub(super) fn new(file: &File, bytes: usize) -> io::Result<Self> {
        let words = bytes / size_of::<AtomicU64>();
        if words == 0 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of an open file, placed by the kernel.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, words })
    }
}

impl Words for Mapping {
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped with this many words until it is dropped, page-aligned, and any value is valid. A device's
        // memory cannot shrink; a file in a test is not shortened.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; no reference outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * size_of::<AtomicU64>()) };
    }
}
