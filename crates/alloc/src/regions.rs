//! Regions: arenas of jemalloc, each in an address range of its own.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

use tikv_jemalloc_sys::extent_hooks_t;

use crate::jemalloc::{self, Place};
use crate::{classes, page_map, sys};

/// Most regions. With [`classes::COUNT`] lists each they fit the page map's entries.
pub(crate) const MAX: usize = 256;
const _: () = assert!(classes::list(MAX, 0) <= u16::MAX as usize);

const ALIGNMENT: usize = 2 << 20;

/// Address range of all regions, one after the other; the range of [`crate::early`] follows.
struct Space {
    start: AtomicUsize,
    bytes: AtomicUsize,
    /// Binary logarithm of a region's size in bytes.
    shift: AtomicU32,
    count: AtomicUsize,
    /// Whether addresses are mapped as they are needed, not reserved.
    unmapped: AtomicBool,
}

static SPACE: Space = Space {
    start: AtomicUsize::new(0),
    bytes: AtomicUsize::new(0),
    shift: AtomicU32::new(0),
    count: AtomicUsize::new(0),
    unmapped: AtomicBool::new(false),
};

static REGIONS: [Region; MAX] = [const { Region::new() }; MAX];

type Hooks = *mut extent_hooks_t;
type Start = *mut c_void;

/// A region. jemalloc knows it by the address of its hooks, which therefore come first.
#[repr(C)]
pub(crate) struct Region {
    hooks: extent_hooks_t,
    start: AtomicUsize,
    /// First address that was never used.
    frontier: AtomicUsize,
    end: AtomicUsize,
    arena: AtomicU32,
}

/// Reserves `count` regions of `bytes` each, a power of two. Returns false if addresses are short.
pub(crate) fn reserve(count: usize, bytes: usize) -> bool {
    let whole = (count + 1) * bytes;
    let Some(start) = sys::reserve(whole, ALIGNMENT) else { return false };
    let start = start.as_ptr() as usize;
    if !page_map::reserve(count * bytes) {
        sys::unmap(start, whole);
        return false;
    }
    begin(start, count, bytes);
    true
}

/// Takes `count` regions of `bytes` each without reserving them, at addresses that programs do not use:
/// QEMU's user mode keeps some bytes for each page of a reservation. Returns false if some are in use.
pub(crate) fn take_unmapped(count: usize, bytes: usize) -> bool {
    /// Far from where the kernel and QEMU place mappings.
    const START: usize = 1 << 44;
    /// Bytes for early blocks.
    const EARLY: usize = 64 << 20;
    if !page_map::reserve(count * bytes) || !sys::map_at(START + count * bytes, EARLY, libc::PROT_NONE) {
        return false;
    }
    SPACE.unmapped.store(true, Relaxed);
    begin(START, count, bytes);
    true
}

fn begin(start: usize, count: usize, bytes: usize) {
    SPACE.shift.store(bytes.trailing_zeros(), Relaxed);
    SPACE.count.store(count, Relaxed);
    for (index, region) in REGIONS[..count].iter().enumerate() {
        region.start.store(start + index * bytes, Relaxed);
        region.frontier.store(start + index * bytes, Relaxed);
        region.end.store(start + (index + 1) * bytes, Relaxed);
    }
    SPACE.start.store(start, Relaxed);
    SPACE.bytes.store(count * bytes, Relaxed);
}

/// Makes a part of a region usable. Returns false if the system refuses.
fn make_usable(start: usize, size: usize) -> bool {
    if SPACE.unmapped.load(Relaxed) {
        return sys::map_at(start, size, libc::PROT_READ | libc::PROT_WRITE);
    }
    sys::commit(start, size)
}

/// Makes the arenas. Returns false if jemalloc refuses.
pub(crate) fn create_arenas() -> bool {
    (0..count()).all(create_arena)
}

/// Makes the arena of a region. Returns false if jemalloc refuses.
pub(crate) fn create_arena(index: usize) -> bool {
    let region = get(index);
    let arena = jemalloc::create_arena((&raw const region.hooks).cast_mut());
    region.arena.store(arena.unwrap_or_default(), Relaxed);
    arena.is_some()
}

pub(crate) fn count() -> usize {
    SPACE.count.load(Relaxed)
}

/// Returns an address's offset from the start of the regions, or `None` if it is in no region.
#[inline(always)]
pub(crate) fn offset(address: *const c_void) -> Option<usize> {
    let offset = (address as usize).wrapping_sub(SPACE.start.load(Relaxed));
    (offset < SPACE.bytes.load(Relaxed)).then_some(offset)
}

pub(crate) fn index(offset: usize) -> usize {
    offset >> SPACE.shift.load(Relaxed)
}

pub(crate) fn behind() -> (usize, usize) {
    let start = SPACE.start.load(Relaxed) + SPACE.bytes.load(Relaxed);
    (start, start + (1 << SPACE.shift.load(Relaxed)))
}

pub(crate) fn get(index: usize) -> &'static Region {
    &REGIONS[index]
}

impl Region {
    const fn new() -> Self {
        let hooks = extent_hooks_t {
            alloc: Some(extend),
            dalloc: None,
            destroy: None,
            commit: None,
            decommit: None,
            purge_lazy: None,
            purge_forced: Some(discard),
            split: Some(split),
            merge: Some(merge),
        };
        Self {
            hooks,
            start: AtomicUsize::new(0),
            frontier: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            arena: AtomicU32::new(0),
        }
    }

    /// Returns whether the region has its arena: 0 is jemalloc's own.
    pub(crate) fn is_made(&self) -> bool {
        self.arena() != 0
    }

    pub(crate) fn arena(&self) -> u32 {
        self.arena.load(Relaxed)
    }

    /// Returns its first address, its end, and the first address that was never used.
    pub(crate) fn range(&self) -> (usize, usize, usize) {
        (self.start.load(Relaxed), self.end.load(Relaxed), self.frontier.load(Relaxed))
    }

    pub(crate) fn uncached(&self) -> Place {
        Place::arena(self.arena())
    }

    /// Takes `size` bytes at a multiple of `alignment`, and at `wanted` unless that is 0.
    fn take(&self, wanted: usize, size: usize, alignment: usize) -> Option<usize> {
        let end = self.end.load(Relaxed);
        let mut frontier = self.frontier.load(Acquire);
        loop {
            let start = frontier.checked_next_multiple_of(alignment)?;
            let next = start.checked_add(size).filter(|&next| next <= end)?;
            if wanted != 0 && wanted != start {
                return None;
            }
            match self.frontier.compare_exchange_weak(frontier, next, AcqRel, Acquire) {
                Ok(_) => break Some(start),
                Err(now) => frontier = now,
            }
        }
    }
}

unsafe extern "C" fn extend(
    hooks: Hooks,
    wanted: Start,
    size: usize,
    alignment: usize,
    zero: *mut bool,
    commit: *mut bool,
    _arena: c_uint,
) -> Start {
    // SAFETY: jemalloc passes the arena's hooks, the first field of a static `repr(C)` region.
    let region = unsafe { &*hooks.cast::<Region>() };
    let Some(start) = region.take(wanted as usize, size, alignment) else { return ptr::null_mut() };
    let offset = start - SPACE.start.load(Relaxed);
    // If this fails, the addresses stay unused.
    if !(make_usable(start, size) && page_map::commit(offset, size)) {
        return ptr::null_mut();
    }
    // SAFETY: jemalloc passes two flags to be written.
    unsafe {
        *zero = true;
        *commit = true;
    }
    start as *mut c_void
}

/// Returns memory to the system; its addresses stay the arena's.
unsafe extern "C" fn discard(
    _: Hooks,
    start: Start,
    _size: usize,
    offset: usize,
    length: usize,
    _: c_uint,
) -> bool {
    let first = start as usize + offset;
    // SAFETY: jemalloc discards pages without live blocks, which `extend` has committed.
    unsafe { page_map::clear(first - SPACE.start.load(Relaxed), length) };
    !sys::discard(first, length)
}

/// Splits an extent, which needs nothing; false means success.
unsafe extern "C" fn split(_: Hooks, _: Start, _: usize, _: usize, _: usize, _: bool, _: c_uint) -> bool {
    false
}

/// Merges two neighbours of a region, which needs nothing; false means success.
unsafe extern "C" fn merge(_: Hooks, _: Start, _: usize, _: Start, _: usize, _: bool, _: c_uint) -> bool {
    false
}
