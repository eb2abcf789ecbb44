//! Defines the system calls that the allocator makes for its own memory.

use std::ptr::{self, NonNull};

/// The size of a page of memory, in bytes.
pub(crate) const PAGE: usize = 4096;

/// Reserves addresses, at a multiple of `alignment` (a power of two, at least a page), that no memory stands behind.
pub(crate) fn reserve(size: usize, alignment: usize) -> Option<NonNull<u8>> {
    let whole = size.checked_add(alignment)?;
    let start = map(whole, libc::PROT_NONE)?.as_ptr() as usize;
    let aligned = start.next_multiple_of(alignment);
    unmap(start, aligned - start);
    unmap(aligned + size, start + whole - aligned - size);
    NonNull::new(aligned as *mut u8)
}

/// Memory of zeros.
pub(crate) fn memory(size: usize) -> Option<NonNull<u8>> {
    map(size, libc::PROT_READ | libc::PROT_WRITE)
}

fn map(size: usize, protection: i32) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let start = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

/// Gives back a part of what [`reserve`] mapped and nobody uses.
fn unmap(start: usize, size: usize) {
    if size > 0 {
        // SAFETY: only [`reserve`] calls it, with the ends of a mapping that it has just made.
        unsafe { libc::munmap(start as *mut _, size) };
    }
}

/// Puts memory behind reserved addresses; false if the system refuses. The range widens to whole pages.
pub(crate) fn commit(start: usize, size: usize) -> bool {
    let (first, end) = (start & !(PAGE - 1), (start + size).next_multiple_of(PAGE));
    // SAFETY: callers name addresses that they have reserved.
    unsafe { libc::mprotect(first as *mut _, end - first, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// Drops the contents of committed memory, which reads as zeros then; false if the system refuses.
pub(crate) fn discard(start: usize, size: usize) -> bool {
    // SAFETY: callers name memory of theirs that holds nothing any more.
    unsafe { libc::madvise(start as *mut _, size, libc::MADV_DONTNEED) == 0 }
}

/// Where the main thread's stack ends; 0 if the loader does not say.
pub(crate) fn main_stack_end() -> usize {
    let end: usize;
    // SAFETY: reads where the loader put the variable's address, and the variable if there is one.
    unsafe {
        let variable: *const usize;
        std::arch::asm!(
            ".weak __libc_stack_end",
            "mov {}, qword ptr [rip + __libc_stack_end@GOTPCREL]",
            out(reg) variable,
            options(nostack, readonly, preserves_flags),
        );
        end = if variable.is_null() { 0 } else { *variable };
    }
    end
}
