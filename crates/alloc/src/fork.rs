//! Fork handlers. The child's one thread keeps its caches; blocks cached by other threads are lost to it.
//!
//! jemalloc takes its own locks. These handlers are registered after jemalloc's and therefore run before them
//! when a fork begins, in the order in which the locks nest.

use crate::{profile, thread};

/// Registers the handlers. If that fails, forks of a program with other threads may hang.
pub(crate) fn prepare() {
    // SAFETY: the handlers take no arguments and stay loaded as long as the process.
    unsafe { libc::pthread_atfork(Some(thread::hold), Some(thread::release_hold), Some(after_in_child)) };
}

extern "C" fn after_in_child() {
    thread::forget_others();
    thread::release_hold();
    profile::fork();
}
