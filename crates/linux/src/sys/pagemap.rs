//! `/proc/PID/pagemap` and `/proc/PID/maps`: the bits of an entry, and the ioctls `PAGEMAP_SCAN` (Linux 6.7)
//! and `PROCMAP_QUERY` (Linux 6.11). Does not allocate.
//!
//! Documentation/admin-guide/mm/pagemap.rst, include/uapi/linux/fs.h.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::errno;
use super::range::Range64;

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: u64 = 0xc060_6610;
/// `_IOWR('f', 17, struct procmap_query)`.
const PROCMAP_QUERY: u64 = 0xc068_6611;
/// `PROCMAP_QUERY_COVERING_OR_NEXT_VMA`.
const COVERING_OR_NEXT: u64 = 0x10;

/// Bits of a 64-bit entry of pagemap.
pub(crate) mod entry {
    pub(crate) const PRESENT: u64 = 1 << 63;
    /// In swap, or on its way to another frame.
    pub(crate) const SWAPPED: u64 = 1 << 62;
    /// Number of the page frame; 0 without `CAP_SYS_ADMIN`.
    pub(crate) const FRAME: u64 = (1 << 55) - 1;
}

/// Categories of pages to `PAGEMAP_SCAN`.
pub(crate) mod category {
    /// Belongs to a file, or to memory that processes share.
    pub(crate) const FILE: u64 = 1 << 2;
    pub(crate) const PRESENT: u64 = 1 << 3;
    pub(crate) const SWAPPED: u64 = 1 << 4;
    /// The shared page of zeros.
    pub(crate) const ZERO: u64 = 1 << 5;
    /// Part of a huge page, mapped as such.
    pub(crate) const HUGE: u64 = 1 << 6;
}

/// Neighbouring pages of the same categories: `struct page_region`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PageRegion {
    pub(crate) range: Range64,
    pub(crate) categories: u64,
}

/// `struct pm_scan_arg`.
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

/// Finds pages of `range` (whole pages) that are in one of the categories `within` and in none of `without`,
/// and writes them to `regions`, with [`category::HUGE`] and [`category::SWAPPED`] where they apply. Returns
/// how many regions were written and where the walk ended. Errors: `ENOTTY` before Linux 6.7; `EFAULT` beyond
/// the address space.
pub(crate) fn scan(
    pagemap: BorrowedFd<'_>,
    range: Range64,
    (within, without): (u64, u64),
    regions: &mut [PageRegion],
) -> Result<(usize, u64), i32> {
    let mut arguments = ScanArguments {
        size: size_of::<ScanArguments>() as u64,
        start: range.start,
        end: range.end,
        vec: regions.as_mut_ptr() as u64,
        vec_len: regions.len() as u64,
        category_inverted: without,
        category_mask: without,
        category_anyof_mask: within,
        return_mask: category::HUGE | category::SWAPPED,
        ..ScanArguments::default()
    };
    // SAFETY: the argument has the layout and the size that the request names; the kernel writes at most
    // `vec_len` regions to `vec`, which are borrowed mutably meanwhile and are plain integers.
    let found = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN as _, &raw mut arguments) };
    match usize::try_from(found) {
        Ok(found) => Ok((found.min(regions.len()), arguments.walk_end)),
        Err(_) => Err(errno()),
    }
}

/// `PROCMAP_QUERY_VMA_*`: access to a mapping, and whether it is shared (8).
pub(crate) struct VmaFlags;

impl VmaFlags {
    pub(crate) const READ: u64 = 1;
    pub(crate) const WRITE: u64 = 2;
}

/// A mapping as the kernel describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) range: Range64,
    /// Bits of [`VmaFlags`].
    pub(crate) flags: u64,
    /// 0 for memory without a file.
    pub(crate) inode: u64,
}

/// Returns the mapping at the address or the next one, and its name up to a zero byte, cut to the buffer's
/// length. Errors: `ENOENT` without one; `ENOTTY` before Linux 6.11; `ENAMETOOLONG`.
pub(crate) fn mapping_at(maps: BorrowedFd<'_>, address: u64, name: &mut [u8; 64]) -> Result<Area, i32> {
    // struct procmap_query: size, flags, address, start, end, access, page size, offset, inode, device, sizes
    // of name and build ID, their addresses.
    let mut words = [0u64; 13];
    (words[0], words[1], words[2]) = (size_of_val(&words) as u64, COVERING_OR_NEXT, address);
    (words[10], words[11]) = (name.len() as u64, name.as_mut_ptr() as u64);
    // SAFETY: the structure is as long as it says; the name's buffer is writable for the size it names.
    let result = unsafe { libc::ioctl(maps.as_raw_fd(), PROCMAP_QUERY as _, words.as_mut_ptr()) };
    if result < 0 {
        return Err(errno());
    }
    Ok(Area { range: Range64 { start: words[3], end: words[4] }, flags: words[5], inode: words[8] })
}

/// Returns the bytes that hold these numbers.
pub(crate) fn bytes_of(numbers: &mut [u64]) -> &mut [u8] {
    let (start, length) = (numbers.as_mut_ptr().cast(), size_of_val(numbers));
    // SAFETY: the same memory, borrowed as long; every byte of a number may be read and take any value.
    unsafe { std::slice::from_raw_parts_mut(start, length) }
}
