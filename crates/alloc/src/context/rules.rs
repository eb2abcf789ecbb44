//! Rules for leaving the frame of a return address's function, and a thread's memory of them.

use super::{eh_frame, modules};

/// Rule of code that has frame pointers and no description: after `push rbp; mov rbp, rsp` (System V ABI,
/// x86-64, "The Stack Frame"). The walk checks that the register points up the stack and at code.
const FRAME_POINTER: Rule = Rule::Step { from_frame_pointer: true, bytes: 16, saved: 16 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The outermost frame, code without a description, or a frame that cannot be followed.
    Stop,
    Step {
        from_frame_pointer: bool,
        /// Bytes from that register to the caller's frame; the return address lies just below.
        bytes: i32,
        /// Bytes from the caller's frame down to its saved frame pointer; 0 if the register still holds it.
        saved: u16,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) rule: Rule,
    /// Offset from its module's first address; 0 if it is in no module.
    pub(crate) offset: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    /// 0 in an unused entry.
    address: usize,
    known: Known,
}

const ENTRIES: usize = 1024;

/// A thread's memory of rules; all zeros is the valid empty memory.
pub(crate) struct Rules {
    entries: [Entry; ENTRIES],
}

impl Rules {
    /// Lock-free and without allocating if glibc has `_dl_find_object`.
    #[inline]
    pub(crate) fn find(&mut self, address: usize) -> Known {
        let index = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - ENTRIES.ilog2());
        let entry = &mut self.entries[index];
        if entry.address != address {
            *entry = Entry { address, known: read(address) };
        }
        entry.known
    }

    pub(crate) fn clear(&mut self) {
        for entry in &mut self.entries {
            entry.address = 0;
        }
    }
}

#[cold]
fn read(address: usize) -> Known {
    // The call is the instruction before; it may be the last of its function.
    let call = address.wrapping_sub(1);
    let Some(module) = modules::find(call).filter(|module| module.executable(call)) else {
        return Known { rule: Rule::Stop, offset: 0 };
    };
    let rule = eh_frame::rule(&module, call).unwrap_or(FRAME_POINTER);
    Known { rule, offset: address.wrapping_sub(module.base) }
}
