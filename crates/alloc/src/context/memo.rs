//! A thread's memory of contexts, which recognises a known context without unwinding.
//!
//! An entry holds a context's return addresses and their offsets from the stack pointer. A return address
//! determines its frame's size unless that is variable: if the first one is the same, the second must lie at
//! the same offset, and so on. If all match, unwinding would find this context again.
//!
//! Reading stops at the first address that differs, so every word read is part of a frame. A function with a
//! frame of variable size (`alloca`) may have had a larger frame when it was remembered; therefore nothing
//! above the stack's end is read.

use super::DEPTH;

/// Sets of two entries. A context has an entry for each stack depth at which it occurs.
const SETS: usize = 256;

/// A known context. A context shorter than [`DEPTH`] repeats its first address in the remaining places.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Entry {
    /// Words from the stack pointer to each return address but the first, packed by four for few loads.
    offsets: [u64; (DEPTH - 1).div_ceil(4)],
    addresses: [usize; DEPTH],
    /// Bytes from the stack pointer to the end of the last return address.
    reach: usize,
    known: Known,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    /// Number of the region's first free list.
    pub(crate) lists: u32,
    pub(crate) number: u32,
}

/// Memory of one thread; all zeros is the valid empty memory.
#[repr(C)]
pub(crate) struct Memo {
    sets: [[Entry; 2]; SETS],
}

/// Returns the set of a context, chosen by its first return address and the stack's depth.
#[inline(always)]
fn set(address: usize, stack: *const usize) -> usize {
    address.wrapping_add(stack as usize >> 4) % SETS
}

impl Entry {
    /// # Safety
    /// As for [`Memo::find`].
    #[inline(always)]
    unsafe fn matches(&self, stack: *const usize, top: usize) -> bool {
        let [first, others @ ..] = &self.addresses;
        // SAFETY: `stack` points to the return address.
        if top.wrapping_sub(stack as usize) < self.reach || unsafe { *stack } != *first {
            return false;
        }
        for (index, &address) in others.iter().enumerate() {
            let words = self.offsets[index / 4] >> (index % 4 * 16) & 0xffff;
            // SAFETY: all earlier addresses matched, so the frames up to here have the entry's sizes (see the
            // module's text) and the word lies on the stack, below `top` as checked.
            if unsafe { *stack.add(words as usize) } != address {
                return false;
            }
        }
        true
    }
}

impl Memo {
    /// # Safety
    /// `stack` points to the return address of an unfinished call, on a stack that ends at `top` or lies
    /// elsewhere.
    #[inline(always)]
    pub(crate) unsafe fn find(&self, stack: *const usize, top: usize) -> Option<Known> {
        // SAFETY: `stack` points to the return address.
        let set = &self.sets[set(unsafe { *stack }, stack)];
        for entry in set {
            // SAFETY: the caller's promise is that of `matches`.
            if unsafe { entry.matches(stack, top) } {
                return Some(entry.known);
            }
        }
        None
    }

    /// Remembers a context in place of its set's older one, unless it reaches more than 512 KiB up the stack.
    ///
    /// # Safety
    /// As for [`Memo::find`].
    pub(crate) unsafe fn insert(
        &mut self,
        stack: *const usize,
        (offsets, addresses): (&[u32], &[usize]),
        known: Known,
    ) {
        // SAFETY: `stack` points to the return address.
        let first = unsafe { *stack };
        let mut packed = [0; (DEPTH - 1).div_ceil(4)];
        for (index, &offset) in offsets.iter().skip(1).enumerate() {
            let Ok(words) = u16::try_from(offset / 8) else { return };
            packed[index / 4] |= u64::from(words) << (index % 4 * 16);
        }
        let reach = offsets.last().map_or(0, |&last| last as usize + size_of::<usize>());
        let mut entry = Entry { offsets: packed, addresses: [first; DEPTH], reach, known };
        entry.addresses[..addresses.len()].copy_from_slice(addresses);
        let set = &mut self.sets[set(first, stack)];
        set[1] = set[0];
        set[0] = entry;
    }

    /// Forgets all contexts: a library was unloaded, and another may lie at its addresses.
    pub(crate) fn clear(&mut self) {
        // SAFETY: the reference is exclusive, and all zeros are a valid `Memo`.
        unsafe { std::ptr::write_bytes(self, 0, 1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memo() -> Box<Memo> {
        // SAFETY: all zeros are a valid `Memo`.
        unsafe { Box::<Memo>::new_zeroed().assume_init() }
    }

    /// Returns a stack with return addresses 101, 102... at these words.
    fn stack(words: &[usize]) -> Vec<usize> {
        let mut stack = vec![0; 64];
        for (index, &word) in words.iter().enumerate() {
            stack[word] = 101 + index;
        }
        stack
    }

    /// Looks up the call whose stack is `frames`.
    fn find(memo: &Memo, frames: &[usize]) -> Option<Known> {
        // SAFETY: the first word is in the slice, and `top` is the slice's end.
        unsafe { memo.find(frames.as_ptr(), frames.as_ptr_range().end as usize) }
    }

    #[test]
    fn a_context_is_known_by_all_its_addresses() {
        let (mut memo, mut frames) = (memo(), stack(&[0, 3, 9]));
        let known = Known { lists: 7, number: 2 };
        // SAFETY: the stack pointer is the start of a slice that holds every word read.
        unsafe {
            assert_eq!(find(&memo, &frames), None);
            memo.insert(frames.as_ptr(), (&[0, 24, 72], &[101, 102, 103]), known);
            assert_eq!(find(&memo, &frames), Some(known));
            for word in [0, 3, 9] {
                frames[word] += 1;
                assert_eq!(find(&memo, &frames), None, "word {word} differs");
                frames[word] -= 1;
            }
            assert_eq!(find(&memo, &frames[..10]), Some(known), "the last word is the tenth");
            assert_eq!(find(&memo, &frames[..9]), None, "nothing behind the stack's end is read");
            memo.clear();
            assert_eq!(find(&memo, &frames), None);
        }
    }

    #[test]
    fn two_contexts_of_one_place_are_both_known() {
        let (mut memo, mut frames) = (memo(), stack(&[0, 3]));
        let (first, second) = (Known { lists: 1, number: 1 }, Known { lists: 2, number: 2 });
        // SAFETY: the stack pointer is the start of a slice that holds every word read.
        unsafe {
            memo.insert(frames.as_ptr(), (&[0, 24], &[101, 102]), first);
            frames[3] = 200;
            memo.insert(frames.as_ptr(), (&[0, 24], &[101, 200]), second);
            assert_eq!(find(&memo, &frames), Some(second));
            frames[3] = 102;
            assert_eq!(find(&memo, &frames), Some(first));
        }
    }

    #[test]
    fn a_context_too_far_up_the_stack_is_not_remembered_at_all() {
        const MAX: usize = 0xffff;
        let (mut memo, known) = (memo(), Known { lists: 7, number: 2 });
        let mut frames = vec![0_usize; MAX + 2];
        (frames[0], frames[MAX], frames[MAX + 1]) = (101, 102, 102);
        // SAFETY: the stack pointer is the start of a slice that holds every word read.
        unsafe {
            memo.insert(frames.as_ptr(), (&[0, 8 * (MAX as u32 + 1)], &[101, 102]), known);
            assert_eq!(find(&memo, &frames), None);
            memo.insert(frames.as_ptr(), (&[0, 8 * MAX as u32], &[101, 102]), known);
            assert_eq!(find(&memo, &frames), Some(known));
            frames[MAX] += 1;
            assert_eq!(find(&memo, &frames), None);
        }
    }
}
