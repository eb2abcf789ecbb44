//! The parts of jemalloc that the allocator uses: blocks of an arena, thread caches, statistics.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Write;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use tikv_jemalloc_sys as sys;

use crate::sys::PAGE;

/// Options that jemalloc reads when it starts: one automatic arena, which stays unused; no automatic thread
/// caches; small explicit caches, of which each thread has one per region behind its free lists. Unused pages
/// return to the system sooner than by default, since each of many arenas has its own. The trial of `madvise`
/// is left out, which crashes where its `mmap` fails.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub(crate) static OPTIONS: Text = Text(
    c"narenas:1,dirty_decay_ms:100,tcache_max:4096,tcache_nslots_small_max:8,tcache_nslots_small_min:2,\
      trust_madvise:true"
        .as_ptr(),
);

#[repr(transparent)]
pub(crate) struct Text(*const c_char);

// SAFETY: the text is constant and static.
unsafe impl Sync for Text {}

/// Source or destination of a block: an arena or a thread cache.
#[derive(Clone, Copy)]
pub(crate) struct Place(c_int);

impl Place {
    pub(crate) const fn arena(arena: u32) -> Self {
        Self(sys::MALLOCX_ARENA(arena as usize) | sys::MALLOCX_TCACHE_NONE)
    }

    pub(crate) const fn cached(arena: u32, cache: u32) -> Self {
        Self(sys::MALLOCX_ARENA(arena as usize) | sys::MALLOCX_TCACHE(cache as usize))
    }

    pub(crate) const fn zeroed(self) -> Self {
        Self(self.0 | sys::MALLOCX_ZERO)
    }

    pub(crate) const fn aligned(self, alignment: usize) -> Self {
        Self(self.0 | sys::MALLOCX_LG_ALIGN(alignment.trailing_zeros() as usize))
    }
}

/// Allocates at least `size` bytes (at least 1); null if there is no memory.
pub(crate) fn allocate(size: usize, place: Place) -> *mut c_void {
    // SAFETY: the arena and the cache are those that the functions below made.
    unsafe { sys::mallocx(size, place.0) }
}

/// # Safety
/// The block came from [`allocate`], and nothing uses it afterwards.
pub(crate) unsafe fn release(block: *mut c_void, place: Place) {
    // SAFETY: the caller's promise. jemalloc finds the block's own arena whatever the flags say.
    unsafe { sys::dallocx(block, place.0) }
}

/// # Safety
/// As for [`release`], and `size` is at most its usable size and more than the next smaller class.
pub(crate) unsafe fn release_sized(block: *mut c_void, size: usize, place: Place) {
    // SAFETY: the caller's promise.
    unsafe { sys::sdallocx(block, size, place.0) }
}

/// Resizes a block in place or elsewhere in the arena; null leaves it unchanged.
///
/// # Safety
/// As for [`release`], unless null is returned.
pub(crate) unsafe fn resize(block: *mut c_void, size: usize, place: Place) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { sys::rallocx(block, size, place.0) }
}

/// # Safety
/// The block came from [`allocate`] and is live.
pub(crate) unsafe fn capacity(block: *const c_void) -> usize {
    // SAFETY: the caller's promise.
    unsafe { sys::sallocx(block, 0) }
}

/// Returns the bytes that a block for `size` bytes (at least 1) can hold; 0 if there is no such block.
pub(crate) fn usable(size: usize) -> usize {
    // SAFETY: computes a size and allocates nothing.
    unsafe { sys::nallocx(size, 0) }
}

/// Makes an arena whose extents come from `hooks`; jemalloc's own records stay outside of them.
pub(crate) fn create_arena(hooks: *mut sys::extent_hooks_t) -> Option<u32> {
    /// `arena_config_t` of jemalloc 5.3.
    #[repr(C)]
    struct Config {
        hooks: *mut sys::extent_hooks_t,
        metadata_use_hooks: bool,
    }
    let mut config = Config { hooks, metadata_use_hooks: false };
    control(c"experimental.arenas_create_ext", Some(&mut config))
}

pub(crate) fn create_cache() -> Option<u32> {
    control(c"tcache.create", None::<&mut u32>)
}

pub(crate) fn flush_cache(mut cache: u32) {
    // SAFETY: this control takes a `u32` and returns nothing.
    unsafe {
        sys::mallctl(
            c"tcache.flush".as_ptr(),
            ptr::null_mut(),
            ptr::null_mut(),
            (&raw mut cache).cast(),
            size_of::<u32>(),
        )
    };
}

/// Returns an arena's long unused pages to the system, as it does itself when called, but many arenas are
/// called rarely.
pub(crate) fn decay(arena: u32) {
    let mut path = DECAY.load(Relaxed);
    if path == 0 {
        path = decay_path();
        DECAY.store(path, Relaxed);
    }
    let path = [path as usize & 0xffff_ffff, arena as usize, path as usize >> 32];
    // SAFETY: the path is this control's, which takes and returns nothing.
    unsafe {
        sys::mallctlbymib(path.as_ptr(), path.len(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), 0)
    };
}

/// First and last number of `arena.N.decay`; 0 until known.
static DECAY: AtomicU64 = AtomicU64::new(0);

fn decay_path() -> u64 {
    let (mut path, mut length) = ([0_usize; 3], 3);
    // SAFETY: the path has room for the name's three parts.
    unsafe { sys::mallctlnametomib(c"arena.0.decay".as_ptr(), path.as_mut_ptr(), &raw mut length) };
    path[0] as u64 | (path[2] as u64) << 32
}

pub(crate) fn refresh_statistics() {
    control::<u64, u64>(c"epoch", Some(&mut 1));
}

/// Returns the bytes of an arena as of the last [`refresh_statistics`]: of live blocks, those in thread
/// caches included, of pages that hold them, and of pages with memory behind them.
pub(crate) fn statistics(arena: u32) -> [u64; 3] {
    let number = |statistic: &str| {
        let mut name = crate::text::Text::<64>::new();
        let _ = write!(name, "stats.arenas.{arena}.{statistic}\0");
        let name = CStr::from_bytes_with_nul(name.bytes()).unwrap_or_default();
        control::<u64, usize>(name, None).unwrap_or(0) as u64
    };
    let allocated = number("small.allocated") + number("large.allocated");
    [allocated, number("pactive") * PAGE as u64, number("resident")]
}

/// Calls a control, passing `New` in and returning `Old`. The caller knows both types.
fn control<New, Old: Default>(name: &CStr, new: Option<&mut New>) -> Option<Old> {
    let mut old = Old::default();
    let mut bytes = size_of::<Old>();
    let (new, length) = new.map_or((ptr::null_mut(), 0), |new| (ptr::from_mut(new).cast(), size_of::<New>()));
    // SAFETY: both types are those that the manual names for this control, and jemalloc checks the lengths.
    let result = unsafe { sys::mallctl(name.as_ptr(), (&raw mut old).cast(), &raw mut bytes, new, length) };
    (result == 0).then_some(old)
}
