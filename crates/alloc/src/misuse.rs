//! Ends a program that frees what is not a live block, and marks free blocks, by which this is seen.
//!
//! A free block of a class holds a mark in its first word. The mark depends on the block's address and on a
//! number that differs from run to run, so a program has it in a live block only by copying it from this very
//! block after its release.

use std::ffi::c_void;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::text;

static SECRET: AtomicUsize = AtomicUsize::new(0x5bd1_e995_9e37_79b9);

/// Chooses the number that differs from run to run. Without it marks are still told from usual contents.
pub(crate) fn start() {
    let mut secret = 0_usize;
    let bytes = size_of::<usize>();
    // SAFETY: the variable has this many bytes, of which any are a valid number.
    let got = unsafe { libc::getrandom((&raw mut secret).cast(), bytes, libc::GRND_NONBLOCK) };
    if usize::try_from(got) == Ok(bytes) {
        SECRET.store(secret, Relaxed);
    }
}

#[inline(always)]
fn mark_of(block: *mut c_void) -> usize {
    block as usize ^ SECRET.load(Relaxed)
}

/// Marks a block. Returns false if it has been marked.
///
/// # Safety
/// A block of a class starts there, which is free from here on and known only to this thread, unless it has
/// been marked.
#[inline(always)]
pub(crate) unsafe fn mark(block: *mut c_void) -> bool {
    let (word, mark) = (block.cast::<usize>(), mark_of(block));
    // SAFETY: the caller's promise; a block holds a word, is aligned for it, and stays readable when free.
    unsafe {
        let fresh = *word != mark;
        *word = mark;
        fresh
    }
}

/// # Safety
/// A block of a class starts there, free or not.
pub(crate) unsafe fn is_marked(block: *mut c_void) -> bool {
    // SAFETY: the caller's promise; a block stays readable when free.
    unsafe { *block.cast::<usize>() == mark_of(block) }
}

/// # Safety
/// As for [`mark`].
#[inline(always)]
pub(crate) unsafe fn unmark(block: *mut c_void) {
    // SAFETY: the caller's promise; a block holds a word and is aligned for it.
    unsafe { *block.cast() = 0_usize };
}

/// Ends the program in the way of the C library.
#[cold]
pub(crate) fn end(block: *mut c_void, freed: bool) -> ! {
    let what = if freed { "the block is free already" } else { "no block starts there" };
    text::print(format_args!("free or realloc of {block:p}: {what}; the program is aborted"));
    // SAFETY: the call has no preconditions.
    unsafe { libc::abort() }
}
