//! Calling contexts: up to ten return addresses, found cheaply and hashed to the same value in every run.
//!
//! In the steady state [`memo`] recognises a chain of return addresses by the places where they lay before.
//! Only a new chain is walked ([`walk`]), by unwinding rules of each return address ([`rules`]). Rules are
//! read once from `.eh_frame` ([`eh_frame`]); code without it is assumed to have frame pointers.

mod eh_frame;

pub(crate) mod memo;
mod modules;
pub(crate) mod rules;
pub(crate) mod walk;

/// Returns a return address's module: its first address and its path, which is empty for the program.
pub(crate) fn module_of(address: usize) -> Option<(usize, &'static std::ffi::CStr)> {
    let module = modules::find(address.wrapping_sub(1))?;
    Some((module.base, module.path))
}

/// Most return addresses of a context (Jenga, section 4.3: "up to a depth of 10").
pub(crate) const DEPTH: usize = 10;

/// A thread's registers as it calls a function of the allocator.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Registers {
    /// Stack pointer, where the return address lies.
    pub(crate) stack: *const usize,
    /// Frame pointer, if the program keeps one in this register.
    pub(crate) frame: usize,
}
