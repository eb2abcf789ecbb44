//! Defines a thread's free lists and how they are filled from the arenas and emptied into them.

use std::ffi::c_void;
use std::ptr;

use crate::thread::Guard;
use crate::{classes, jemalloc, page_map, regions};

/// Free blocks of a class and region, linked through their first words. All zeros, it is empty and takes nothing.
#[repr(C)]
pub(crate) struct FreeList {
    head: *mut Block,
    /// How many more it takes before some are given back.
    room: u16,
    /// How many it takes in all; 0 until it is used.
    limit: u16,
    /// How many were fetched the last time.
    batch: u16,
}

#[repr(C)]
struct Block {
    next: *mut Self,
}

impl FreeList {
    /// Takes a block; null if it is empty.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> *mut c_void {
        let block = self.head;
        if !block.is_null() {
            // SAFETY: a free block of this thread.
            self.head = unsafe { (*block).next };
            self.room += 1;
        }
        block.cast()
    }

    /// Takes a block in; false if there is no room.
    ///
    /// # Safety
    /// The block is free, and of this list's class and region.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, block: *mut c_void) -> bool {
        let Some(room) = self.room.checked_sub(1) else { return false };
        self.room = room;
        let block = block.cast::<Block>();
        // SAFETY: a free block, and none is smaller than a pointer.
        unsafe { (*block).next = self.head };
        self.head = block;
        true
    }

    /// Makes it ready for use, if it is not.
    fn open(&mut self, limit: u16) {
        if self.limit == 0 {
            (self.limit, self.room) = (limit, limit);
        }
    }

    /// Lets it take twice as many, up to `most`.
    fn widen(&mut self, most: u16) {
        let more = self.limit.min(most - self.limit);
        self.limit += more;
        self.room += more;
    }

    /// Cuts off all but the `kept` blocks that were last taken in.
    fn cut(&mut self, kept: u16) -> *mut Block {
        if self.limit - self.room <= kept {
            return ptr::null_mut();
        }
        self.room = self.limit - kept;
        let mut link = &raw mut self.head;
        for _ in 0..kept {
            // SAFETY: the list is longer than `kept`.
            link = unsafe { &raw mut (**link).next };
        }
        // SAFETY: a link of the list.
        unsafe { ptr::replace(link, ptr::null_mut()) }
    }
}

/// Takes a block of a class and region: from the list, or else from the arena, with some more for the list. Null if
/// there is no memory.
pub(crate) fn take(guard: &mut Guard, region: usize, class: usize) -> *mut c_void {
    let number = region * classes::COUNT + class;
    let list = guard.list(number);
    let found = list.pop();
    if !found.is_null() {
        return found;
    }
    let (limit, _) = classes::limits(class);
    list.open(limit);
    // A list grows as it is used, so that a context with few objects holds few pages.
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
        // SAFETY: a new block of this class and region.
        if block.is_null() || !unsafe { guard.list(number).push(block) } {
            break;
        }
    }
    first
}

/// Enters a new block in the page map.
fn born(block: *mut c_void, number: usize) -> *mut c_void {
    if let Some(offset) = regions::offset(block) {
        // SAFETY: a live block.
        unsafe { page_map::set(offset, Some(number)) };
    }
    block
}

/// Takes a block of another region, where one has used up its addresses.
#[cold]
fn spill(region: usize, class: usize) -> *mut c_void {
    let count = regions::count();
    let others = (1..count).map(|step| (region + step) % count);
    let mut blocks = others.map(|other| {
        let size = usize::from(classes::SIZES[class]);
        born(jemalloc::allocate(size, regions::get(other).uncached()), other * classes::COUNT + class)
    });
    blocks.find(|block| !block.is_null()).unwrap_or(ptr::null_mut())
}

/// Gives all but the `kept` latest blocks of a list back to the arena.
pub(crate) fn give_back(guard: &mut Guard, region: usize, class: usize, kept: u16) {
    let mut block = guard.list(region * classes::COUNT + class).cut(kept);
    if block.is_null() {
        return;
    }
    let place = guard.place(region);
    while !block.is_null() {
        // SAFETY: blocks of the list, which nothing uses; the link is read before the block goes.
        block = unsafe {
            let next = (*block).next;
            jemalloc::release_sized(block.cast(), usize::from(classes::SIZES[class]), place);
            next
        };
    }
    guard.note_returned(region);
}

/// Takes a freed block in. A list that is full takes more from now on, or else gives half of its blocks back.
///
/// # Safety
/// The block is free, and of the list of this number.
pub(crate) unsafe fn put(guard: &mut Guard, number: usize, block: *mut c_void) {
    let (region, class) = (number / classes::COUNT, number % classes::COUNT);
    let (limit, most) = classes::limits(class);
    let list = guard.list(number);
    list.open(limit);
    // SAFETY: the caller's promise.
    if unsafe { list.push(block) } {
        return;
    }
    list.widen(most);
    let kept = list.limit / 2;
    give_back(guard, region, class, kept);
    // SAFETY: the caller's promise.
    unsafe { guard.list(number).push(block) };
}
