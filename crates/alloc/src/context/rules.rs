//! Defines how the frame of a return address's function is left, and a thread's memory of such rules.

use super::{eh_frame, frame_pointer, modules};

/// How to get from a frame to its caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The chain ends here: the outermost frame, code without a description, or one that cannot be followed.
    Stop,
    /// The caller's frame begins `bytes` above the stack pointer or the frame pointer.
    Step {
        /// Whether from the frame pointer.
        from_frame_pointer: bool,
        /// Bytes from that register to where the caller's frame begins; below lies the return address.
        bytes: i32,
        /// Where the caller's frame pointer is saved, in bytes below there; 0 if the register still holds it.
        saved: u16,
    },
}

/// What is known about a return address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) rule: Rule,
    /// The address from where its module was loaded; 0 if it is in none.
    pub(crate) offset: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    /// 0 if there is none.
    address: usize,
    known: Known,
}

const ENTRIES: usize = 1024;

/// A thread's memory of rules. All zeros, it knows nothing.
pub(crate) struct Rules {
    entries: [Entry; ENTRIES],
}

impl Rules {
    /// What is known about a return address. Takes no lock and allocates nothing where glibc can find objects so.
    #[inline]
    pub(crate) fn find(&mut self, address: usize) -> Known {
        let index = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - ENTRIES.ilog2());
        let entry = &mut self.entries[index];
        if entry.address != address {
            *entry = Entry { address, known: read(address) };
        }
        entry.known
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        for entry in &mut self.entries {
            entry.address = 0;
        }
    }
}

#[cold]
fn read(address: usize) -> Known {
    // The call is the instruction before; its function may end with it.
    let call = address.wrapping_sub(1);
    let Some(module) = modules::find(call).filter(|module| module.executable(call)) else {
        return Known { rule: Rule::Stop, offset: 0 };
    };
    let rule = match eh_frame::rule(&module, call) {
        Some(rule) => rule,
        None => frame_pointer::RULE,
    };
    Known { rule, offset: address.wrapping_sub(module.base) }
}
