//! The end of work before its end.
//!
//! A replay that is asked to stop has no result: it unwinds, from whichever thread it runs on, to
//! [`stoppable`].

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::SimulateError;

/// Payload with which a replay unwinds. No panic: it runs no hook.
struct Stopped;

/// Unwinds if `stop` is set.
#[inline]
pub(crate) fn check(stop: &AtomicBool) {
    if stop.load(Ordering::Relaxed) {
        resume_unwind(Box::new(Stopped));
    }
}

/// Does work that [`check`] may end.
pub(crate) fn stoppable<T>(work: impl FnOnce() -> Result<T, SimulateError>) -> Result<T, SimulateError> {
    // What the work has changed is dropped with it.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| match payload.downcast::<Stopped>() {
        Ok(_) => Err(SimulateError::Stopped),
        Err(panic) => resume_unwind(panic),
    })
}
