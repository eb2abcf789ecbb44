//! Walks up the stack to find a call's return addresses.

use super::rules::{Rule, Rules};
use super::{DEPTH, Registers};

/// Largest plausible frame, in bytes; a larger one ends the walk.
const LARGEST_FRAME: usize = 1 << 20;

pub(crate) struct Chain {
    length: usize,
    addresses: [usize; DEPTH],
    offsets: [u32; DEPTH],
    /// Hash of the addresses' offsets in their modules, the same in every run.
    pub(crate) hash: u64,
}

impl Chain {
    /// Returns how many bytes above the stack pointer the addresses lie, and the addresses.
    pub(crate) fn parts(&self) -> (&[u32], &[usize]) {
        (&self.offsets[..self.length], &self.addresses[..self.length])
    }

    fn push(&mut self, address: usize, place: usize, module_offset: usize) {
        self.addresses[self.length] = address;
        self.offsets[self.length] = place as u32;
        self.length += 1;
        self.hash = (self.hash.rotate_left(5) ^ module_offset as u64).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

/// Finds 1 to `depth` return addresses below `top` of the stack. The first may be in no module.
///
/// # Safety
/// `registers` are those of a call that has not returned, and its stack is mapped up to `top`.
pub(crate) unsafe fn walk(rules: &mut Rules, registers: Registers, depth: usize, top: usize) -> Chain {
    let mut chain = Chain { length: 0, addresses: [0; DEPTH], offsets: [0; DEPTH], hash: 0 };
    let (start, mut frame) = (registers.stack as usize, registers.frame);
    let mut place = start;
    loop {
        // SAFETY: the caller promises that the first place holds a return address; `leave` has checked that
        // the others are aligned and between the stack pointer and `top`, where the stack is mapped.
        let address = unsafe { *(place as *const usize) };
        let known = rules.find(address);
        if known.offset == 0 && chain.length > 0 {
            break;
        }
        chain.push(address, place - start, known.offset);
        if chain.length == depth {
            break;
        }
        // SAFETY: the stack is mapped from the place's end to `top` by the caller's promise.
        let Some(caller) = (unsafe { leave(known.rule, place + 8, frame, top) }) else { break };
        (place, frame) = caller;
        if place - start > u32::MAX as usize {
            break;
        }
    }
    chain
}

/// Leaves a frame. Returns its return address's place and the caller's frame pointer, if the chain goes on.
///
/// # Safety
/// The stack is mapped from `stack` to `top`.
unsafe fn leave(rule: Rule, stack: usize, frame: usize, top: usize) -> Option<(usize, usize)> {
    let Rule::Step { from_frame_pointer, bytes, saved } = rule else { return None };
    let from = if from_frame_pointer { frame } else { stack };
    let end = from.checked_add_signed(bytes as isize)?;
    // Callers lie higher. A wrong frame pointer usually fails one of these checks.
    if end <= stack || end - stack > LARGEST_FRAME || end > top || end % 8 != 0 {
        return None;
    }
    let frame = match saved {
        0 => frame,
        // SAFETY: the word is aligned and lies between `stack` and `end`, which is at most `top`.
        saved => unsafe {
            *(end.checked_sub(saved as usize).filter(|&at| at >= stack && at % 8 == 0)? as *const usize)
        },
    };
    Some((end - 8, frame))
}
