//! The memory that is armed.
#![allow(unsafe_code)]

use std::io::Write as _;

use crate::{Failure, Result, ensure};

/// Pages of the usual area.
pub(crate) const PAGES: usize = 256;
pub(crate) const PAGE: usize = 4096;
const HUGE: usize = 2 << 20;

/// Anonymous private memory with a known word at the start and the end of each page.
pub(crate) struct Area {
    pub(crate) start: usize,
    pub(crate) pages: usize,
}

/// Returns the page's first contents.
fn word(page: usize) -> u64 {
    (page as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Maps memory, at `place` if that is not 0.
pub(crate) fn map(place: usize, bytes: usize) -> usize {
    let fixed = if place == 0 { 0 } else { libc::MAP_FIXED };
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed);
    // SAFETY: new memory, or memory of an area that its owner replaces.
    unsafe { libc::mmap(place as *mut _, bytes, access, kind, -1, 0) as usize }
}

/// Reads a word.
pub(crate) fn read(address: usize) -> u64 {
    // SAFETY: callers pass addresses in mapped, readable memory.
    unsafe { std::ptr::read_volatile(address as *const u64) }
}

/// Writes a word.
pub(crate) fn write(address: usize, value: u64) {
    // SAFETY: callers pass addresses in mapped, writable memory to which no reference exists.
    unsafe { std::ptr::write_volatile(address as *mut u64, value) }
}

impl Area {
    /// Maps and fills it. Its neighbours are left unmapped, so that it is a mapping of its own.
    pub(crate) fn new(pages: usize) -> Self {
        let around = map(0, (pages + 2) * PAGE);
        // SAFETY: the first and the last page just mapped; nobody refers to them.
        unsafe {
            libc::munmap(around as *mut _, PAGE);
            libc::munmap((around + (pages + 1) * PAGE) as *mut _, PAGE);
        }
        Self { start: around + PAGE, pages }.filled()
    }

    /// Two huge pages.
    pub(crate) fn huge() -> Self {
        let start = map(0, 4 * HUGE).next_multiple_of(HUGE);
        // SAFETY: advice on memory just mapped.
        unsafe { libc::madvise(start as *mut _, 2 * HUGE, libc::MADV_HUGEPAGE) };
        Self { start, pages: 2 * HUGE / PAGE }.filled()
    }

    fn filled(self) -> Self {
        for page in 0..self.pages {
            self.set(page, word(page));
        }
        self
    }

    pub(crate) fn bytes(&self) -> usize {
        self.pages * PAGE
    }

    /// Returns the page's address.
    pub(crate) fn at(&self, page: usize) -> usize {
        self.start + page * PAGE
    }

    pub(crate) fn set(&self, page: usize, value: u64) {
        write(self.at(page), value);
        write(self.at(page + 1) - 8, value);
    }

    fn get(&self, page: usize) -> [u64; 2] {
        [read(self.at(page)), read(self.at(page + 1) - 8)]
    }

    /// Prints where it is, and waits for a line.
    pub(crate) fn announce(&self) {
        println!("ready {:x} {}", self.start, self.pages);
        let _ = std::io::stdout().flush();
        let mut byte = [0u8];
        // SAFETY: one writable byte.
        unsafe { libc::read(0, byte.as_mut_ptr().cast(), 1) };
    }

    /// Fails unless all pages hold what they held at first.
    pub(crate) fn check(&self) -> Result {
        self.check_pages(0, self.pages)
    }

    /// Fails unless `count` pages from `first` hold what they held at first.
    pub(crate) fn check_pages(&self, first: usize, count: usize) -> Result {
        (first..first + count).try_for_each(|page| {
            let (found, wanted) = (self.get(page), word(page));
            ensure(found == [wanted; 2], &format!("page {page} holds {found:x?}, not {wanted:x}"))
        })
    }

    /// Fails unless `count` pages from `first` are zero.
    pub(crate) fn check_zero(&self, first: usize, count: usize) -> Result {
        (first..first + count).try_for_each(|page| {
            let found = self.get(page);
            ensure(found == [0; 2], &format!("page {page} holds {found:x?}, not 0"))
        })
    }

    /// Returns whether it holds what it held at first; prints nothing and allocates nothing.
    pub(crate) fn is_right(&self) -> bool {
        (0..self.pages).all(|page| self.get(page) == [word(page); 2])
    }

    /// Registers it with a userfaultfd of the program's own.
    pub(crate) fn own_userfaultfd(&self) -> Result {
        let mut api = [0xaau64, 0, 0];
        let mut register = [self.start as u64, self.bytes() as u64, 1, 0];
        // SAFETY: the structures are made of 64-bit words, as the requests' numbers encode.
        let registered = unsafe {
            let fd = libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) as i32;
            fd >= 0
                && libc::ioctl(fd, 0xc018_aa3f, api.as_mut_ptr()) == 0
                && libc::ioctl(fd, 0xc020_aa00, register.as_mut_ptr()) == 0
        };
        if registered { Ok(()) } else { Err(Failure::Impossible("no userfaultfd".into())) }
    }
}
