//! A lock that never allocates, that a fork can hold, and that needs no thread-local memory.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// A value behind a lock. Holders are brief, so a waiting thread yields the processor.
pub(crate) struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only the thread that holds the lock reaches the value.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock and holds it until the result is dropped.
    pub(crate) fn lock(&self) -> Held<'_, T> {
        self.take();
        Held(self)
    }

    /// Waits for the lock and keeps it until [`Lock::release`], for a fork, which ends in two processes.
    pub(crate) fn take(&self) {
        while self.held.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            // SAFETY: the call has no preconditions.
            unsafe { libc::sched_yield() };
        }
    }

    pub(crate) fn release(&self) {
        self.held.store(false, Ordering::Release);
    }
}

pub(crate) struct Held<'a, T>(&'a Lock<T>);

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock, and references last no longer than the borrow of this value.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock, and references last no longer than the borrow of this value.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.0.release();
    }
}
