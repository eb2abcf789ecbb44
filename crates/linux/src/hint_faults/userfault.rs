//! Defines the userfaultfd calls behind safe wrappers (`linux/userfaultfd.h`, `Documentation/admin-guide/mm/userfaultfd.rst`).
//!
//! They are safe in Rust's sense under one rule that [`super::mechanism`] keeps: what was moved out of the program's
//! memory is put back before anybody is let in.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::sys::errno;

const UFFD_API: u64 = 0xaa;
const FEATURE_EVENT_FORK: u64 = 1 << 1;
const FEATURE_EVENT_REMAP: u64 = 1 << 2;
const FEATURE_EVENT_REMOVE: u64 = 1 << 3;
const FEATURE_EVENT_UNMAP: u64 = 1 << 6;
const FEATURE_THREAD_ID: u64 = 1 << 8;
const FEATURE_MOVE: u64 = 1 << 16;
const NEEDED: u64 =
    FEATURE_EVENT_REMAP | FEATURE_EVENT_REMOVE | FEATURE_EVENT_UNMAP | FEATURE_THREAD_ID | FEATURE_MOVE;

const IOC_NEW: u64 = 0xaa00;
const IOC_API: u64 = 0xc018_aa3f;
const IOC_REGISTER: u64 = 0xc020_aa00;
const IOC_UNREGISTER: u64 = 0x8010_aa01;
const IOC_WAKE: u64 = 0x8010_aa02;
const IOC_COPY: u64 = 0xc028_aa03;
const IOC_ZEROPAGE: u64 = 0xc020_aa04;
const IOC_MOVE: u64 = 0xc028_aa05;

const REGISTER_MODE_MISSING: u64 = 1;
/// Do not wake who waits for the destination.
pub(super) const MOVE_QUIETLY: u64 = 1;
/// Skip pages that are not there.
pub(super) const MOVE_ALLOW_HOLES: u64 = 2;
const USER_MODE_ONLY: libc::c_int = 1;

/// A message of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// A thread waits for the page at `address`.
    Fault { address: u64, write: bool, thread: u32 },
    /// The process was copied; the descriptor serves the child.
    Fork { descriptor: u32 },
    /// `length` bytes went from one place to another.
    Remap { from: u64, to: u64, length: u64 },
    /// The contents of the range go after the message has been read; the range stays.
    Remove { range: Range64 },
    /// The range is unmapped.
    Unmap { range: Range64 },
    /// Something else, which no feature asked for here raises.
    Other,
}

/// A range of addresses that can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range64 {
    pub start: u64,
    pub end: u64,
}

impl Range64 {
    pub(super) fn new(start: u64, length: u64) -> Self {
        Self { start, end: start.saturating_add(length) }
    }

    pub(super) fn contains(self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// What is left of it without `gone`, which overlaps it: nothing, one part or two; empty parts are all zero and last.
    pub(super) fn without(self, gone: Self) -> [Self; 2] {
        let part = |start: u64, end: u64| if start < end { Self { start, end } } else { Self::default() };
        let (left, right) = (part(self.start, gone.start), part(gone.end, self.end));
        if left.end == 0 { [right, left] } else { [left, right] }
    }
}

/// `struct uffd_msg`: 32 bytes, the event in the first and its values from the eighth on.
pub(super) type RawMessage = [u64; 4];

/// Decodes a message.
pub(super) fn decode(raw: RawMessage) -> Message {
    let [head, a, b, c] = raw;
    match head.to_ne_bytes()[0] {
        0x12 => Message::Fault { address: b, write: a & 1 != 0, thread: c as u32 },
        0x13 => Message::Fork { descriptor: a as u32 },
        0x14 => Message::Remap { from: a, to: b, length: c },
        0x15 => Message::Remove { range: Range64 { start: a, end: b } },
        0x16 => Message::Unmap { range: Range64 { start: a, end: b } },
        _ => Message::Other,
    }
}

/// Why there is no userfaultfd for kernel-mode faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    /// Not permitted, or for user-mode faults alone.
    Permission,
    /// The kernel has no userfaultfd, or one without moving (before Linux 6.8).
    Unsupported,
}

/// An open userfaultfd.
pub(super) struct Userfault {
    descriptor: OwnedFd,
}

impl Userfault {
    /// Opens one that serves kernel-mode faults too, with fork events where permitted.
    pub(super) fn open() -> Result<Self, Denied> {
        match Self::open_with(NEEDED | FEATURE_EVENT_FORK) {
            Ok(descriptor) => Ok(Self { descriptor }),
            Err(Denied::Unsupported) => Err(Denied::Unsupported),
            Err(Denied::Permission) => Self::open_with(NEEDED).map(|descriptor| Self { descriptor }),
        }
    }

    fn open_with(features: u64) -> Result<OwnedFd, Denied> {
        let descriptor = create()?;
        let mut api = [UFFD_API, features, 0u64];
        match call(descriptor.as_raw_fd(), IOC_API, &mut api) {
            Ok(()) => Ok(descriptor),
            Err(libc::EPERM) => Err(Denied::Permission),
            Err(_) => Err(Denied::Unsupported),
        }
    }

    /// Takes over the descriptor of a [`Message::Fork`].
    pub(super) fn of_child(descriptor: u32) -> Self {
        // SAFETY: the kernel opened the descriptor for whoever read the message, and nobody else knows of it.
        Self { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) } }
    }

    /// For `poll`.
    pub(super) fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Asks for faults at missing pages of the range.
    pub(super) fn register(&self, range: Range64) -> Result<(), i32> {
        let mut words = [range.start, range.end - range.start, REGISTER_MODE_MISSING, 0];
        call(self.raw(), IOC_REGISTER, &mut words)
    }

    /// Asks no longer, and wakes who waits there.
    pub(super) fn unregister(&self, range: Range64) -> Result<(), i32> {
        call(self.raw(), IOC_UNREGISTER, &mut [range.start, range.end - range.start])
    }

    /// Lets waiting threads try again.
    pub(super) fn wake(&self, range: Range64) {
        let _ = call(self.raw(), IOC_WAKE, &mut [range.start, range.end - range.start]);
    }

    /// Moves pages; returns how many bytes were moved and, if not all, why.
    pub(super) fn move_pages(&self, to: u64, from: u64, bytes: u64, mode: u64) -> (u64, Result<(), i32>) {
        let mut words = [to, from, bytes, mode, 0];
        let result = call(self.raw(), IOC_MOVE, &mut words);
        let moved =
            if result.is_ok() { bytes } else { u64::try_from(words[4] as i64).unwrap_or(0).min(bytes) };
        (moved, result)
    }

    /// Copies pages into missing ones.
    pub(super) fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), i32> {
        call(self.raw(), IOC_COPY, &mut [to, from, bytes, 0, 0])
    }

    /// Fills a missing page with zeros.
    pub(super) fn zero(&self, range: Range64) -> Result<(), i32> {
        call(self.raw(), IOC_ZEROPAGE, &mut [range.start, range.end - range.start, 0, 0])
    }

    /// Reads what has come; never waits.
    pub(super) fn read(&self, messages: &mut [RawMessage]) -> usize {
        let bytes = size_of_val(messages);
        // SAFETY: the buffer is writable, `bytes` long, and any bytes are valid words.
        let got = unsafe { libc::read(self.raw(), messages.as_mut_ptr().cast(), bytes) };
        usize::try_from(got).unwrap_or(0) / size_of::<RawMessage>()
    }
}

/// The three ways to a descriptor, in the order of what they ask for.
fn create() -> Result<OwnedFd, Denied> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    match adopt(syscall(flags)) {
        Ok(descriptor) => return Ok(descriptor),
        Err(libc::ENOSYS) => return Err(Denied::Unsupported),
        Err(_) => {}
    }
    if let Ok(device) = File::options().read(true).write(true).open("/dev/userfaultfd") {
        // SAFETY: the call takes flags by value and returns a new descriptor.
        let raw = unsafe { libc::ioctl(device.as_raw_fd(), IOC_NEW as _, flags) };
        if let Ok(descriptor) = adopt(raw) {
            return Ok(descriptor);
        }
    }
    // User-mode faults alone would make system calls into armed pages fail: only the answer differs.
    match adopt(syscall(flags | USER_MODE_ONLY)) {
        Ok(_) | Err(libc::EPERM) => Err(Denied::Permission),
        Err(_) => Err(Denied::Unsupported),
    }
}

fn syscall(flags: libc::c_int) -> RawFd {
    // SAFETY: the call takes flags by value and returns a new descriptor.
    unsafe { libc::syscall(libc::SYS_userfaultfd, flags) as RawFd }
}

fn adopt(raw: RawFd) -> Result<OwnedFd, i32> {
    if raw < 0 {
        return Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
    }
    // SAFETY: the kernel has just opened it for this caller.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn call<const N: usize>(descriptor: RawFd, request: u64, words: &mut [u64; N]) -> Result<(), i32> {
    // SAFETY: each request's structure is made of 64-bit words, as many as its number encodes and its caller passes.
    let result = unsafe { libc::ioctl(descriptor, request as _, words.as_mut_ptr()) };
    if result == 0 { Ok(()) } else { Err(errno()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in `struct uffd_msg`, little-endian.
    #[test]
    fn messages_are_decoded() {
        assert_eq!(
            decode([0x12, 1, 0x7000, 77]),
            Message::Fault { address: 0x7000, write: true, thread: 77 }
        );
        assert_eq!(decode([0x13, 9, 0, 0]), Message::Fork { descriptor: 9 });
        assert_eq!(decode([0x14, 1, 2, 3]), Message::Remap { from: 1, to: 2, length: 3 });
        assert_eq!(
            decode([0x16, 4096, 8192, 0]),
            Message::Unmap { range: Range64 { start: 4096, end: 8192 } }
        );
        assert_eq!(decode([0xff; 4]), Message::Other);
    }

    #[test]
    fn what_is_gone_leaves_nothing_one_part_or_two() {
        let range = |start, end| Range64 { start, end };
        let (whole, none) = (range(10, 50), Range64::default());
        assert_eq!(whole.without(range(10, 50)), [none, none]);
        assert_eq!(whole.without(range(0, 90)), [none, none]);
        assert_eq!(whole.without(range(0, 20)), [range(20, 50), none]);
        assert_eq!(whole.without(range(40, 90)), [range(10, 40), none]);
        assert_eq!(whole.without(range(20, 30)), [range(10, 20), range(30, 50)]);
    }
}
