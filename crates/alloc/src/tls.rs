//! Each thread's word of thread-local memory: the address of its [`ThreadState`].
//!
//! Rust's `thread_local!` in a shared object calls `__tls_get_addr`. A preloaded library's word lies in the
//! static block, where two loads find it (initial-exec model, "ELF Handling For Thread-Local Storage").

use std::arch::{asm, global_asm};

use crate::thread::ThreadState;

global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".p2align 3",
    ".globl isotherm_alloc_state",
    ".hidden isotherm_alloc_state",
    ".type isotherm_alloc_state,@object",
    ".size isotherm_alloc_state,8",
    "isotherm_alloc_state:",
    ".zero 8",
    ".popsection",
);

/// Value of the word in a thread that is about to end.
pub(crate) const ENDED: *mut ThreadState = std::ptr::without_provenance_mut(1);

/// Returns this thread's state: null before its first call, [`ENDED`] after its last.
#[inline(always)]
pub(crate) fn get() -> *mut ThreadState {
    let state;
    // SAFETY: the instructions read this thread's word, which the section above declares; the loader put its
    // offset into the static block into the slot read first.
    unsafe {
        asm!(
            "mov {state}, qword ptr [rip + isotherm_alloc_state@GOTTPOFF]",
            "mov {state}, qword ptr fs:[{state}]",
            state = out(reg) state,
            options(nostack, readonly, preserves_flags),
        );
    }
    state
}

pub(crate) fn set(state: *mut ThreadState) {
    // SAFETY: the instructions write this thread's word, as `get` reads it; only this thread uses it.
    unsafe {
        asm!(
            "mov {offset}, qword ptr [rip + isotherm_alloc_state@GOTTPOFF]",
            "mov qword ptr fs:[{offset}], {state}",
            offset = out(reg) _,
            state = in(reg) state,
            options(nostack, preserves_flags),
        );
    }
}

/// Returns the address of this thread's control block, at its stack's upper end (not the main thread's).
pub(crate) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: a control block's first word is its own address (System V ABI, "Thread-Local Storage").
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags));
    };
    pointer
}
