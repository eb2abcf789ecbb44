//! The memory of the engine inside of a program: one range of addresses, apart from the program's heap, so
//! that the engine neither tiers its own memory nor waits for a lock of the program's allocator.
//!
//! Blocks are powers of two, taken from the range in order and returned to a list per size. Children of a
//! fork do not inherit the range, because they have no engine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::spin_loop;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Sizes of the range in the order tried: it is address space only, until it is used.
const SIZES: [usize; 3] = [64 << 30, 4 << 30, 512 << 20];
/// Smallest block, as a power of two.
const SMALLEST: u32 = 4;
const CLASSES: usize = 48;
/// Smallest block that returns its memory to the kernel when it is freed, and is zero afterwards.
const LARGE: usize = 1 << 20;

static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
/// First address never handed out.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// First free block of each size; its first word points to the next.
static FREE: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];
static LOCKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Reserves the range. Returns false if the kernel has no addresses for it.
pub(crate) fn reserve() -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    for size in SIZES {
        // SAFETY: a new mapping, wherever the kernel puts it.
        let start = unsafe { libc::mmap(null_mut(), size, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            continue;
        }
        for advice in [libc::MADV_DONTFORK, libc::MADV_DONTDUMP] {
            // SAFETY: advice on the mapping just made.
            unsafe { libc::madvise(start, size, advice) };
        }
        let start = start as usize;
        NEXT.store(start, Relaxed);
        END.store(start + size, Relaxed);
        START.store(start, Release);
        return true;
    }
    false
}

/// Makes the calling thread allocate from the range from now on.
pub(crate) fn enter() {
    INSIDE.set(true);
}

pub(crate) fn range() -> Range<u64> {
    START.load(Acquire) as u64..END.load(Relaxed) as u64
}

fn holds(memory: *mut u8) -> bool {
    let (start, address) = (START.load(Acquire), memory as usize);
    start != 0 && (start..END.load(Relaxed)).contains(&address)
}

/// Returns the block size for a layout as a power of two; `None` if it is too large.
fn class(layout: Layout) -> Option<usize> {
    let size = layout.size().max(layout.align()).max(1 << SMALLEST).checked_next_power_of_two()?;
    let class = size.trailing_zeros() as usize;
    (class < CLASSES).then_some(class)
}

/// The lists, locked for one thread at a time, which does a few steps and waits for nothing.
struct Lists;

impl Lists {
    fn lock() -> Self {
        while LOCKED.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            spin_loop();
        }
        Self
    }

    /// Returns a block of the class, and whether it is fresh: all zero.
    #[expect(clippy::unused_self, reason = "who has it holds the lock")]
    fn take(&self, class: usize) -> Option<(*mut u8, bool)> {
        let first = FREE[class].load(Relaxed);
        if first != 0 {
            // SAFETY: a free block; its first word is the next one's address.
            let next = unsafe { *(first as *const usize) };
            FREE[class].store(next, Relaxed);
            return Some((first as *mut u8, false));
        }
        let size = 1 << class;
        // The range starts at a page; larger blocks are aligned to their size as well.
        let start = NEXT.load(Relaxed).checked_next_multiple_of(size)?;
        if start.checked_add(size)? > END.load(Relaxed) {
            return None;
        }
        NEXT.store(start + size, Relaxed);
        Some((start as *mut u8, true))
    }

    #[expect(clippy::unused_self, reason = "who has it holds the lock")]
    fn give(&self, block: *mut u8, class: usize) {
        // SAFETY: the block has no owner any more and holds at least a word.
        unsafe { *block.cast::<usize>() = FREE[class].load(Relaxed) };
        FREE[class].store(block as usize, Relaxed);
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        LOCKED.store(false, Release);
    }
}

fn allocate(layout: Layout, zeroed: bool) -> Option<*mut u8> {
    if !INSIDE.get() {
        return None;
    }
    let class = class(layout)?;
    let (block, fresh) = Lists::lock().take(class)?;
    if zeroed && !fresh {
        let dirty = if 1 << class >= LARGE { size_of::<usize>() } else { layout.size() };
        // SAFETY: the block is at least as long as either.
        unsafe { block.write_bytes(0, dirty) };
    }
    Some(block)
}

/// The C library's allocator, except for the engine's thread.
pub(crate) struct Arena;

// SAFETY: a block is at least as large and as aligned as its layout, belongs to one owner until it is freed,
// and is told from the C library's memory by its address. Nothing here unwinds.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout.
        allocate(layout, false).unwrap_or_else(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout.
        allocate(layout, true).unwrap_or_else(|| unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        match class(layout) {
            Some(class) if holds(memory) => {
                if 1 << class >= LARGE {
                    // SAFETY: whole pages of a block without an owner.
                    unsafe { libc::madvise(memory.cast(), 1 << class, libc::MADV_DONTNEED) };
                }
                Lists::lock().give(memory, class);
            }
            // SAFETY: the C library's memory.
            _ => unsafe { System.dealloc(memory, layout) },
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !holds(memory) {
            // SAFETY: the C library's memory.
            return unsafe { System.realloc(memory, layout, size) };
        }
        // SAFETY: the caller keeps `size`, rounded up to the alignment, within `isize`.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if class(wanted) == class(layout) {
            return memory;
        }
        // SAFETY: both are valid for the smaller of the two sizes, and different.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                new.copy_from_nonoverlapping(memory, layout.size().min(size));
                self.dealloc(memory, layout);
            }
            new
        }
    }
}
