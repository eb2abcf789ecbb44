//! A thread's free lists, filled from the arenas and emptied into them.

use std::ffi::c_void;
use std::ptr;

use crate::thread::Guard;
use crate::{classes, jemalloc, page_map, regions};

/// Free blocks of a class and region, linked through their first words. All zeros is a list without room.
#[repr(C)]
pub(crate) struct FreeList {
    head: *mut Block,
    /// Blocks that it accepts before some are given back.
    room: u16,
    /// Capacity in blocks; 0 until first use.
    limit: u16,
    batch: u16,
}

#[repr(C)]
struct Block {
    next: *mut Self,
}

impl FreeList {
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> *mut c_void {
        let block = self.head;
        if !block.is_null() {
            // SAFETY: the head is a free block that only this list knows, and `push` wrote its link.
            self.head = unsafe { (*block).next };
            self.room += 1;
        }
        block.cast()
    }

    /// Returns false if there is no room.
    ///
    /// # Safety
    /// The block is free, and of this list's class and region.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, block: *mut c_void) -> bool {
        let Some(room) = self.room.checked_sub(1) else { return false };
        self.room = room;
        let block = block.cast::<Block>();
        // SAFETY: the block is free by the caller's promise, and large enough and aligned for a pointer.
        unsafe { (*block).next = self.head };
        self.head = block;
        true
    }

    fn open(&mut self, limit: u16) {
        if self.limit == 0 {
            (self.limit, self.room) = (limit, limit);
        }
    }

    fn widen(&mut self, most: u16) {
        let more = self.limit.min(most - self.limit);
        self.limit += more;
        self.room += more;
    }

    /// Cuts off all but the `kept` blocks that were added last.
    fn cut(&mut self, kept: u16) -> *mut Block {
        if self.limit - self.room <= kept {
            return ptr::null_mut();
        }
        self.room = self.limit - kept;
        let mut link = &raw mut self.head;
        for _ in 0..kept {
            // SAFETY: the list has more than `kept` blocks, so each link followed leads to a block.
            link = unsafe { &raw mut (**link).next };
        }
        // SAFETY: `link` is the head or a link of a block in the list, which this call borrows exclusively.
        unsafe { ptr::replace(link, ptr::null_mut()) }
    }
}

/// Takes a block from a list, or else from the arena with some more for the list; null if memory is out.
pub(crate) fn take(guard: &mut Guard, region: usize, class: usize) -> *mut c_void {
    let number = region * classes::COUNT + class;
    let list = guard.list(number);
    let found = list.pop();
    if !found.is_null() {
        return found;
    }
    let (limit, _) = classes::limits(class);
    list.open(limit);
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
        // SAFETY: the block is new, and of this list's class and region.
        if block.is_null() || !unsafe { guard.list(number).push(block) } {
            break;
        }
    }
    first
}

fn born(block: *mut c_void, number: usize) -> *mut c_void {
    if let Some(offset) = regions::offset(block) {
        // SAFETY: the offset is a live block's.
        unsafe { page_map::set(offset, Some(number)) };
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
        born(jemalloc::allocate(size, regions::get(other).uncached()), other * classes::COUNT + class)
    });
    blocks.find(|block| !block.is_null()).unwrap_or(ptr::null_mut())
}

pub(crate) fn give_back(guard: &mut Guard, region: usize, class: usize, kept: u16) {
    let mut block = guard.list(region * classes::COUNT + class).cut(kept);
    if block.is_null() {
        return;
    }
    let place = guard.place(region);
    while !block.is_null() {
        // SAFETY: the cut-off blocks are free, known only here and of the class; the link is read first.
        block = unsafe {
            let next = (*block).next;
            jemalloc::release_sized(block.cast(), usize::from(classes::SIZES[class]), place);
            next
        };
    }
    guard.note_returned(region);
}

/// Adds a freed block to a list. A full list grows or else gives half of its blocks back.
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
