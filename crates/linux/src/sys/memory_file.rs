//! Memory files of a fixed size (`memfd_create(2)`). Does not allocate.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{errno, owned};

/// Seals of a file whose size stays as it is.
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Makes a memory file of `bytes` zeros whose size nobody can change. Errors: `EMFILE`, `ENFILE` or `ENOMEM`
/// where the kernel has no room for it; `ENOSYS` before Linux 3.17.
pub(super) fn create(name: &CStr, bytes: usize) -> Result<OwnedFd, i32> {
    // SAFETY: a name that ends in 0, flags by value.
    let made = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    let file = owned(made.into()).map_err(|error| super::code(&error))?;
    let raw = file.as_raw_fd();
    // SAFETY: integers only, for an open descriptor.
    let sized = unsafe {
        libc::ftruncate(raw, bytes as libc::off_t) == 0 && libc::fcntl(raw, libc::F_ADD_SEALS, SEALS) == 0
    };
    if sized { Ok(file) } else { Err(errno()) }
}

/// Returns `EINVAL` for a file that is no memory file, could change its size or is not of `bytes`.
pub(super) fn check(file: &OwnedFd, bytes: usize) -> Result<(), i32> {
    let mut about = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the first call fills the structure in before it is read.
    let (seals, size) = unsafe {
        if libc::fstat(file.as_raw_fd(), about.as_mut_ptr()) != 0 {
            return Err(errno());
        }
        (libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS), about.assume_init().st_size)
    };
    let fits = seals >= 0 && seals & SEALS == SEALS && u64::try_from(size) == Ok(bytes as u64);
    if fits { Ok(()) } else { Err(libc::EINVAL) }
}
