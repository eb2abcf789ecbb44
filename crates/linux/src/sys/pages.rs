//! Calls on pages: `move_pages(2)`, `mbind(2)`, `set_mempolicy(2)`, `madvise(2)` and `process_madvise(2)`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::process::Pid;
use super::range::Range64;

/// The addresses that `move_pages(2)` takes are pointers.
const _: () = assert!(usize::BITS == 64, "64-bit Linux only");

/// Bytes of a page in pagemap and to userfaultfd.
pub(crate) const PAGE: u64 = 4096;
pub(super) const HUGE: usize = 2 << 20;
/// `MPOL_MF_MOVE` and `MPOL_MF_MOVE_ALL` of include/uapi/linux/mempolicy.h.
const MOVE: libc::c_int = 1 << 1;
const MOVE_ALL: libc::c_int = 1 << 2;
/// `MPOL_BIND` and `MPOL_WEIGHTED_INTERLEAVE` of include/uapi/linux/mempolicy.h.
const BIND: libc::c_int = 2;
/// `MADV_COLLAPSE` of include/uapi/asm-generic/mman-common.h.
const COLLAPSE: libc::c_int = 25;
const WEIGHTED_INTERLEAVE: libc::c_int = 6;
/// Bits of one word of a node mask.
const BITS: usize = 64;

pub fn page_size() -> usize {
    // SAFETY: takes an integer.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// Moves pages of a process (0: this one) to `nodes`, or writes to `status` on which node each is, or a
/// negated `errno`. With `all`, moves pages that other processes map too. Returns how many pages did not
/// move. Errors: `EINVAL` for slices of different lengths or a zombie; else as in `move_pages(2)`.
pub(crate) fn move_pages(
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
    // SAFETY: the three arrays have `addresses.len()` elements, as checked; the kernel reads the first two
    // and writes integers to the third. The addresses are the other process's and are not dereferenced here.
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

/// Binds pages of the range that are not present yet to `nodes`. Errors: `EINVAL` for a node that does not
/// exist or has no memory, `EFAULT` where nothing is mapped, `ENOSYS` without NUMA.
pub(super) fn bind(range: Range64, nodes: &[u32]) -> io::Result<()> {
    let (mask, bits) = mask(nodes);
    // SAFETY: changes where pages come from, never their contents. The kernel reads no more than the mask.
    let failed =
        unsafe { libc::syscall(libc::SYS_mbind, range.start, range.length(), BIND, mask.as_ptr(), bits, 0) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has this thread, and what it starts from now on, take new pages from `nodes` in turn by the kernel's
/// weights. Errors: `EINVAL` before Linux 6.9 or for a node that does not exist or has no memory, `ENOSYS`
/// without NUMA.
pub(crate) fn interleave(nodes: &[u32]) -> io::Result<()> {
    let (mask, bits) = mask(nodes);
    // SAFETY: changes where pages come from, never their contents. The kernel reads no more than the mask.
    let failed = unsafe { libc::syscall(libc::SYS_set_mempolicy, WEIGHTED_INTERLEAVE, mask.as_ptr(), bits) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns a mask of nodes and the number of bits to tell the kernel, which reads one less (`get_nodes` in
/// mm/mempolicy.c).
fn mask(nodes: &[u32]) -> (Vec<u64>, usize) {
    let largest = nodes.iter().copied().max().unwrap_or(0) as usize;
    let mut mask = vec![0_u64; largest / BITS + 1];
    nodes.iter().for_each(|&node| mask[node as usize / BITS] |= 1 << (node as usize % BITS));
    let bits = mask.len() * BITS + 1;
    (mask, bits)
}

/// Makes a huge page of each 2 MiB of a process's range that are mapped: `process_madvise(2)` with
/// `MADV_COLLAPSE`. Errors: `EINVAL` before Linux 6.1 or where nothing is mapped, `ENOMEM` and `EAGAIN` where
/// the kernel found no huge page, `EBUSY`, `EPERM`, `ESRCH`.
pub(crate) fn collapse(process: &OwnedFd, range: Range64) -> io::Result<()> {
    let part = libc::iovec { iov_base: range.start as *mut libc::c_void, iov_len: range.length() as usize };
    // SAFETY: the kernel reads one element; the addresses are the other process's and are not dereferenced
    // here. The advice changes how memory is mapped, never its contents.
    let done = unsafe {
        libc::syscall(libc::SYS_process_madvise, process.as_raw_fd(), &raw const part, 1, COLLAPSE, 0)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Calls `madvise(2)`. Does not allocate.
///
/// # Safety
/// Advice that drops contents concerns memory of the caller into which no reference exists.
pub(super) unsafe fn madvise(start: *mut u8, length: usize, advice: libc::c_int) -> io::Result<()> {
    // SAFETY: as the caller guarantees; the kernel checks the range.
    let result = unsafe { libc::madvise(start.cast(), length, advice) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
