//! Defines a mapping bound to nodes, behind safe functions.

use std::io;
use std::ptr::NonNull;

/// `MPOL_BIND` of include/uapi/linux/mempolicy.h.
const BIND: libc::c_int = 2;
/// Bits of one word of a node mask.
const BITS: usize = 64;
/// The size of a huge page.
const HUGE: usize = 2 << 20;

/// Anonymous memory of this process that nobody else knows of.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u64>,
    bytes: usize,
}

impl Mapping {
    /// Maps `bytes`, rounded up to a huge page; huge pages are advised, so that what is measured is memory and not page tables.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(HUGE);
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start =
            NonNull::new(start.cast::<u64>()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: the range is the mapping made above. Where the advice is not taken, base pages do as well.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        Ok(Self { start, bytes })
    }

    /// Has pages that are not present yet come from `nodes` only.
    pub fn bind(&mut self, nodes: &[u32]) -> io::Result<()> {
        let largest = nodes.iter().copied().max().unwrap_or(0) as usize;
        let mut mask = vec![0_u64; largest / BITS + 1];
        nodes.iter().for_each(|&node| mask[node as usize / BITS] |= 1 << (node as usize % BITS));
        // SAFETY: the range is this mapping; the kernel reads as many bits of the mask as it has, the last one excluded
        // (`get_nodes` in mm/mempolicy.c takes one less than it is told).
        let failed = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.start.as_ptr(),
                self.bytes,
                BIND,
                mask.as_ptr(),
                mask.len() * BITS + 1,
                0,
            )
        };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Words of 64 bits.
    pub fn len(&self) -> usize {
        self.bytes / size_of::<u64>()
    }

    /// All of it.
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: the mapping is readable and writable, aligned to a page, as long as `self`, borrowed as `self` is, and any
        // bytes are a number.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` and is used no more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
