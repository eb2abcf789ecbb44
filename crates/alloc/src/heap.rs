//! The allocator's operations, under any name that a program calls them by.

use std::ffi::c_void;
use std::ptr;

use crate::context::memo::Known;
use crate::context::{Registers, walk};
use crate::jemalloc::Place;
use crate::profile::Profile;
use crate::thread::{Access, Guard, enter};
use crate::{
    classes, deferred, early, jemalloc, library, misuse, options, page_map, placing, profile, refill,
    regions, sites, thread, tls,
};

const QUANTUM: usize = classes::QUANTUM;

/// Allocates at least `size` bytes in the calling context's region; null and `errno` if memory is out.
///
/// # Safety
/// `registers` are those of a call that has not returned. This holds for all functions here that take them.
#[inline(always)]
pub(crate) unsafe fn allocate(size: usize, registers: Registers) -> *mut c_void {
    // SAFETY: the caller's promise about `registers`.
    unsafe { allocate_in_class(size, QUANTUM, registers) }
}

/// Allocates as [`allocate`] does, at a multiple of `alignment`, at which blocks of the class of `size` lie.
#[inline(always)]
unsafe fn allocate_in_class(size: usize, alignment: usize, registers: Registers) -> *mut c_void {
    let state = tls::get();
    if state as usize > tls::ENDED as usize {
        // Nothing else uses the state until this returns: other threads have their own, and POSIX lets no
        // handler that interrupts this call allocate (signal-safety(7)).
        // SAFETY: the state is this thread's alone. Entries of the memo name lists that exist, and `size` is
        // at most `fast_limit`, which is at most the largest class.
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
    // SAFETY: the caller's promise about `registers`.
    unsafe { allocate_slowly(size, registers, alignment, false) }
}

#[inline(always)]
pub(crate) unsafe fn allocate_zeroed(size: usize, registers: Registers) -> *mut c_void {
    if size > classes::LARGEST {
        // SAFETY: the caller's promise about `registers`.
        return unsafe { allocate_slowly(size, registers, QUANTUM, true) };
    }
    // SAFETY: the caller's promise about `registers`; the block has at least `size` bytes.
    unsafe {
        let block = allocate(size, registers);
        if !block.is_null() {
            ptr::write_bytes(block.cast::<u8>(), 0, size);
        }
        block
    }
}

/// Allocates a block at a multiple of `alignment`, a power of two, as [`allocate`] does.
pub(crate) unsafe fn allocate_aligned(size: usize, alignment: usize, registers: Registers) -> *mut c_void {
    // A class whose blocks are aligned anyway serves the call as any other.
    match classes::aligned(size, alignment) {
        // SAFETY: the caller's promise about `registers`.
        Some(class) => unsafe { allocate_in_class(usize::from(classes::SIZES[class]), alignment, registers) },
        // SAFETY: the caller's promise about `registers`.
        None => unsafe { allocate_slowly(size, registers, alignment, false) },
    }
}

/// Serves calls that the fast path does not. With C's calling convention it cannot unwind, so the fast path
/// ends in a jump and needs no frame.
#[cold]
#[inline(never)]
unsafe extern "C" fn allocate_slowly(
    size: usize,
    registers: Registers,
    alignment: usize,
    zeroed: bool,
) -> *mut c_void {
    let block = match enter() {
        Access::Ready(mut guard) => {
            deferred::release_all(&mut guard);
            // SAFETY: the caller's promise about `registers`.
            let known = unsafe { context(&mut guard, size, registers) };
            let (region, _) = classes::of_list(known.lists as usize);
            let block = allocate_in(&mut guard, region, size, alignment, zeroed);
            if let Some(profile) = profile::get() {
                note(profile, &mut guard, known.number, block, size);
            }
            block
        }
        Access::Ending(_outside) => large(regions::get(0).uncached(), size, alignment, zeroed),
        Access::Nested => early::allocate(size, alignment),
        Access::Library => library::allocate(size, alignment, zeroed),
    };
    or_errno(block)
}

pub(crate) fn or_errno(block: *mut c_void) -> *mut c_void {
    if block.is_null() {
        // SAFETY: the address of this thread's `errno` is valid for the thread's life.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
    }
    block
}

/// # Safety
/// As for [`allocate`].
unsafe fn context(guard: &mut Guard, size: usize, registers: Registers) -> Known {
    let state = guard.state();
    // SAFETY: the caller's promise about `registers`; the stack ends at `top`, or the program made its own.
    unsafe {
        if let Some(known) = state.memo.find(registers.stack, state.top) {
            return known;
        }
        let chain = walk::walk(&mut state.rules, registers, options::depth(), state.top);
        let (region, kept) = match sites::are_on() {
            true => sites::region(&chain, size),
            false => (placing::region(chain.hash), true),
        };
        let number = profile::get().map_or(UNKNOWN, |profile| {
            profile.context(&chain, region, &mut thread::ENTERING.lock()).unwrap_or(UNKNOWN)
        });
        let known = Known { lists: classes::list(region, 0) as u32, number };
        if kept {
            state.memo.insert(registers.stack, chain.parts(), known);
        }
        known
    }
}

const UNKNOWN: u32 = u32::MAX;

#[cold]
fn note(profile: Profile, guard: &mut Guard, number: u32, block: *mut c_void, size: usize) {
    if number == UNKNOWN || block.is_null() {
        return;
    }
    let calls = profile.count(number, size);
    if let Some(weight) = guard.state().sampler.take(size, options::sample_bytes()) {
        profile.sample(block, number, size, weight);
    }
    // Often enough for a reader of the running program; the last refresh is at exit.
    if calls.is_multiple_of(65_536) {
        profile.refresh();
    }
}

fn allocate_in(guard: &mut Guard, region: usize, size: usize, alignment: usize, zeroed: bool) -> *mut c_void {
    // Small blocks at larger multiples are of a class that lies there: `allocate_aligned` asks for its size.
    if size <= classes::LARGEST && alignment <= classes::LARGEST && profile::get().is_none() {
        return refill::take(guard, region, classes::of(size));
    }
    let block = large(guard.place(region), size, alignment, zeroed);
    if !block.is_null() {
        return block;
    }
    // A region that has used up its addresses overflows into the others.
    let others = (0..regions::count()).filter(|&other| other != region).map(regions::get);
    let made = others.filter(|region| region.is_made());
    let mut blocks = made.map(|region| large(region.uncached(), size, alignment, zeroed));
    blocks.find(|block| !block.is_null()).unwrap_or(ptr::null_mut())
}

/// Allocates a block straight from an arena, bypassing the free lists.
fn large(place: Place, size: usize, alignment: usize, zeroed: bool) -> *mut c_void {
    let place = if zeroed { place.zeroed() } else { place };
    let place = if alignment > QUANTUM { place.aligned(alignment) } else { place };
    let block = jemalloc::allocate(size.max(1), place);
    if let Some(offset) = regions::offset(block) {
        // SAFETY: a live block that only this thread knows.
        unsafe {
            let bytes = jemalloc::capacity(block);
            if bytes <= classes::LARGEST {
                let list = classes::list(regions::index(offset), classes::of(bytes));
                page_map::page(offset).set_list(offset, list, bytes);
                misuse::unmark(block);
            } else {
                page_map::set_large(offset, bytes);
            }
        }
    }
    block
}

/// # Safety
/// `block` is null or a live block of these functions or the C library, and nothing uses it afterwards. If it
/// is another address in the regions that have been used, or a free block, the program is aborted.
#[inline(always)]
pub(crate) unsafe fn release(block: *mut c_void) {
    if let Some(offset) = regions::offset(block) {
        let state = tls::get();
        if state as usize > tls::ENDED as usize {
            // SAFETY: the map has an entry for the block, and its lists exist; the state is this thread's.
            // The block is free from here on, and of the list's class and region.
            unsafe {
                let (list, position) = page_map::page(offset).list(offset);
                if (*thread::list(state, list)).accept(block, position) {
                    return;
                }
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { release_slowly(block) }
}

/// Serves calls that the fast path does not, as [`allocate_slowly`] does.
#[cold]
#[inline(never)]
unsafe extern "C" fn release_slowly(block: *mut c_void) {
    if block.is_null() || early::size(block).is_some() {
        return;
    }
    let Some(offset) = regions::offset(block) else {
        // SAFETY: a live block that lies neither here nor in the early range is the C library's.
        return unsafe { library::release(block) };
    };
    // SAFETY: the caller's promise.
    unsafe {
        check(block, offset);
        match enter() {
            Access::Ready(mut guard) => {
                deferred::release_all(&mut guard);
                release_to(&mut guard, block, offset);
            }
            Access::Ending(_outside) => {
                if let Some(profile) = profile::get() {
                    profile.forget(block);
                }
                give(block, offset, regions::get(regions::index(offset)).uncached());
            }
            Access::Nested => deferred::put(block),
            Access::Library => {}
        }
    }
}

/// Returns the list of a live block, or `None` if it is larger than the classes. Ends the program if no live
/// block starts there.
///
/// # Safety
/// The page at `offset` has been used by a block.
unsafe fn check(block: *mut c_void, offset: usize) -> Option<usize> {
    // SAFETY: the caller's promise; a block of a class starts where the position says so.
    unsafe {
        let page = page_map::page(offset);
        let (list, position) = page.list(offset);
        if list == page_map::NO_LIST {
            if !page.is_large(offset) {
                misuse::end(block, page.was_large(offset));
            }
            return None;
        }
        if !position.is_multiple_of(classes::size_of_list(list)) {
            misuse::end(block, false);
        }
        if misuse::is_marked(block) {
            misuse::end(block, true);
        }
        Some(list)
    }
}

/// Gives a block back to its arena.
///
/// # Safety
/// As for [`release`].
unsafe fn give(block: *mut c_void, offset: usize, place: Place) {
    // SAFETY: the caller's promise.
    unsafe {
        let page = page_map::page(offset);
        if page.list(offset).0 != page_map::NO_LIST {
            misuse::mark(block);
        } else if !page.end_large(offset) {
            // Another thread has freed it at the same time.
            misuse::end(block, true);
        }
        jemalloc::release(block, place);
    }
}

/// # Safety
/// As for [`release`].
pub(crate) unsafe fn release_to(guard: &mut Guard, block: *mut c_void, offset: usize) {
    let region = regions::index(offset);
    // SAFETY: the caller's promise.
    unsafe {
        let (list, _) = page_map::page(offset).list(offset);
        match profile::get() {
            None if list != page_map::NO_LIST => return refill::put(guard, list, block),
            None => {}
            Some(profile) => profile.forget(block),
        }
        give(block, offset, guard.place(region));
    }
    guard.note_returned(region);
}

/// Returns the bytes that a block can hold, 0 for null.
///
/// # Safety
/// `block` is null or a live block of these functions or the C library.
pub(crate) unsafe fn capacity(block: *mut c_void) -> usize {
    let Some(offset) = regions::offset(block) else {
        // SAFETY: the caller's promise.
        return early::size(block).unwrap_or_else(|| unsafe { library::capacity(block) });
    };
    // SAFETY: the caller's promise.
    match unsafe { page_map::page(offset) }.list(offset) {
        // SAFETY: the caller's promise.
        (page_map::NO_LIST, _) => unsafe { jemalloc::capacity(block) },
        (list, _) => classes::size_of_list(list),
    }
}

/// Resizes a block, which stays in the region of the context that made it. Null leaves it unchanged.
///
/// # Safety
/// As for [`release`], unless null is returned.
pub(crate) unsafe fn resize(block: *mut c_void, size: usize, registers: Registers) -> *mut c_void {
    let Some(offset) = regions::offset(block) else {
        // SAFETY: the caller's promise.
        return unsafe { resize_foreign(block, size, registers) };
    };
    // SAFETY: the caller's promise.
    let old = unsafe {
        match check(block, offset) {
            Some(list) => classes::size_of_list(list),
            None => jemalloc::capacity(block),
        }
    };
    if size <= classes::LARGEST && old == usize::from(classes::SIZES[classes::of(size)]) {
        return block;
    }
    let region = regions::index(offset);
    // SAFETY: the caller's promise; the old and the new block both hold the smaller of the two sizes.
    unsafe {
        if profile::get().is_some() || (sites::are_on() && region == sites::SHARED) {
            // Where a profile is written, or sites are told apart, the block goes to the calling context.
            return replace(block, allocate_slowly(size, registers, QUANTUM, false), old.min(size));
        }
        if size > classes::LARGEST && old > classes::LARGEST {
            return resize_large(block, size, offset, old);
        }
        replace(block, or_errno(allocate_for(region, size)), old.min(size))
    }
}

/// Copies `bytes` from a block to a new one and releases the old one, unless `new` is null. Returns `new`.
///
/// # Safety
/// As for [`release`] unless `new` is null; both blocks hold `bytes` and do not overlap.
pub(crate) unsafe fn replace(block: *mut c_void, new: *mut c_void, bytes: usize) -> *mut c_void {
    if !new.is_null() {
        // SAFETY: the caller's promise.
        unsafe {
            ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), bytes);
            release(block);
        }
    }
    new
}

/// Allocates a block in a region without regard to the caller.
fn allocate_for(region: usize, size: usize) -> *mut c_void {
    match enter() {
        Access::Ready(mut guard) => allocate_in(&mut guard, region, size, QUANTUM, false),
        Access::Ending(_outside) => large(regions::get(region).uncached(), size, QUANTUM, false),
        Access::Nested => early::allocate(size, QUANTUM),
        Access::Library => ptr::null_mut(),
    }
}

/// Resizes a block of `old` bytes that is too large for the lists and stays so.
///
/// # Safety
/// As for [`resize`].
unsafe fn resize_large(block: *mut c_void, size: usize, offset: usize, old: usize) -> *mut c_void {
    let region = regions::index(offset);
    let mut access = enter();
    let place = match &mut access {
        Access::Ready(guard) => guard.place(region),
        _ => regions::get(region).uncached(),
    };
    // SAFETY: the caller's promise. Where the block moves, its old pages may be another thread's at once.
    unsafe {
        let page = page_map::page(offset);
        if !page.end_large(offset) {
            misuse::end(block, true);
        }
        let new = jemalloc::resize(block, size, place);
        match regions::offset(new) {
            Some(moved) if moved != offset => page_map::set_large(moved, size),
            found => {
                page.set_large(offset);
                if found.is_some() && size > old {
                    page_map::clear(offset + old, size - old);
                }
            }
        }
        or_errno(new)
    }
}

/// Resizes null, an early block, or a block of the C library.
///
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
        replace(block, allocate(size, registers), old.min(size))
    }
}
