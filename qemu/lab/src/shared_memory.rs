//! Maps the memory of an `ivshmem-plain` device, which the plugin shares with the guest.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::{io, slice};

use isotherm_qemu_api::map_shared;

/// Shared memory, which lives as long as QEMU.
pub(crate) type Memory = &'static [AtomicU64];

/// Maps the whole file, shared with QEMU's device, for as long as QEMU runs.
pub(crate) fn map(path: &Path) -> io::Result<Memory> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    if bytes < size_of::<AtomicU64>() {
        return Err(io::Error::other("the file is empty; it must be as large as the ivshmem device"));
    }
    let memory = map_shared(&file, bytes)?;
    // SAFETY: the mapping is never unmapped, aligned to a page and `bytes` long. Others may write to it, but
    // words are atomic here, and any value is valid. QEMU and the host must not shorten the file, as for any
    // mapping.
    Ok(unsafe { slice::from_raw_parts(memory.cast().as_ptr(), bytes / size_of::<AtomicU64>()) })
}
