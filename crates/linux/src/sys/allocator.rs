//! The engine's allocator: large arrays lie in huge pages, so that random lookups of pages miss the TLB less.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;

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
