//! Defines the memory of contexts that a thread has seen, and how a context is recognised without unwinding.
//!
//! An entry holds where the return addresses of a context lay, from the stack pointer, and what they were. A function
//! that is about to return to an address has a frame whose size that address determines, unless it allocates on its
//! stack by a variable size. So if the first return address is the same, the second must lie where it lay, and so on: that all match
//! means that unwinding would find this context again. Reading stops at the first that differs, so no word is read that
//! is not part of a frame; a function that does allocate on its stack by a variable size (`alloca`) can have had a larger
//! frame when it was remembered, so nothing above the stack's end is read either.

use super::DEPTH;

/// Sets of two entries. A context has an entry for each stack depth that it is met at.
const SETS: usize = 256;

/// A context that was seen. The places that a shorter one leaves over repeat its first.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Entry {
    /// Words from the stack pointer to each return address, four to a number; the first lies at 0. So few loads find them.
    offsets: [u64; DEPTH.div_ceil(4)],
    addresses: [usize; DEPTH],
    /// Bytes from the stack pointer to behind the last return address.
    reach: usize,
    /// The number of the first free list of its region.
    lists: u32,
    /// The context's number in the profile.
    number: u32,
}

/// What is remembered of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    pub(crate) lists: u32,
    pub(crate) number: u32,
}

/// The memory of one thread. All zeros, it knows nothing.
#[repr(C)]
pub(crate) struct Memo {
    sets: [[Entry; 2]; SETS],
}

/// Which set a context is found in: by its first return address and where the stack is.
#[inline(always)]
fn set(address: usize, stack: *const usize) -> usize {
    address.wrapping_add(stack as usize >> 4) % SETS
}

impl Entry {
    /// # Safety
    /// `stack` points to the return address of a call that has not returned, on a stack that ends at `top` or lies elsewhere.
    #[inline(always)]
    unsafe fn matches(&self, stack: *const usize, top: usize) -> bool {
        if top.wrapping_sub(stack as usize) < self.reach {
            return false;
        }
        for (index, &address) in self.addresses.iter().enumerate() {
            let words = self.offsets[index / 4] >> (index % 4 * 16) & 0xffff;
            // SAFETY: see the module's text: the frames up to here are those of the entry.
            if unsafe { *stack.add(words as usize) } != address {
                return false;
            }
        }
        true
    }
}

impl Memo {
    /// The context of a call, if it was seen before.
    ///
    /// # Safety
    /// `stack` points to the return address of a call that has not returned, on a stack that ends at `top` or lies elsewhere.
    #[inline(always)]
    pub(crate) unsafe fn find(&self, stack: *const usize, top: usize) -> Option<Known> {
        // SAFETY: the return address.
        let set = &self.sets[set(unsafe { *stack }, stack)];
        for entry in set {
            // SAFETY: the caller's promise.
            if unsafe { entry.matches(stack, top) } {
                return Some(Known { lists: entry.lists, number: entry.number });
            }
        }
        None
    }

    /// Remembers a context in place of the older one of its set; not one whose addresses lie farther than 512 KiB from the stack pointer.
    ///
    /// # Safety
    /// As for [`Memo::find`].
    pub(crate) unsafe fn insert(
        &mut self,
        stack: *const usize,
        (offsets, addresses): (&[u32], &[usize]),
        known: Known,
    ) {
        // SAFETY: the return address.
        let first = unsafe { *stack };
        let mut packed = [0; DEPTH.div_ceil(4)];
        for (index, &offset) in offsets.iter().enumerate() {
            let Ok(words) = u16::try_from(offset / 8) else { return };
            packed[index / 4] |= u64::from(words) << (index % 4 * 16);
        }
        let reach = offsets.last().map_or(0, |&last| last as usize + size_of::<usize>());
        let Known { lists, number } = known;
        let mut entry = Entry { offsets: packed, addresses: [first; DEPTH], reach, lists, number };
        entry.addresses[..addresses.len()].copy_from_slice(addresses);
        let set = &mut self.sets[set(first, stack)];
        set[1] = set[0];
        set[0] = entry;
    }

    /// Forgets all: a library was unloaded, and another may lie where it lay.
    pub(crate) fn clear(&mut self) {
        // SAFETY: zeros are a valid memory.
        unsafe { std::ptr::write_bytes(self, 0, 1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memo() -> Box<Memo> {
        // SAFETY: zeros are a valid memory.
        unsafe { Box::<Memo>::new_zeroed().assume_init() }
    }

    /// A stack with return addresses 101, 102... at these words.
    fn stack(words: &[usize]) -> Vec<usize> {
        let mut stack = vec![0; 64];
        for (index, &word) in words.iter().enumerate() {
            stack[word] = 101 + index;
        }
        stack
    }

    /// What is known of the call whose stack is `frames`.
    fn find(memo: &Memo, frames: &[usize]) -> Option<Known> {
        // SAFETY: the words are there, up to the end that is given.
        unsafe { memo.find(frames.as_ptr(), frames.as_ptr_range().end as usize) }
    }

    #[test]
    fn a_context_is_known_by_all_its_addresses() {
        let (mut memo, mut frames) = (memo(), stack(&[0, 3, 9]));
        let known = Known { lists: 7, number: 2 };
        // SAFETY: the words are there.
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
        // SAFETY: the words are there.
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
        // SAFETY: the words are there.
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
