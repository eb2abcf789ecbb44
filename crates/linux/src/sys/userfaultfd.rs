//! userfaultfd (include/uapi/linux/userfaultfd.h, Documentation/admin-guide/mm/userfaultfd.rst).
//!
//! Moving pages is safe in Rust's sense as long as callers move them back before they let anybody in.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::range::Range64;
use super::{errno, owned};

const UFFD_API: u64 = 0xaa;
const FEATURE_EVENT_FORK: u64 = 1 << 1;
const FEATURE_EVENT_REMAP: u64 = 1 << 2;
const FEATURE_EVENT_REMOVE: u64 = 1 << 3;
const FEATURE_EVENT_UNMAP: u64 = 1 << 6;
const FEATURE_THREAD_ID: u64 = 1 << 8;
/// The kernel has `UFFDIO_MOVE`.
pub(super) const FEATURE_MOVE: u64 = 1 << 16;
const NEEDED: u64 = FEATURE_EVENT_FORK
    | FEATURE_EVENT_REMAP
    | FEATURE_EVENT_REMOVE
    | FEATURE_EVENT_UNMAP
    | FEATURE_THREAD_ID
    | FEATURE_MOVE;

const IOC_API: u64 = 0xc018_aa3f;
const IOC_REGISTER: u64 = 0xc020_aa00;
const IOC_UNREGISTER: u64 = 0x8010_aa01;
const IOC_WAKE: u64 = 0x8010_aa02;
const IOC_COPY: u64 = 0xc028_aa03;
const IOC_ZEROPAGE: u64 = 0xc020_aa04;
const IOC_MOVE: u64 = 0xc028_aa05;

const REGISTER_MODE_MISSING: u64 = 1;
/// Do not wake threads that wait for the destination.
pub(crate) const MOVE_QUIETLY: u64 = 1;
/// Skip missing pages.
pub(crate) const MOVE_ALLOW_HOLES: u64 = 2;
/// `UFFD_USER_MODE_ONLY`: not for faults inside of system calls; needs no right.
const USER_MODE_ONLY: libc::c_int = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) address: u64,
    pub(crate) write: bool,
    pub(crate) thread: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    Fault(Fault),
    /// The process was copied; the descriptor serves the child.
    Fork(u32),
    /// `length` bytes went from one place to another.
    Remap {
        from: u64,
        to: u64,
        length: u64,
    },
    /// The contents of the range go after the message has been read; the range stays.
    Remove(Range64),
    Unmap(Range64),
    /// Something else, which no feature asked for here raises.
    Other,
}

/// `struct uffd_msg`: 32 bytes, the event in the first and its values from the eighth on.
pub(crate) type RawMessage = [u64; 4];

pub(crate) fn decode(raw: RawMessage) -> Message {
    let [head, a, b, c] = raw;
    match head.to_ne_bytes()[0] {
        0x12 => Message::Fault(Fault { address: b, write: a & 1 != 0, thread: c as u32 }),
        0x13 => Message::Fork(a as u32),
        0x14 => Message::Remap { from: a, to: b, length: c },
        0x15 => Message::Remove(Range64 { start: a, end: b }),
        0x16 => Message::Unmap(Range64 { start: a, end: b }),
        _ => Message::Other,
    }
}

pub(crate) struct Userfault(pub(crate) OwnedFd);

impl Userfault {
    /// Opens one that serves kernel-mode faults too and tells of forks: Linux grants both with
    /// `CAP_SYS_PTRACE` alone. Errors: `EPERM` without it, or whatever a system call filter answers;
    /// `ENOSYS` without userfaultfd; `EINVAL` where it lacks a feature (moving: Linux 6.8).
    pub(crate) fn open() -> io::Result<Self> {
        let descriptor = create(libc::O_CLOEXEC | libc::O_NONBLOCK)?;
        enable(&descriptor, NEEDED)?;
        Ok(Self(descriptor))
    }

    /// Takes over the descriptor of a [`Message::Fork`].
    pub(crate) fn of_child(descriptor: u32) -> Self {
        // SAFETY: the kernel opened the descriptor for whoever read the message, and nobody else knows of it.
        Self(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Registers the range for faults at missing pages: `EINVAL` unless it is anonymous memory in whole
    /// pages, `EBUSY` if another userfaultfd has it.
    pub(crate) fn register(&self, range: Range64) -> Result<(), i32> {
        let mut words = [range.start, range.length(), REGISTER_MODE_MISSING, 0];
        call(self.raw(), IOC_REGISTER, &mut words)
    }

    /// Unregisters the range and wakes threads that wait there: `EINVAL` for memory of another kind.
    pub(crate) fn unregister(&self, range: Range64) -> Result<(), i32> {
        call(self.raw(), IOC_UNREGISTER, &mut [range.start, range.length()])
    }

    /// Wakes threads that wait in the range, which try again.
    pub(crate) fn wake(&self, range: Range64) {
        let _ = call(self.raw(), IOC_WAKE, &mut [range.start, range.length()]);
    }

    /// Moves pages; returns the bytes moved and, if not all, why: `EAGAIN` while mappings change, `EBUSY` for
    /// shared or pinned pages, `ENOENT` for missing ones, `EEXIST` for an occupied place, `EINVAL` for
    /// protected or locked memory.
    pub(crate) fn move_pages(&self, to: u64, from: u64, bytes: u64, mode: u64) -> (u64, Result<(), i32>) {
        let mut words = [to, from, bytes, mode, 0];
        let result = call(self.raw(), IOC_MOVE, &mut words);
        let moved =
            if result.is_ok() { bytes } else { u64::try_from(words[4] as i64).unwrap_or(0).min(bytes) };
        (moved, result)
    }

    /// Copies pages into missing ones: `EAGAIN` while mappings change, `EEXIST` for a present page.
    pub(crate) fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), i32> {
        call(self.raw(), IOC_COPY, &mut [to, from, bytes, 0, 0])
    }

    pub(crate) fn zero(&self, range: Range64) -> Result<(), i32> {
        call(self.raw(), IOC_ZEROPAGE, &mut [range.start, range.length(), 0, 0])
    }

    /// Reads messages without waiting; returns how many.
    pub(crate) fn read(&self, messages: &mut [RawMessage]) -> usize {
        let bytes = size_of_val(messages);
        // SAFETY: the buffer is writable, `bytes` long, and any bytes are valid words.
        let got = unsafe { libc::read(self.raw(), messages.as_mut_ptr().cast(), bytes) };
        usize::try_from(got).unwrap_or(0) / size_of::<RawMessage>()
    }
}

fn create(flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call takes flags by value and returns a new descriptor.
    owned(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) })
}

/// Returns the kernel's features, whether or not this process may use them. Errors: `ENOSYS` without
/// userfaultfd, or whatever a system call filter answers.
pub(super) fn features() -> io::Result<u64> {
    enable(&create(libc::O_CLOEXEC | USER_MODE_ONLY)?, 0)
}

/// Asks for features, once for each descriptor; returns all that the kernel has.
fn enable(descriptor: &OwnedFd, features: u64) -> io::Result<u64> {
    let mut api = [UFFD_API, features, 0];
    call(descriptor.as_raw_fd(), IOC_API, &mut api).map_err(io::Error::from_raw_os_error)?;
    Ok(api[1])
}

fn call<const N: usize>(descriptor: RawFd, request: u64, words: &mut [u64; N]) -> Result<(), i32> {
    // SAFETY: a request's structure has as many 64-bit words as its number encodes and its caller passes.
    let result = unsafe { libc::ioctl(descriptor, request as _, words.as_mut_ptr()) };
    if result == 0 { Ok(()) } else { Err(errno()) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    use super::*;
    use crate::sys::agent::confine;
    use crate::sys::companion::Companion;

    /// As in containers, whose filters answer `EPERM`: the kernel lacks nothing.
    #[test]
    fn a_filter_that_refuses_userfaultfd_is_a_lack_of_rights() {
        static SEEN: AtomicU64 = AtomicU64::new(0);
        fn work(_: (), _: Range64) {
            let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            if confine().is_ok() && Userfault::open().is_err_and(denied) && features().is_err_and(denied) {
                SEEN.store(1, SeqCst);
            }
        }
        Companion::start(work, ()).unwrap().reap();
        assert_eq!(SEEN.load(SeqCst), 1);
    }

    /// As in `struct uffd_msg`, little-endian.
    #[test]
    fn messages_are_decoded() {
        assert_eq!(
            decode([0x12, 1, 0x7000, 77]),
            Message::Fault(Fault { address: 0x7000, write: true, thread: 77 })
        );
        assert_eq!(decode([0x13, 9, 0, 0]), Message::Fork(9));
        assert_eq!(decode([0x14, 1, 2, 3]), Message::Remap { from: 1, to: 2, length: 3 });
        assert_eq!(decode([0x16, 4096, 8192, 0]), Message::Unmap(Range64 { start: 4096, end: 8192 }));
        assert_eq!(decode([0xff; 4]), Message::Other);
    }
}
