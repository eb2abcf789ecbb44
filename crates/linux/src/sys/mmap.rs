//! `mmap(2)` and `munmap(2)`: every mapping of the crate, each with an owner that unmaps it on drop.
//!
//! The kernel chooses every address, so that no memory in use is touched. Failures are the kernel's `errno`:
//! `ENOMEM` without address space or memory, `EAGAIN` for locked memory beyond its limit, `EACCES` for a file
//! that is not open for reading and writing, `ENODEV` for one that cannot be mapped. Lengths that fit no
//! mapping are `EINVAL`.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::{NonNull, null_mut};
use std::slice;
use std::sync::atomic::AtomicU64;

use isotherm_core::Nanos;

use super::memory_file;
use super::pages::{HUGE, PAGE, madvise};
use super::plain::{Atomics, Zeroed};
use super::range::Range64;
use crate::clock;

/// Memory that can be read and written, unmapped on drop. References into it must not outlive it.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is valid in every thread; the value itself gives no access to its memory.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps private zeros; `flags` are further `MAP_` flags. Does not allocate.
    pub(super) fn anonymous(bytes: usize, flags: libc::c_int) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
        Self::new(bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    }

    /// Maps `bytes` of a file from `offset` on, a multiple of the page size, as shared. Does not allocate.
    pub(super) fn shared(file: BorrowedFd<'_>, offset: usize, bytes: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        Self::new(bytes, access, libc::MAP_SHARED, file.as_raw_fd(), offset)
    }

    fn new(
        bytes: usize,
        access: libc::c_int,
        flags: libc::c_int,
        file: RawFd,
        offset: usize,
    ) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset).map_err(|_| invalid())?;
        // SAFETY: the kernel chooses the address of the new mapping, so that it touches no memory in use.
        let start = unsafe { libc::mmap(null_mut(), bytes, access, flags, file, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { start, bytes })
    }

    /// Returns the address of the first byte, aligned to a page.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(super) fn range(&self) -> Range64 {
        Range64::new(self.start.addr().get() as u64, self.bytes as u64)
    }

    /// Gives advice that concerns this memory's speed or its children; what is refused changes nothing.
    pub(super) fn advise(&self, advice: libc::c_int) {
        // SAFETY: callers pass advice that leaves the contents as they are, for memory that nobody else owns.
        let _ = unsafe { madvise(self.start.as_ptr(), self.bytes, advice) };
    }

    /// Gives the memory up without unmapping it.
    pub(super) fn leak(self) -> Range64 {
        let range = self.range();
        std::mem::forget(self);
        range
    }

    /// Takes back memory that [`Self::leak`] gave up.
    ///
    /// # Safety
    /// `range` is all of such memory, and no reference into it is left.
    pub(super) unsafe fn reclaim(range: Range64) -> Option<Self> {
        let start = NonNull::new(range.start as usize as *mut u8)?;
        Some(Self { start, bytes: range.length() as usize })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; references into it do not outlive its owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

fn invalid() -> io::Error {
    io::Error::from_raw_os_error(libc::EINVAL)
}

/// Shared memory of a file as atomic words.
#[derive(Debug)]
pub(crate) struct SharedWords {
    mapping: Mapping,
    words: usize,
}

impl SharedWords {
    /// Maps the first `bytes` of a file, at least one word (`EINVAL`), which nobody may truncate meanwhile.
    pub(crate) fn new(file: &File, bytes: usize) -> io::Result<Self> {
        let words = bytes / size_of::<AtomicU64>();
        if words == 0 {
            return Err(invalid());
        }
        Ok(Self { mapping: Mapping::shared(file.as_fd(), 0, bytes)?, words })
    }

    /// Returns all words; the same at each call.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped with this many words until it is dropped, page-aligned, and any bits are a word. A
        // device's memory cannot shrink; a file in a test is not truncated.
        unsafe { slice::from_raw_parts(self.mapping.start().cast(), self.words) }
    }
}

/// One value shared through a sealed memory file.
pub(crate) struct SharedValue<T: Atomics> {
    mapping: Mapping,
    value: PhantomData<T>,
}

impl<T: Atomics> SharedValue<T> {
    /// Makes a memory file of the value's size and maps it, all zero.
    pub(crate) fn create() -> Result<(Self, OwnedFd), i32> {
        let file = memory_file::create(c"isotherm", size_of::<T>())?;
        Ok((Self::map(&file)?, file))
    }

    /// Maps a memory file that another process made: `EINVAL` if it could shrink or has another size.
    pub(crate) fn adopt(file: &OwnedFd) -> Result<Self, i32> {
        memory_file::check(file, size_of::<T>())?;
        Self::map(file)
    }

    /// The file's size is sealed, so that the mapping stays backed.
    fn map(file: &OwnedFd) -> Result<Self, i32> {
        let mapping =
            Mapping::shared(file.as_fd(), 0, size_of::<T>()).map_err(|error| super::code(&error))?;
        Ok(Self { mapping, value: PhantomData })
    }

    pub(crate) fn range(&self) -> Range64 {
        self.mapping.range()
    }
}

impl<T: Atomics> Deref for SharedValue<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: mapped while `self` lives, page-aligned, as long as `T`, and any bits are valid atomics.
        unsafe { &*self.mapping.start().cast() }
    }
}

/// One value in a mapping of its own, outside of any heap, which children do not inherit.
pub(crate) struct Arena<T: Zeroed> {
    mapping: Mapping,
    value: PhantomData<T>,
}

impl<T: Zeroed> Arena<T> {
    pub(crate) fn new() -> Result<Self, i32> {
        let bytes = size_of::<T>().next_multiple_of(PAGE as usize);
        let mapping = Mapping::anonymous(bytes, libc::MAP_NORESERVE).map_err(|error| super::code(&error))?;
        mapping.advise(libc::MADV_DONTFORK);
        mapping.advise(libc::MADV_NOHUGEPAGE);
        Ok(Self { mapping, value: PhantomData })
    }

    pub(crate) fn range(&self) -> Range64 {
        self.mapping.range()
    }
}

impl<T: Zeroed> Deref for Arena<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: mapped, page-aligned, zero is valid for `T`, and owned by `self`.
        unsafe { &*self.mapping.start().cast() }
    }
}

impl<T: Zeroed> DerefMut for Arena<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { &mut *self.mapping.start().cast() }
    }
}

/// One value in a page of its own that is all zero in each child of a fork (`MADV_WIPEONFORK`).
pub(crate) struct WipedOnFork<T: Atomics> {
    mapping: Mapping,
    value: PhantomData<T>,
}

impl<T: Atomics> WipedOnFork<T> {
    /// Errors: `ENOMEM`; `EINVAL` before Linux 4.14.
    pub(crate) fn new() -> Result<Self, i32> {
        let bytes = size_of::<T>().next_multiple_of(PAGE as usize);
        let mapping = Mapping::anonymous(bytes, 0).map_err(|error| super::code(&error))?;
        // SAFETY: advice on a mapping that nobody else knows of, about children.
        let advised = unsafe { madvise(mapping.start(), bytes, libc::MADV_WIPEONFORK) };
        advised.map_err(|error| super::code(&error))?;
        Ok(Self { mapping, value: PhantomData })
    }

    pub(crate) fn range(&self) -> Range64 {
        self.mapping.range()
    }
}

impl<T: Atomics> Deref for WipedOnFork<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: mapped while `self` lives, page-aligned, as long as `T`, and any bits are valid atomics.
        unsafe { &*self.mapping.start().cast() }
    }
}

/// Private memory that can be bound to nodes. Children do not inherit it, but for [`Self::share_once`].
#[derive(Debug)]
pub struct BoundMemory {
    mapping: Mapping,
}

impl BoundMemory {
    /// Maps `bytes`, rounded up to a huge page, in huge pages where the kernel has them; none of it is
    /// present yet.
    pub fn new(bytes: usize) -> io::Result<Self> {
        Self::advised(bytes, libc::MADV_HUGEPAGE)
    }

    /// As [`Self::new`], in base pages.
    pub fn in_base_pages(bytes: usize) -> io::Result<Self> {
        Self::advised(bytes, libc::MADV_NOHUGEPAGE)
    }

    fn advised(bytes: usize, advice: libc::c_int) -> io::Result<Self> {
        let mapping = Mapping::anonymous(bytes.max(1).next_multiple_of(HUGE), 0)?;
        mapping.advise(advice);
        mapping.advise(libc::MADV_DONTFORK);
        Ok(Self { mapping })
    }

    /// Makes the next write to each page fault, though nobody else has it: it was shared with a child that
    /// has ended.
    ///
    /// # Errors
    /// `EAGAIN` for too many processes, `ENOMEM`.
    pub fn share_once(&mut self) -> io::Result<()> {
        self.mapping.advise(libc::MADV_DOFORK);
        // SAFETY: the child calls nothing but `_exit`, which is safe in the child of any program.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child and returns to nobody.
            unsafe { libc::_exit(0) };
        }
        let forked = super::checked(child);
        self.mapping.advise(libc::MADV_DONTFORK);
        let child = forked?;
        loop {
            // SAFETY: the call may store no status.
            match super::checked(unsafe { libc::waitpid(child, null_mut(), 0) }) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                waited => break waited.map(drop),
            }
        }
    }

    /// Takes all access to the memory away, gives it back, and returns how long the first took.
    ///
    /// # Errors
    /// `ENOMEM`; the memory is unmapped then.
    pub fn arm(self) -> io::Result<(Self, Nanos)> {
        let protect = |access: libc::c_int| {
            let (start, bytes) = (self.mapping.start().cast(), self.mapping.bytes);
            // SAFETY: the memory is this value's alone, and no reference into it exists while it is moved.
            super::checked(unsafe { libc::mprotect(start, bytes, access) })
        };
        let start = clock::monotonic();
        protect(libc::PROT_NONE)?;
        let time = clock::monotonic() - start;
        protect(libc::PROT_READ | libc::PROT_WRITE)?;
        Ok((self, time))
    }

    /// Binds pages that are not present yet to `nodes` (`mbind(2)`, `MPOL_BIND`).
    ///
    /// # Errors
    /// `EINVAL` for a node that does not exist or has no memory, `EPERM` outside of the cpuset, `ENOSYS`
    /// without NUMA.
    pub fn bind(&mut self, nodes: &[u32]) -> io::Result<()> {
        super::pages::bind(self.mapping.range(), nodes)
    }

    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: readable, writable and page-aligned for as long as `self` is borrowed; any bits are a word.
        unsafe { slice::from_raw_parts_mut(self.mapping.start().cast(), self.mapping.bytes / 8) }
    }
}

/// Private memory between two guard pages, hence a mapping of its own that merges with no other.
#[derive(Debug)]
pub struct GuardedPages {
    whole: Mapping,
    bytes: usize,
}

/// Bytes of each guard: no smaller than any page size of Linux.
const GUARD_BYTES: usize = 1 << 16;

impl GuardedPages {
    /// Maps `bytes` of zeros, a multiple of the page size.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let whole = Mapping::new(bytes + 2 * GUARD_BYTES, libc::PROT_NONE, flags, -1, 0)?;
        let pages = Self { whole, bytes };
        // SAFETY: the range lies inside of the mapping just made.
        let answer =
            unsafe { libc::mprotect(pages.start().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(pages) }
    }

    fn start(&self) -> *mut u8 {
        self.whole.start().wrapping_add(GUARD_BYTES)
    }

    pub fn address(&self) -> usize {
        self.start().addr()
    }

    /// Returns the memory as words, which any thread may read and write.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the pages are readable and writable for as long as `self` lives, page-aligned, and any bits
        // are a word; writes go through the atomics alone.
        unsafe { slice::from_raw_parts(self.start().cast(), self.bytes / size_of::<AtomicU64>()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the faults of this thread so far that read nothing from a disk.
    fn faults() -> u64 {
        let text = std::fs::read_to_string("/proc/thread-self/stat").expect("procfs");
        let (_, rest) = text.rsplit_once(')').expect("a name");
        rest.split_whitespace().nth(7).and_then(|count| count.parse().ok()).expect("the tenth field")
    }

    #[test]
    fn each_page_that_was_shared_once_faults_once_and_keeps_its_contents() {
        let pages = 2 * HUGE as u64 / PAGE;
        // Faults of the thread's stack and heap, which a child shares too.
        let others = pages / 8;
        let mut memory = BoundMemory::in_base_pages(2 * HUGE).expect("memory");
        let write = |memory: &mut BoundMemory| {
            let before = faults();
            memory.words().iter_mut().step_by(PAGE as usize / 8).for_each(|word| *word += 1);
            faults() - before
        };
        assert!(write(&mut memory) >= pages, "first use");
        assert!(write(&mut memory) < others);
        memory.share_once().expect("a child");
        let found = write(&mut memory);
        assert!((pages..pages + others).contains(&found), "{found} faults of {pages} pages");
        let (mut memory, time) = memory.arm().expect("accessible again");
        assert!(time.0 > 0);
        assert!(memory.words().iter().step_by(PAGE as usize / 8).all(|&word| word == 3));
    }
}
