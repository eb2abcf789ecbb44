//! Defines what a fork does: the child has one thread, whose caches go on; what other threads held in theirs is lost to it.
//!
//! jemalloc takes its own locks. This module's handlers are registered after jemalloc's, so they run before them
//! when a fork begins, in the order in which the locks nest.

use crate::thread;

/// Registers the handlers. Without memory for that, forks of a program with other threads may hang, as they would anyway.
pub(crate) fn prepare() {
    // SAFETY: functions without arguments that stay.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
}

extern "C" fn before() {
    thread::hold();
}

extern "C" fn after() {
    thread::release_hold();
}
