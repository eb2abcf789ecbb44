//! Defines how the return addresses of a call are found.

use super::rules::{Rule, Rules};
use super::{DEPTH, Registers};

/// A frame larger than this is taken for a wrong turn.
const LARGEST_FRAME: usize = 1 << 20;

/// The return addresses of a call, innermost first.
pub(crate) struct Chain {
    length: usize,
    addresses: [usize; DEPTH],
    offsets: [u32; DEPTH],
    /// A hash of where they lie in their modules: the same in each run.
    pub(crate) hash: u64,
}

impl Chain {
    /// The addresses, and how many bytes above the stack pointer they lie.
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

/// Finds up to `depth` (1 to [`DEPTH`]) return addresses, below `top` of the stack. The first counts even if it is in no module.
///
/// # Safety
/// `registers` are those of a call that has not returned, and the stack is mapped up to `top`.
pub(crate) unsafe fn walk(rules: &mut Rules, registers: Registers, depth: usize, top: usize) -> Chain {
    let mut chain = Chain { length: 0, addresses: [0; DEPTH], offsets: [0; DEPTH], hash: 0 };
    let (start, mut frame) = (registers.stack as usize, registers.frame);
    let mut place = start;
    loop {
        // SAFETY: the first by the caller's promise, the others as `caller` has checked.
        let address = unsafe { *(place as *const usize) };
        let known = rules.find(address);
        if known.offset == 0 && chain.length > 0 {
            break;
        }
        chain.push(address, place - start, known.offset);
        if chain.length == depth {
            break;
        }
        // SAFETY: the caller's promise.
        let Some(caller) = (unsafe { leave(known.rule, place + 8, frame, top) }) else { break };
        (place, frame) = caller;
        if place - start > u32::MAX as usize {
            break;
        }
    }
    chain
}

/// Leaves a frame: where its function's return address lies, and the caller's frame pointer. None at the end of the chain.
///
/// # Safety
/// The stack is mapped from `stack` to `top`.
unsafe fn leave(rule: Rule, stack: usize, frame: usize, top: usize) -> Option<(usize, usize)> {
    let Rule::Step { from_frame_pointer, bytes, saved } = rule else { return None };
    let from = if from_frame_pointer { frame } else { stack };
    let end = from.checked_add_signed(bytes as isize)?;
    // Callers lie higher. A wrong frame pointer most often does not lead there, or is not aligned.
    if end <= stack || end - stack > LARGEST_FRAME || end > top || end % 8 != 0 {
        return None;
    }
    let frame = match saved {
        0 => frame,
        // SAFETY: aligned, and between the stack pointer and the top.
        saved => unsafe {
            *(end.checked_sub(saved as usize).filter(|&at| at >= stack && at % 8 == 0)? as *const usize)
        },
    };
    Some((end - 8, frame))
}
