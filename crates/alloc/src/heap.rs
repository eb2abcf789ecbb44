//! Defines the allocator's operations, whatever name a program calls them by.

use std::ffi::c_void;
use std::ptr;

use crate::context::memo::Known;
use crate::context::{Registers, walk};
use crate::jemalloc::Place;
use crate::profile::Profile;
use crate::thread::{Access, Guard, enter};
use crate::{
    classes, deferred, early, jemalloc, library, options, page_map, placing, profile, refill, regions,
    thread, tls,
};

/// What every block's address is a multiple of, if it has at least so many bytes.
const QUANTUM: usize = classes::QUANTUM;

/// A block of at least `size` bytes, from the region of the calling context; null, and `errno` set, if there is no memory.
///
/// # Safety
/// `registers` are those of a call that has not returned. So it is for all functions here.
#[inline(always)]
pub(crate) unsafe fn allocate(size: usize, registers: Registers) -> *mut c_void {
    let state = tls::get();
    if state as usize > tls::ENDED as usize {
        // SAFETY: this thread's state, used by nothing else until this returns; entries hold lists that exist.
        unsafe {
            if size <= (*state).fast_limit
                && let Some(known) = (*state).memo.find(registers.stack, (*state).top)
            {
                let list = thread::list(state, known.lists as usize + classes::of_small(size));
                let block = (*list).pop();
                if !block.is_null() {
                    return block;
                }
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { allocate_slowly(size, QUANTUM, registers, false) }
}

/// The same with zeros in it.
#[inline(always)]
pub(crate) unsafe fn allocate_zeroed(size: usize, registers: Registers) -> *mut c_void {
    if size > classes::LARGEST {
        // SAFETY: the caller's promise.
        return unsafe { allocate_slowly(size, QUANTUM, registers, true) };
    }
    // SAFETY: the caller's promise; the block has so many bytes.
    unsafe {
        let block = allocate(size, registers);
        if !block.is_null() {
            ptr::write_bytes(block.cast::<u8>(), 0, size);
        }
        block
    }
}

/// The same at a multiple of `alignment`, a power of two.
pub(crate) unsafe fn allocate_aligned(size: usize, alignment: usize, registers: Registers) -> *mut c_void {
    // A class that is aligned by itself serves it as any other block.
    match classes::aligned(size, alignment) {
        // SAFETY: the caller's promise.
        Some(class) => unsafe { allocate(usize::from(classes::SIZES[class]), registers) },
        // SAFETY: the caller's promise.
        None => unsafe { allocate_slowly(size, alignment, registers, false) },
    }
}

/// What the fast path leaves. With C's calling convention it cannot unwind, so the fast path ends by jumping to it and needs no frame.
#[cold]
#[inline(never)]
unsafe extern "C" fn allocate_slowly(
    size: usize,
    alignment: usize,
    registers: Registers,
    zeroed: bool,
) -> *mut c_void {
    let block = match enter() {
        Access::Ready(mut guard) => {
            deferred::release_all(&mut guard);
            // SAFETY: the caller's promise.
            let known = unsafe { context(&mut guard, registers) };
            let region = known.lists as usize / classes::COUNT;
            let block = allocate_in(&mut guard, region, size, alignment, zeroed);
            if let Some(profile) = profile::get() {
                note(profile, &mut guard, known.number, block, size);
            }
            block
        }
        Access::Ending => large(regions::get(0).uncached(), size, alignment, zeroed),
        Access::Nested => early::allocate(size, alignment),
        Access::Library => library::allocate(size, alignment, zeroed),
    };
    or_errno(block)
}

/// Sets `errno` for a null.
pub(crate) fn or_errno(block: *mut c_void) -> *mut c_void {
    if block.is_null() {
        // SAFETY: this thread's `errno`.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
    }
    block
}

/// The context of a call: remembered, or found by a walk up the stack.
///
/// # Safety
/// As for [`allocate`].
unsafe fn context(guard: &mut Guard, registers: Registers) -> Known {
    let state = guard.state();
    // SAFETY: the caller's promise; the stack reaches to the state's top, or is one that a program made itself.
    unsafe {
        if let Some(known) = state.memo.find(registers.stack, state.top) {
            return known;
        }
        let chain = walk::walk(&mut state.rules, registers, options::depth(), state.top);
        let region = placing::region(chain.hash);
        let number = profile::get().map_or(UNKNOWN, |profile| {
            profile.context(&chain, region, &mut thread::ENTERING.lock()).unwrap_or(UNKNOWN)
        });
        let known = Known { lists: (region * classes::COUNT) as u32, number };
        state.memo.insert(registers.stack, chain.parts(), known);
        known
    }
}

/// The number of a context that the profile has no place for.
const UNKNOWN: u32 = u32::MAX;

/// Tells the profile of a new block.
#[cold]
fn note(profile: Profile, guard: &mut Guard, number: u32, block: *mut c_void, size: usize) {
    if number == UNKNOWN || block.is_null() {
        return;
    }
    let calls = profile.count(number, size);
    if let Some(weight) = guard.state().sampler.take(size, options::sample_bytes()) {
        profile.sample(block, number, size, weight);
    }
    // Often enough for who looks while the program runs; the last time is its exit.
    if calls.is_multiple_of(65_536) {
        profile.refresh();
    }
}

/// A block of a region.
fn allocate_in(guard: &mut Guard, region: usize, size: usize, alignment: usize, zeroed: bool) -> *mut c_void {
    if size <= classes::LARGEST && alignment <= QUANTUM && profile::get().is_none() {
        return refill::take(guard, region, classes::of(size));
    }
    let block = large(guard.place(region), size, alignment, zeroed);
    if !block.is_null() {
        return block;
    }
    // A region that has used up its addresses overflows into others.
    let others = (0..regions::count()).filter(|&other| other != region);
    let mut blocks = others.map(|other| large(regions::get(other).uncached(), size, alignment, zeroed));
    blocks.find(|block| !block.is_null()).unwrap_or(ptr::null_mut())
}

/// A block that no list takes back, straight from an arena.
fn large(place: Place, size: usize, alignment: usize, zeroed: bool) -> *mut c_void {
    let place = if zeroed { place.zeroed() } else { place };
    let place = if alignment > QUANTUM { place.aligned(alignment) } else { place };
    let block = jemalloc::allocate(size.max(1), place);
    if let Some(offset) = regions::offset(block) {
        // SAFETY: a live block.
        let list = if profile::get().is_none() { list_of(block, offset) } else { None };
        // SAFETY: a live block.
        unsafe { page_map::set(offset, list) };
    }
    block
}

/// The list that a block of an arena belongs to by its size. All blocks of its page get the same answer.
fn list_of(block: *mut c_void, offset: usize) -> Option<usize> {
    // SAFETY: a live block.
    let bytes = unsafe { jemalloc::capacity(block) };
    (bytes <= classes::LARGEST).then(|| regions::index(offset) * classes::COUNT + classes::of(bytes))
}

/// Gives a block back.
///
/// # Safety
/// It came from one of these functions, and nothing uses it any more.
#[inline(always)]
pub(crate) unsafe fn release(block: *mut c_void) {
    if let Some(offset) = regions::offset(block) {
        // SAFETY: a live block.
        if let Some(number) = unsafe { page_map::list(offset) } {
            let state = tls::get();
            // SAFETY: this thread's state; the map holds lists that exist.
            if state as usize > tls::ENDED as usize && unsafe { (*thread::list(state, number)).push(block) } {
                return;
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { release_slowly(block) }
}

/// As [`allocate_slowly`].
#[cold]
#[inline(never)]
unsafe extern "C" fn release_slowly(block: *mut c_void) {
    if block.is_null() || early::size(block).is_some() {
        return;
    }
    let Some(offset) = regions::offset(block) else {
        // SAFETY: not from here, so it can only be the C library's.
        return unsafe { library::release(block) };
    };
    match enter() {
        Access::Ready(mut guard) => {
            deferred::release_all(&mut guard);
            // SAFETY: the caller's promise.
            unsafe { release_to(&mut guard, block, offset) };
        }
        // SAFETY: the caller's promise.
        Access::Ending => unsafe {
            if let Some(profile) = profile::get() {
                profile.forget(block);
            }
            jemalloc::release(block, regions::get(regions::index(offset)).uncached());
        },
        // SAFETY: the caller's promise.
        Access::Nested => unsafe { deferred::put(block) },
        Access::Library => {}
    }
}

/// Gives a block of a region back to its list or arena.
///
/// # Safety
/// As for [`release`].
pub(crate) unsafe fn release_to(guard: &mut Guard, block: *mut c_void, offset: usize) {
    if let Some(profile) = profile::get() {
        profile.forget(block);
    }
    // SAFETY: the caller's promise.
    unsafe {
        match page_map::list(offset) {
            Some(number) => refill::put(guard, number, block),
            None => {
                let region = regions::index(offset);
                jemalloc::release(block, guard.place(region));
                guard.note_returned(region);
            }
        }
    }
}

/// The bytes that a block can hold; 0 for null and for blocks that came from elsewhere.
///
/// # Safety
/// A live block, or null.
pub(crate) unsafe fn capacity(block: *mut c_void) -> usize {
    let Some(offset) = regions::offset(block) else {
        // SAFETY: the caller's promise.
        return early::size(block).unwrap_or_else(|| unsafe { library::capacity(block) });
    };
    // SAFETY: the caller's promise.
    match unsafe { page_map::list(offset) } {
        Some(number) => usize::from(classes::SIZES[number % classes::COUNT]),
        // SAFETY: the caller's promise.
        None => unsafe { jemalloc::capacity(block) },
    }
}

/// Makes a block larger or smaller. It stays in its region: it is still the object of the context that made it. Null
/// leaves it as it was.
///
/// # Safety
/// As for [`release`], unless null is returned.
pub(crate) unsafe fn resize(block: *mut c_void, size: usize, registers: Registers) -> *mut c_void {
    let Some(offset) = regions::offset(block) else {
        // SAFETY: the caller's promise.
        return unsafe { resize_foreign(block, size, registers) };
    };
    // SAFETY: the caller's promise.
    let old = unsafe { capacity(block) };
    if size <= classes::LARGEST && old == usize::from(classes::SIZES[classes::of(size)]) {
        return block;
    }
    let region = regions::index(offset);
    // SAFETY: the caller's promise; both blocks hold the bytes that are copied.
    unsafe {
        if profile::get().is_some() {
            return move_block(block, old, size, registers);
        }
        if size > classes::LARGEST && old > classes::LARGEST {
            return resize_large(block, size, region);
        }
        let new = or_errno(allocate_for(region, size));
        if !new.is_null() {
            ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), old.min(size));
            release(block);
        }
        new
    }
}

/// The same where a profile is written: a new block of the calling context.
///
/// # Safety
/// As for [`resize`], and the block has `old` bytes.
#[cold]
unsafe fn move_block(block: *mut c_void, old: usize, size: usize, registers: Registers) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        let new = allocate(size, registers);
        if !new.is_null() {
            ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), old.min(size));
            release(block);
        }
        new
    }
}

/// A block of a region, without regard to the caller.
fn allocate_for(region: usize, size: usize) -> *mut c_void {
    match enter() {
        Access::Ready(mut guard) => allocate_in(&mut guard, region, size, QUANTUM, false),
        Access::Ending => large(regions::get(region).uncached(), size, QUANTUM, false),
        Access::Nested => early::allocate(size, QUANTUM),
        Access::Library => ptr::null_mut(),
    }
}

/// # Safety
/// As for [`resize`], and both sizes are larger than a list's.
unsafe fn resize_large(block: *mut c_void, size: usize, region: usize) -> *mut c_void {
    let place = match enter() {
        Access::Ready(mut guard) => guard.place(region),
        _ => regions::get(region).uncached(),
    };
    // SAFETY: the caller's promise.
    let new = or_errno(unsafe { jemalloc::resize(block, size, place) });
    if let Some(offset) = regions::offset(new) {
        // SAFETY: a live block.
        unsafe { page_map::set(offset, None) };
    }
    new
}

/// # Safety
/// As for [`resize`].
#[cold]
unsafe fn resize_foreign(block: *mut c_void, size: usize, registers: Registers) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        if block.is_null() {
            return allocate(size, registers);
        }
        let Some(old) = early::size(block) else { return library::resize(block, size) };
        let new = allocate(size, registers);
        if !new.is_null() {
            ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), old.min(size));
        }
        new
    }
}
