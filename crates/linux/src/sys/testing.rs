//! For tests: memory that is mapped, touched and dropped page by page, other users, no umask.

use std::ops::Range;

use super::mmap::Mapping;
use super::pages::{HUGE, PAGE, madvise};

/// Anonymous memory whose start is a multiple of 2 MiB.
pub(crate) struct Memory {
    _mapping: Mapping,
    start: u64,
    size: u64,
}

impl Memory {
    /// Maps `size` bytes, none of them present; advises for or against huge pages.
    pub(crate) fn new(size: u64, huge: bool) -> Self {
        let mapping = Mapping::anonymous(size as usize + HUGE, 0).expect("address space");
        let start = mapping.range().start.next_multiple_of(HUGE as u64);
        let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the range lies in the mapping made above, which is still all zero.
        let _ = unsafe { madvise(start as *mut u8, size as usize, advice) };
        Self { _mapping: mapping, start, size }
    }

    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start + self.size
    }

    pub(crate) fn page(&self, number: u64) -> u64 {
        self.start + number * PAGE
    }

    /// Writes to the page, so that it is present.
    pub(crate) fn touch(&self, number: u64) {
        let address = self.page(number);
        assert!(self.range().contains(&address));
        // SAFETY: the address lies in this mapping, which is writable and without references.
        unsafe { (address as *mut u8).write_volatile(number as u8 | 1) };
    }

    /// Reads from the page: one that was never written becomes the page of zeros.
    pub(crate) fn read(&self, number: u64) -> u8 {
        let address = self.page(number);
        assert!(self.range().contains(&address));
        // SAFETY: as in `touch`.
        unsafe { (address as *const u8).read_volatile() }
    }

    /// Makes pages absent.
    pub(crate) fn drop_pages(&self, pages: Range<u64>) {
        let (start, length) = (self.page(pages.start), (pages.end - pages.start) * PAGE);
        assert!(start + length <= self.range().end);
        // SAFETY: the range lies in this mapping, into which nobody holds a reference.
        unsafe { madvise(start as *mut u8, length as usize, libc::MADV_DONTNEED) }.expect("mapped");
    }
}

/// Calls `f` in a thread of its own, with rights or a mask that the thread has taken for itself by `prepare`.
fn in_thread<R: Send>(prepare: impl FnOnce() + Send, f: impl FnOnce() -> R + Send) -> R {
    let run = || {
        prepare();
        f()
    };
    std::thread::scope(|scope| scope.spawn(run).join()).expect("the thread's test")
}

pub(crate) fn is_root() -> bool {
    super::process::user() == 0
}

/// Calls `f` as another user; only root can.
pub(crate) fn as_user<R: Send>(user: u32, f: impl FnOnce() -> R + Send) -> R {
    let become_user = move || {
        // SAFETY: integers only. The raw call changes this thread alone, on whose rights no other relies.
        let result = unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
        assert_eq!(result, 0, "only root can be another user");
    };
    in_thread(become_user, f)
}

/// Calls `f` with an umask of 0.
pub(crate) fn without_umask<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let unmask = || {
        // SAFETY: integers only. This thread gets an umask of its own.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_FS) }, 0);
        // SAFETY: as above.
        unsafe { libc::umask(0) };
    };
    in_thread(unmask, f)
}
