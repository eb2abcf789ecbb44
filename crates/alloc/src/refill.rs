//! A thread's free lists, filled from the arenas and emptied into them.

use std::ffi::c_void;
use std::ptr;

use crate::thread::Guard;
use crate::{classes, jemalloc, misuse, page_map, regions};

/// Free blocks of a class and region, each with its mark. The list is an array outside of the blocks, which a
/// program that writes to a free block cannot reach. All zeros is a list without room.
#[repr(C)]
pub(crate) struct FreeList {
    blocks: *mut *mut c_void,
    /// 2^64 by the size of its blocks, rounded up.
    reciprocal: u64,
    length: u32,
    /// Capacity of the array.
    limit: u32,
    batch: u32,
}

impl FreeList {
    /// Takes the block added last; null if the list is empty.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> *mut c_void {
        let Some(length) = self.length.checked_sub(1) else { return ptr::null_mut() };
        self.length = length;
        // SAFETY: the array has `limit` places, of which the first `length` hold free blocks that only this
        // list knows.
        unsafe {
            let block = *self.blocks.add(length as usize);
            misuse::unmark(block);
            block
        }
    }

    /// Adds a block that the program frees. Returns false if there is no room, or if no live block starts
    /// there: `position` must be a multiple of the blocks' size (Lemire, Kaser and Kurz, "Faster remainder by
    /// direct computation", 2019).
    ///
    /// # Safety
    /// The block is of this list's class and region and not used afterwards, if one starts there.
    #[inline(always)]
    pub(crate) unsafe fn accept(&mut self, block: *mut c_void, position: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            if self.length >= self.limit
                || (position as u64).wrapping_mul(self.reciprocal) >= self.reciprocal
                || !misuse::mark(block)
            {
                return false;
            }
            self.add(block);
        }
        true
    }

    /// # Safety
    /// The block is free, marked, and of this list's class and region; the list has room.
    #[inline(always)]
    unsafe fn add(&mut self, block: *mut c_void) {
        // SAFETY: the caller's promise; places below `limit` are the list's.
        unsafe { *self.blocks.add(self.length as usize) = block };
        self.length += 1;
    }

    fn has_room(&self) -> bool {
        self.length < self.limit
    }

    /// Moves blocks added first to `given`, as many as fit there and leave `kept`; returns how many.
    fn cut(&mut self, kept: u32, given: &mut [*mut c_void]) -> usize {
        let count = (self.length.saturating_sub(kept) as usize).min(given.len());
        let rest = self.length as usize - count;
        // SAFETY: the first `length` places of the array are set; the part behind those taken moves down.
        unsafe {
            ptr::copy_nonoverlapping(self.blocks, given.as_mut_ptr(), count);
            ptr::copy(self.blocks.add(count), self.blocks, rest);
        }
        self.length = rest as u32;
        count
    }
}

/// Returns the list, with an array if it has been without.
fn open(guard: &mut Guard, number: usize) -> &mut FreeList {
    if guard.list(number).limit == 0 {
        let (_, class) = classes::of_list(number);
        let (limit, _) = classes::limits(class);
        let blocks = guard.places(limit);
        let list = guard.list(number);
        (list.blocks, list.limit) = (blocks, limit);
        list.reciprocal = (u64::MAX / u64::from(classes::SIZES[class])) + 1;
    }
    guard.list(number)
}

/// Gives the list a larger array if it is shorter than the class allows.
fn widen(guard: &mut Guard, number: usize) {
    let (_, class) = classes::of_list(number);
    let (_, most) = classes::limits(class);
    let old = guard.list(number).limit;
    if old < most {
        let limit = classes::wider(old, most);
        let blocks = guard.places(limit);
        let list = guard.list(number);
        // SAFETY: the new array is longer and disjoint from the old.
        unsafe { ptr::copy_nonoverlapping(list.blocks, blocks, list.length as usize) };
        (list.blocks, list.limit) = (blocks, limit);
    }
}

/// Takes a block from a list, or else from the arena with some more for the list; null if memory is out.
pub(crate) fn take(guard: &mut Guard, region: usize, class: usize) -> *mut c_void {
    let number = classes::list(region, class);
    let found = guard.list(number).pop();
    if !found.is_null() {
        return found;
    }
    let list = open(guard, number);
    // A list grows with its use, so that a context with few objects occupies few pages.
    list.batch = (list.batch * 2).clamp(1, list.limit / 2);
    let batch = list.batch;
    let size = usize::from(classes::SIZES[class]);
    let place = guard.place(region);
    let first = born(jemalloc::allocate(size, place), number);
    if first.is_null() {
        return spill(region, class);
    }
    for _ in 1..batch {
        let block = born(jemalloc::allocate(size, place), number);
        if block.is_null() {
            break;
        }
        // SAFETY: the block is new, and of this list's class and region; a batch is at most half of the list.
        unsafe {
            misuse::mark(block);
            guard.list(number).add(block);
        }
    }
    first
}

/// Notes a new block of a list.
fn born(block: *mut c_void, number: usize) -> *mut c_void {
    if let Some(offset) = regions::offset(block) {
        let (_, class) = classes::of_list(number);
        // SAFETY: the offset is a live block's, which only this thread knows.
        unsafe {
            page_map::page(offset).set_list(offset, number, usize::from(classes::SIZES[class]));
            misuse::unmark(block);
        }
    }
    block
}

/// Takes a block of another region when one has used up its addresses.
#[cold]
fn spill(region: usize, class: usize) -> *mut c_void {
    let count = regions::count();
    let others = (1..count).map(|step| (region + step) % count);
    let size = usize::from(classes::SIZES[class]);
    let mut blocks = others.map(|other| {
        born(jemalloc::allocate(size, regions::get(other).uncached()), classes::list(other, class))
    });
    blocks.find(|block| !block.is_null()).unwrap_or(ptr::null_mut())
}

/// Gives all but the `kept` blocks that were added last back to the arena.
pub(crate) fn give_back(guard: &mut Guard, number: usize, kept: u32) {
    const AT_ONCE: usize = 32;
    if guard.list(number).length <= kept {
        return;
    }
    let (region, class) = classes::of_list(number);
    let place = guard.place(region);
    loop {
        let mut given = [ptr::null_mut(); AT_ONCE];
        let count = guard.list(number).cut(kept, &mut given);
        for &block in &given[..count] {
            // SAFETY: the blocks cut off are free, known only here, and of the class.
            unsafe { jemalloc::release_sized(block, usize::from(classes::SIZES[class]), place) };
        }
        if count < AT_ONCE {
            break;
        }
    }
    guard.note_returned(region);
}

/// Adds a freed block to a list. A full list grows or else gives half of its blocks back.
///
/// # Safety
/// The block is free, and of the list of this number.
pub(crate) unsafe fn put(guard: &mut Guard, number: usize, block: *mut c_void) {
    if !open(guard, number).has_room() {
        widen(guard, number);
        let kept = guard.list(number).limit / 2;
        give_back(guard, number, kept);
    }
    // SAFETY: the caller's promise; the list has room for as many again.
    unsafe {
        misuse::mark(block);
        guard.list(number).add(block);
    }
}
