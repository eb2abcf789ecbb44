//! Defines the system calls on memory behind safe functions.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::process::Pid;

/// The addresses that `move_pages(2)` takes are pointers.
const _: () = assert!(usize::BITS == 64, "64-bit Linux only");

/// `_IOWR('f', 16, struct pm_scan_arg)` of include/uapi/linux/fs.h, since Linux 6.7.
const PAGEMAP_SCAN: u64 = 0xc060_6610;

/// `MPOL_MF_MOVE` and `MPOL_MF_MOVE_ALL` of include/uapi/linux/mempolicy.h.
const MOVE: libc::c_int = 1 << 1;
const MOVE_ALL: libc::c_int = 1 << 2;

/// `struct pm_scan_arg` of include/uapi/linux/fs.h.
#[repr(C)]
#[derive(Debug, Default)]
struct ScanArguments {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region` of include/uapi/linux/fs.h: neighbouring pages of the same categories.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PageRegion {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) categories: u64,
}

/// Categories of include/uapi/linux/fs.h.
pub(super) mod category {
    /// Present in memory.
    pub(crate) const PRESENT: u64 = 1 << 3;
    /// The shared page of zeros.
    pub(crate) const ZERO: u64 = 1 << 5;
    /// Part of a huge page, mapped as such.
    pub(crate) const HUGE: u64 = 1 << 6;
}

/// Finds present pages, the page of zeros excepted, in `start..end` (multiples of 4 KiB). Returns how many regions were
/// found and where the walk ended.
pub(super) fn pagemap_scan(
    pagemap: &File,
    start: u64,
    end: u64,
    regions: &mut [PageRegion],
) -> io::Result<(usize, u64)> {
    let mut arguments = ScanArguments {
        size: size_of::<ScanArguments>() as u64,
        start,
        end,
        vec: regions.as_mut_ptr() as u64,
        vec_len: regions.len() as u64,
        category_inverted: category::ZERO,
        category_mask: category::PRESENT | category::ZERO,
        return_mask: category::HUGE,
        ..ScanArguments::default()
    };
    // SAFETY: the argument has the layout and the size that the request names; the kernel writes at most `vec_len`
    // regions to `vec`, which are borrowed mutably meanwhile and are plain integers.
    let found = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN as _, &raw mut arguments) };
    match usize::try_from(found) {
        Ok(found) => Ok((found.min(regions.len()), arguments.walk_end)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// `move_pages(2)`: moves pages to `nodes`, or asks where they are. Returns how many pages failed to move.
pub(super) fn move_pages(
    pid: Pid,
    addresses: &[u64],
    nodes: Option<&[i32]>,
    status: &mut [i32],
    all: bool,
) -> io::Result<u64> {
    if status.len() != addresses.len() || nodes.is_some_and(|nodes| nodes.len() != addresses.len()) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let flags = if all { MOVE_ALL } else { MOVE };
    // SAFETY: the three arrays have `addresses.len()` elements, as checked; the kernel reads the first two and writes
    // integers to the third. The addresses are the other process's and are not dereferenced here.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            pid.0 as libc::pid_t,
            addresses.len(),
            addresses.as_ptr(),
            nodes.map_or(std::ptr::null(), <[i32]>::as_ptr),
            status.as_mut_ptr(),
            flags,
        )
    };
    u64::try_from(failed).map_err(|_| io::Error::last_os_error())
}

/// The bytes that hold these numbers.
pub(super) fn bytes_of(numbers: &mut [u64]) -> &mut [u8] {
    let (start, length) = (numbers.as_mut_ptr().cast(), size_of_val(numbers));
    // SAFETY: the same memory, borrowed as long; every byte of a number may be read and take any value.
    unsafe { std::slice::from_raw_parts_mut(start, length) }
}

/// Memory for tests: mapped, and unmapped again.
#[cfg(test)]
pub(super) mod testing {
    use std::ops::Range;

    /// Anonymous memory whose start is a multiple of 2 MiB.
    pub(crate) struct Memory {
        whole: *mut libc::c_void,
        length: usize,
        start: u64,
        size: u64,
    }

    /// The size of a huge page.
    const HUGE: u64 = 2 << 20;

    impl Memory {
        /// Maps `size` bytes, none of them present; huge pages are advised or refused.
        pub(crate) fn new(size: u64, huge: bool) -> Self {
            let length = (size + HUGE) as usize;
            let (access, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
            let whole = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0) };
            assert_ne!(whole, libc::MAP_FAILED);
            let start = (whole as u64).next_multiple_of(HUGE);
            let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
            // SAFETY: the range lies in the mapping made above.
            unsafe { libc::madvise(start as *mut libc::c_void, size as usize, advice) };
            Self { whole, length, start, size }
        }

        /// Its addresses.
        pub(crate) fn range(&self) -> Range<u64> {
            self.start..self.start + self.size
        }

        /// The address of its page of this number.
        pub(crate) fn page(&self, number: u64) -> u64 {
            self.start + number * super::super::BASE
        }

        /// Writes to the page, so that it is present.
        pub(crate) fn touch(&self, number: u64) {
            let address = self.page(number);
            assert!(self.range().contains(&address));
            // SAFETY: the address lies in this mapping, which is writable and which nobody holds a reference to.
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
            let (start, length) = (self.page(pages.start), (pages.end - pages.start) * super::super::BASE);
            assert!(start + length <= self.range().end);
            // SAFETY: the range lies in this mapping, which nobody holds a reference to.
            let done = unsafe { libc::madvise(start as *mut _, length as usize, libc::MADV_DONTNEED) };
            assert_eq!(done, 0);
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: the mapping was made by `new` and is used no more.
            unsafe { libc::munmap(self.whole, self.length) };
        }
    }
}
