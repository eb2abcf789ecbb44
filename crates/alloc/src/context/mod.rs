//! Defines calling contexts: up to ten return addresses, found cheaply and hashed so that they are the same in every run.
//!
//! The steady state is [`memo`]: a chain of return addresses that was seen before is recognised by looking where they
//! lay then. Only a new chain is walked ([`walk`]), by unwinding rules of each return address ([`rules`]), which are read once
//! from `.eh_frame` ([`eh_frame`]) or taken to be those of frame pointers ([`frame_pointer`]) where there are none.

mod eh_frame;
mod frame_pointer;
pub(crate) mod memo;
mod modules;
pub(crate) mod rules;
pub(crate) mod walk;

/// The first address of the module that a return address lies in, and its path, which is empty for the program itself.
pub(crate) fn module_of(address: usize) -> Option<(usize, &'static std::ffi::CStr)> {
    let module = modules::find(address.wrapping_sub(1))?;
    Some((module.base, module.path))
}

/// The most return addresses that make up a context (Jenga, section 4.3: "up to a depth of 10").
pub(crate) const DEPTH: usize = 10;

/// The registers of a thread as it calls a function of the allocator.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Registers {
    /// The stack pointer, where the return address lies.
    pub(crate) stack: *const usize,
    /// The frame pointer, if the program uses it for that.
    pub(crate) frame: usize,
}
