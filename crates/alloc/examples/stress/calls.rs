//! The allocator's functions, each called from a place of its own.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::blocks::Generator;

unsafe extern "C" {
    fn valloc(size: usize) -> *mut c_void;
    fn pvalloc(size: usize) -> *mut c_void;
    fn memalign(alignment: usize, size: usize) -> *mut c_void;
    fn malloc_usable_size(block: *mut c_void) -> usize;
}

type New = unsafe extern "C" fn(usize) -> *mut c_void;
type NewAligned = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Delete = unsafe extern "C" fn(*mut c_void);
type Region = unsafe extern "C" fn(*const c_void) -> c_int;

/// C++'s operators and the library's own function, where they exist.
struct Found {
    new: Option<New>,
    new_array: Option<New>,
    new_aligned: Option<NewAligned>,
    delete: Option<Delete>,
    region: Option<Region>,
}

fn found() -> &'static Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| {
        let find = |name: &std::ffi::CStr| {
            // SAFETY: the name ends with 0.
            unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
        };
        // SAFETY: functions of these names have these types, and an optional function is `None` for null.
        unsafe {
            Found {
                new: transmute::<*mut c_void, Option<New>>(find(c"_Znwm")),
                new_array: transmute::<*mut c_void, Option<New>>(find(c"_Znam")),
                new_aligned: transmute::<*mut c_void, Option<NewAligned>>(find(c"_ZnwmSt11align_val_t")),
                delete: transmute::<*mut c_void, Option<Delete>>(find(c"_ZdlPv")),
                region: transmute::<*mut c_void, Option<Region>>(find(c"isotherm_alloc_region")),
            }
        }
    })
}

/// Number of places.
pub(crate) const SITES: u64 = 12;

/// Allocates at least `size` bytes at one of the places. Returns the block, and whether it holds zeros.
#[inline(never)]
pub(crate) fn allocate(site: usize, size: usize, random: &mut Generator) -> (*mut u8, bool) {
    let alignment = 8 << random.below(12);
    // Other allocators do not align blocks of size 0.
    let size = if found().region.is_some() { size } else { size.max(1) };
    // SAFETY: the arguments are as the manuals demand: alignments are powers of two and at least a pointer's.
    let (block, alignment, zeroed) = unsafe {
        match site {
            0 => (libc::malloc(size), 1, false),
            1 => (libc::calloc(size.div_ceil(8), 8), 1, true),
            2 => (libc::realloc(ptr::null_mut(), size), 1, false),
            3 => (libc::reallocarray(ptr::null_mut(), size.div_ceil(4), 4), 1, false),
            4 => (memalign(alignment, size), alignment, false),
            5 => (libc::aligned_alloc(alignment, size.next_multiple_of(alignment)), alignment, false),
            6 => {
                let mut block = ptr::null_mut();
                assert_eq!(libc::posix_memalign(&raw mut block, alignment, size), 0);
                (block, alignment, false)
            }
            7 => (valloc(size), 4096, false),
            // Debian's jemalloc lacks it, and the C library's block would be unknown to jemalloc.
            8 if found().region.is_some() => (pvalloc(size), 4096, false),
            8 => (valloc(size), 4096, false),
            9 => (found().new.map_or_else(|| libc::malloc(size), |new| new(size)), 1, false),
            10 => (found().new_array.map_or_else(|| libc::malloc(size), |new| new(size)), 1, false),
            _ => (
                found().new_aligned.map_or_else(|| memalign(alignment, size), |new| new(size, alignment)),
                alignment,
                false,
            ),
        }
    };
    assert!(!block.is_null(), "{size} bytes by call {site}");
    assert_eq!(block as usize % alignment, 0, "{size} bytes by call {site}");
    assert_eq!(block as usize % if size < 16 { 8 } else { 16 }, 0, "{size} bytes by call {site}");
    check_region(site, block);
    (block.cast(), zeroed)
}

/// Asserts that a block lies in a region; with a context depth of 1, all blocks of a place lie in the first
/// one's region.
fn check_region(site: usize, block: *mut c_void) {
    static REGIONS: [AtomicI32; SITES as usize] = [const { AtomicI32::new(-1) }; SITES as usize];
    let Some(region) = found().region else { return };
    // SAFETY: the function takes any address.
    let here = unsafe { region(block) };
    assert!(here >= 0, "{block:?} by call {site} is in no region");
    static ONE_ADDRESS: OnceLock<bool> = OnceLock::new();
    if !*ONE_ADDRESS
        .get_or_init(|| std::env::var_os("ISOTHERM_ALLOC_DEPTH").is_some_and(|depth| depth == "1"))
    {
        return;
    }
    if let Err(first) = REGIONS[site].compare_exchange(-1, here, Relaxed, Relaxed) {
        assert_eq!(here, first, "{block:?} by call {site} is in another region");
    }
}

/// Resizes a block, which stays in its region.
pub(crate) fn resize(block: *mut u8, size: usize, random: &mut Generator) -> *mut u8 {
    let region = |block: *mut u8| {
        // SAFETY: the function takes any address.
        found().region.map(|region| unsafe { region(block.cast()) })
    };
    let before = region(block);
    // SAFETY: the block is live and not used afterwards.
    let new = unsafe {
        if random.below(2) == 0 {
            libc::realloc(block.cast(), size)
        } else {
            libc::reallocarray(block.cast(), size, 1)
        }
    };
    assert!(!new.is_null(), "{size} bytes by realloc");
    assert_eq!(region(new.cast()), before, "realloc of {block:?} has changed its region");
    new.cast()
}

/// Releases a block, by `free` or `delete`.
pub(crate) fn release(block: *mut u8, size: usize, random: &mut Generator) {
    // SAFETY: the block is live and not used afterwards.
    unsafe {
        assert!(malloc_usable_size(block.cast()) >= size, "{size} bytes at {block:?}");
        match found().delete.filter(|_| random.below(2) == 0) {
            Some(delete) => delete(block.cast()),
            None => libc::free(block.cast()),
        }
    }
}
