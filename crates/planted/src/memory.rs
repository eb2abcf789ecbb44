//! The memory under test: anonymous mappings as words, and every call that the program makes through libc.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::random::mix;
use crate::{Failure, ensure};

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
/// Words per page.
pub(crate) const WORDS: usize = PAGE / 8;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// A mapping's kind.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anonymous and private, like all memory of the other modes.
    Ordinary,
    /// Of the kernel's reserve of huge pages.
    Hugetlb,
    /// Locked by `mlock(2)`.
    Locked,
    /// A registered buffer of an io_uring.
    Pinned,
    /// Equal pages may become one (KSM).
    Mergeable,
    /// Shared with everybody who maps this file.
    File(PathBuf),
}

impl Kind {
    /// Returns a word of the command line, or `file:PATH`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "ordinary" => Self::Ordinary,
            "hugetlb" => Self::Hugetlb,
            "locked" => Self::Locked,
            "pinned" => Self::Pinned,
            "mergeable" => Self::Mergeable,
            _ => Self::File(text.strip_prefix("file:")?.into()),
        })
    }
}

/// An anonymous private mapping, or one of [`Kind`], readable and writable unless [`Mapping::protect`] says
/// otherwise.
pub(crate) struct Mapping {
    start: NonNull<AtomicU64>,
    bytes: usize,
}

// SAFETY: the mapping is reached through atomics only and is unmapped by its owner alone.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps at least `bytes`, in whole pages, all zero.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(PAGE);
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory in use.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        Self::adopt(start, bytes)
    }

    /// Maps memory of a kind that the kernel treats specially.
    pub(crate) fn of_kind(kind: &Kind, bytes: usize) -> io::Result<Self> {
        let page = if *kind == Kind::Hugetlb { HUGE } else { PAGE };
        let bytes = bytes.next_multiple_of(page);
        let (flags, file) = match kind {
            Kind::Hugetlb => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB, None),
            Kind::File(path) => {
                let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
                file.set_len(bytes as u64)?;
                (libc::MAP_SHARED, Some(file))
            }
            _ => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None),
        };
        let (access, number) =
            (libc::PROT_READ | libc::PROT_WRITE, file.as_ref().map_or(-1, AsRawFd::as_raw_fd));
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use; the kernel
        // keeps the file open.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, number, 0) };
        let memory = Self::adopt(start, bytes)?;
        match kind {
            Kind::Locked => {
                // SAFETY: the range is the mapping's own.
                returned(unsafe { libc::mlock(start, bytes) })?;
            }
            Kind::Pinned => memory.pin()?,
            Kind::Mergeable => memory.advise(0, memory.pages(), libc::MADV_MERGEABLE)?,
            Kind::Ordinary | Kind::Hugetlb | Kind::File(_) => {}
        }
        Ok(memory)
    }

    /// Registers the memory as a buffer of an io_uring, which pins its pages until the process ends.
    fn pin(&self) -> io::Result<()> {
        const REGISTER_BUFFERS: libc::c_uint = 0;
        // `struct io_uring_params` (io_uring_setup(2)): 120 bytes, all zero for a ring without options.
        let mut parameters = [0u64; 15];
        // SAFETY: `parameters` is as large as the kernel's structure, which it fills in.
        let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
        if ring < 0 {
            return Err(io::Error::last_os_error());
        }
        let buffer = libc::iovec { iov_base: self.start.as_ptr().cast(), iov_len: self.bytes };
        let one: libc::c_uint = 1;
        // SAFETY: the range is mapped and writable; nothing is ever read into it through the ring, which
        // stays open.
        let done = unsafe {
            libc::syscall(libc::SYS_io_uring_register, ring, REGISTER_BUFFERS, &raw const buffer, one)
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn adopt(start: *mut libc::c_void, bytes: usize) -> io::Result<Self> {
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { start, bytes })
    }

    pub(crate) fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn pages(&self) -> usize {
        self.bytes / PAGE
    }

    /// Returns all words. Reading or writing words that [`Self::protect`] forbids kills the process.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is `bytes` long, page-aligned, initialised by the kernel, and lives as long as
        // `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes / 8) }
    }

    /// Returns all bytes, for system calls.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `words`; `&mut self` excludes any other access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes) }
    }

    /// Fills every word with a pattern of `seed`.
    pub(crate) fn fill(&self, seed: u64) {
        for (at, word) in self.words().iter().enumerate() {
            word.store(pattern(seed, at), Relaxed);
        }
    }

    /// Fails unless every word is as [`Self::fill`] left it.
    pub(crate) fn check(&self, seed: u64) -> Result<(), Failure> {
        for (at, word) in self.words().iter().enumerate() {
            let found = word.load(Relaxed);
            let expected = pattern(seed, at);
            ensure(found == expected, || {
                format!("memory: {:p} holds {found:#x}, expected {expected:#x}", std::ptr::from_ref(word))
            })?;
        }
        Ok(())
    }

    /// Gives advice on some of the pages (`madvise(2)`).
    pub(crate) fn advise(&self, first: usize, pages: usize, advice: libc::c_int) -> io::Result<()> {
        assert!(first + pages <= self.pages());
        let start = self.start.as_ptr().wrapping_add(first * WORDS).cast();
        // SAFETY: the range lies within the mapping; the advice used here leaves it mapped, readable and
        // initialised.
        returned(unsafe { libc::madvise(start, pages * PAGE, advice) })
    }

    /// Forbids writing, or allows it again.
    pub(crate) fn protect(&mut self, writable: bool) -> io::Result<()> {
        let access = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: it is the mapping's own range, and it stays readable.
        returned(unsafe { libc::mprotect(self.start.as_ptr().cast(), self.bytes, access) })
    }

    /// Unmaps the last `pages` pages, which must leave one.
    pub(crate) fn truncate(&mut self, pages: usize) -> io::Result<()> {
        assert!(pages < self.pages());
        self.bytes -= pages * PAGE;
        let start = self.start.as_ptr().wrapping_add(self.bytes / 8).cast();
        // SAFETY: the range was the mapping's and is forgotten above; `&mut self` excludes references into
        // it.
        returned(unsafe { libc::munmap(start, pages * PAGE) })
    }

    /// Resizes it, moving it if necessary (`mremap(2)`); new pages are zero.
    pub(crate) fn resize(self, pages: usize) -> io::Result<Self> {
        let this = std::mem::ManuallyDrop::new(self);
        let (old, new) = (this.bytes, pages * PAGE);
        // SAFETY: the mapping is owned, and `self` is gone, so that nothing points to the old place.
        let start = unsafe { libc::mremap(this.start.as_ptr().cast(), old, new, libc::MREMAP_MAYMOVE) };
        Self::adopt(start, new)
    }

    /// Moves it to another place (`mremap(2)`).
    pub(crate) fn relocate(self) -> io::Result<Self> {
        let this = std::mem::ManuallyDrop::new(self);
        let place = std::mem::ManuallyDrop::new(Self::new(this.bytes)?);
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: both ranges are owned and of the same size; the one at `place` is replaced by the other.
        let start = unsafe {
            libc::mremap(this.start.as_ptr().cast(), this.bytes, place.bytes, how, place.start.as_ptr())
        };
        Self::adopt(start, place.bytes)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Returns the word that [`Mapping::fill`] writes.
pub(crate) fn pattern(seed: u64, word: usize) -> u64 {
    mix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word as u64)
}

/// Runs `child` in a forked copy of this process, which must have one thread; returns the child's number.
///
/// `child` must neither allocate nor lock: a library's thread may have held a lock when the copy was made.
pub(crate) fn fork(child: impl FnOnce() -> bool) -> io::Result<libc::pid_t> {
    // SAFETY: the child runs `child` alone, whose contract is above, and leaves by `_exit`.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let status = i32::from(!child());
            // SAFETY: ends this process; nothing is run on the way.
            unsafe { libc::_exit(status) }
        }
        process => Ok(process),
    }
}

/// Waits for any child; returns its number and whether it exited with 0.
pub(crate) fn wait() -> io::Result<(libc::pid_t, bool)> {
    let mut status = 0;
    // SAFETY: `status` is a valid place to write to.
    let process = unsafe { libc::waitpid(-1, &raw mut status, 0) };
    if process < 0 { Err(io::Error::last_os_error()) } else { Ok((process, status == 0)) }
}

/// Returns nanoseconds of `CLOCK_MONOTONIC`.
pub(crate) fn monotonic() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// Returns the calling thread's processor time in nanoseconds.
pub(crate) fn thread_cpu() -> u64 {
    nanoseconds(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write to, and both clocks always exist.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn returned(value: libc::c_int) -> io::Result<()> {
    if value == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
