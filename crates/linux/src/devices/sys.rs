//! Defines how a device's registers are mapped and used.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use isotherm_neoprof::Registers;

use super::chmu::Block;

/// Registers in a PCI device's memory, mapped from its `resourceN` file.
#[derive(Debug)]
pub(super) struct Bar {
    /// The mapping, from the file's beginning on.
    start: NonNull<u8>,
    mapped: usize,
    /// Where the registers begin in it.
    offset: usize,
}

// SAFETY: the mapping belongs to this value alone and is used through `&mut`; any thread may use it.
unsafe impl Send for Bar {}

impl Bar {
    /// Maps `bytes` from `offset` on, which the file must hold.
    pub(super) fn new(file: &File, offset: u64, bytes: u64) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let end = offset.checked_add(bytes).filter(|&end| end <= length && bytes > 0);
        let end = end.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        let mapped = usize::try_from(end).map_err(io::Error::other)?;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of an open file, placed by the kernel.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), mapped, access, flags, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, mapped, offset: offset as usize })
    }

    /// The register at `offset`, where it lies within the mapping and on its own boundary.
    fn register<T>(&self, offset: u64) -> Option<*mut T> {
        let at = self.offset.checked_add(usize::try_from(offset).ok()?)?;
        let fits = at.checked_add(size_of::<T>())? <= self.mapped && at.is_multiple_of(size_of::<T>());
        // SAFETY: `at` is within the mapping, as was just checked.
        fits.then(|| unsafe { self.start.as_ptr().add(at) }.cast())
    }
}

impl Registers for Bar {
    fn read(&mut self, offset: u64) -> u64 {
        // SAFETY: mapped until this is dropped, and aligned. Any value is valid. Beyond the mapping nobody answers.
        self.register(offset).map_or(u64::MAX, |at| unsafe { std::ptr::read_volatile::<u64>(at) })
    }

    fn write(&mut self, offset: u64, value: u64) {
        if let Some(at) = self.register(offset) {
            // SAFETY: as for reading; the device is shared with nobody who is Rust.
            unsafe { std::ptr::write_volatile::<u64>(at, value) };
        }
    }
}

impl Block for Bar {
    fn read(&mut self, offset: u64) -> u64 {
        Registers::read(self, offset)
    }

    fn write(&mut self, offset: u64, value: u64) {
        Registers::write(self, offset, value);
    }

    fn read_half(&mut self, offset: u64) -> u16 {
        // SAFETY: as for 64 bits.
        self.register(offset).map_or(u16::MAX, |at| unsafe { std::ptr::read_volatile::<u16>(at) })
    }

    fn write_half(&mut self, offset: u64, value: u16) {
        if let Some(at) = self.register(offset) {
            // SAFETY: as for 64 bits.
            unsafe { std::ptr::write_volatile::<u16>(at, value) };
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; no reference outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}
