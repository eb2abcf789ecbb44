//! Registers of a PCI device, mapped from its `resourceN` file.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsFd;

use super::mmap::Mapping;

/// A block of registers, used by this value alone. The device may change them at any time.
#[derive(Debug)]
pub(crate) struct DeviceRegisters {
    /// The file from its beginning on.
    mapping: Mapping,
    /// Byte of the mapping where the block begins.
    offset: usize,
    bytes: usize,
    /// Locked against other engines.
    _file: File,
}

pub(crate) trait Width: Copy {}
impl Width for u16 {}
impl Width for u64 {}

impl DeviceRegisters {
    /// Locks the file and maps `bytes` of it from `offset` on; `EINVAL` if it does not hold them, else as
    /// `mmap(2)`. Fails while another value has it, in this process or another.
    pub(crate) fn new(file: File, offset: u64, bytes: u64) -> io::Result<Self> {
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::other("another engine uses the device"),
            TryLockError::Error(error) => error,
        })?;
        let length = file.metadata()?.len();
        let end = offset.checked_add(bytes).filter(|&end| end <= length && bytes > 0);
        let end = end.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        let bytes = usize::try_from(end).map_err(io::Error::other)?;
        let mapping = Mapping::shared(file.as_fd(), 0, bytes)?;
        Ok(Self { mapping, offset: offset as usize, bytes, _file: file })
    }

    /// Returns the register's address if it lies within the mapping and on its own boundary.
    fn register<T>(&self, offset: u64) -> Option<*mut T> {
        let at = self.offset.checked_add(usize::try_from(offset).ok()?)?;
        let fits = at.checked_add(size_of::<T>())? <= self.bytes && at.is_multiple_of(size_of::<T>());
        fits.then(|| self.mapping.start().wrapping_add(at).cast())
    }

    /// Reads the register at `offset` bytes; `None` if there is none.
    pub(crate) fn load<T: Width>(&mut self, offset: u64) -> Option<T> {
        // SAFETY: mapped until this is dropped, aligned, and an integer of any value.
        self.register(offset).map(|at| unsafe { std::ptr::read_volatile::<T>(at) })
    }

    /// Writes the register at `offset` bytes, if there is one.
    pub(crate) fn store<T: Width>(&mut self, offset: u64, value: T) {
        if let Some(at) = self.register(offset) {
            // SAFETY: as for reading; the device is shared with no other Rust code.
            unsafe { std::ptr::write_volatile::<T>(at, value) };
        }
    }
}
