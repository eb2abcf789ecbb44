//! The engine's allocator: large arrays lie in huge pages, so that random lookups of pages miss the TLB less.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::ptr::null_mut;

use super::process::outlast_program;

/// Smallest allocation that is a mapping of its own.
const LARGE: usize = 1 << 20;
/// Bytes of a huge page; mappings are multiples.
const HUGE: usize = 2 << 20;
/// Smallest alignment of `mmap(2)`.
const PAGE: usize = 4096;

/// The C library's allocator, except that allocations of 1 MiB and more are mappings of their own with advice
/// for huge pages (`MADV_HUGEPAGE`), which kernels without them ignore.
#[derive(Debug, Default, Clone, Copy)]
pub struct HugePages;

fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

/// Returns the length of a mapping; `None` beyond the address space.
fn length(size: usize) -> Option<usize> {
    size.checked_next_multiple_of(HUGE)
}

fn advise(start: *mut u8, length: usize) {
    // SAFETY: a mapping of this length that is nobody else's. Advice that is refused changes nothing.
    unsafe { libc::madvise(start.cast(), length, libc::MADV_HUGEPAGE) };
}

fn map(size: usize) -> *mut u8 {
    let Some(length) = length(size) else { return null_mut() };
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever the kernel puts it.
    let start = unsafe { libc::mmap(null_mut(), length, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return null_mut();
    }
    advise(start.cast(), length);
    start.cast()
}

// SAFETY: what is large by its layout is a mapping from `map` and is resized and unmapped as one; everything
// else is the C library's. `realloc` across that border copies. Nothing here unwinds.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller's layout.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        match length(layout.size()) {
            // SAFETY: `alloc` gave a mapping of this length for this layout.
            Some(length) if is_large(layout) => unsafe {
                libc::munmap(memory.cast(), length);
            },
            // SAFETY: the C library's memory and its layout.
            _ => unsafe { System.dealloc(memory, layout) },
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps `size`, rounded up to the alignment, within `isize`.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_large(layout), is_large(wanted)) {
            // SAFETY: the C library's memory, layout and size.
            (false, false) => unsafe { System.realloc(memory, layout, size) },
            (true, true) => resize(memory, layout.size(), size),
            // SAFETY: both are valid for the smaller of the two sizes, and different.
            _ => unsafe {
                let new = self.alloc(wanted);
                if !new.is_null() {
                    new.copy_from_nonoverlapping(memory, layout.size().min(size));
                    self.dealloc(memory, layout);
                }
                new
            },
        }
    }
}

/// [`HugePages`] for a tool: where memory is refused, the process ends with one line, without abort and a
/// backtrace. Its status is 2, or that of the program that it has launched, for which it waits.
#[derive(Debug, Default, Clone, Copy)]
pub struct HugePagesOrEnd;

/// Returns `memory`, or ends the process if it is none.
fn or_end(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        let mut line = [0u8; 128];
        let mut rest = &mut line[..];
        // Writes to a slice allocate nothing.
        let _ = writeln!(rest, "isotherm: out of memory: {size} bytes more were refused");
        let unused = rest.len();
        let line = &line[..line.len() - unused];
        // SAFETY: writes bytes of this frame.
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
        let status = outlast_program().unwrap_or(2);
        // SAFETY: ends the process without running anything of it: a lock may be held here.
        unsafe { libc::_exit(status) };
    }
    memory
}

// SAFETY: `HugePages`' memory under the caller's own promises.
unsafe impl GlobalAlloc for HugePagesOrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout.
        or_end(unsafe { HugePages.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout.
        or_end(unsafe { HugePages.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's memory, which is `HugePages`', and its layout.
        unsafe { HugePages.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as for `dealloc`, and the caller's size.
        or_end(unsafe { HugePages.realloc(memory, layout, size) }, size)
    }
}

fn resize(memory: *mut u8, before: usize, after: usize) -> *mut u8 {
    let (Some(before), Some(after)) = (length(before), length(after)) else { return null_mut() };
    if before == after {
        return memory;
    }
    // SAFETY: a mapping from `map` of the length `before`.
    let moved = unsafe { libc::mremap(memory.cast(), before, after, libc::MREMAP_MAYMOVE) };
    if moved == libc::MAP_FAILED { null_mut() } else { moved.cast() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn memory_keeps_what_is_in_it_through_every_size(
            sizes in prop::collection::vec(1usize..3 * HUGE, 1..8),
            log in 0u32..14,
        ) {
            let mut layout = Layout::from_size_align(sizes[0], 1 << log).expect("a layout");
            // SAFETY: every access is within the size of the layout in force, which each call gets.
            unsafe {
                let mut memory = HugePages.alloc_zeroed(layout);
                prop_assert!(!memory.is_null() && memory.addr().is_multiple_of(layout.align()));
                prop_assert_eq!((*memory, *memory.add(layout.size() - 1)), (0, 0));
                *memory = 42;
                for &size in &sizes[1..] {
                    let common = layout.size().min(size) - 1;
                    *memory.add(common) = 42;
                    *memory = 42;
                    memory = HugePages.realloc(memory, layout, size);
                    layout = Layout::from_size_align(size, layout.align()).expect("a layout");
                    prop_assert!(!memory.is_null() && memory.addr().is_multiple_of(layout.align()));
                    prop_assert_eq!((*memory, *memory.add(common)), (42, 42));
                    *memory.add(size - 1) = 7;
                }
                HugePages.dealloc(memory, layout);
            }
        }
    }

    #[test]
    fn what_no_address_space_holds_is_refused() {
        let layout = Layout::from_size_align(isize::MAX as usize - PAGE, 1).expect("a layout");
        // SAFETY: a valid layout; nothing is there to access.
        assert!(unsafe { HugePages.alloc(layout) }.is_null());
    }
}
