//! A value that one thread uses at a time, nearly for nothing where all but its end is one thread's.
//!
//! With one vCPU every callback but that of QEMU's end runs on its thread. It takes the value with plain
//! loads and stores: an atomic operation would make the processor wait for all earlier loads, also the
//! program's. The thread that ends QEMU takes the value back first: the kernel's `membarrier` makes its
//! request and the vCPU's mark visible to each other.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) struct Exclusive<T> {
    value: UnsafeCell<T>,
    mutex: Mutex<()>,
    /// Whether one thread uses the value without the mutex.
    lent: AtomicBool,
    /// Whether it does so now.
    busy: AtomicBool,
}

// SAFETY: a `Guard` is the only way to the value, and there is one at a time: see `lock`.
unsafe impl<T: Send> Sync for Exclusive<T> {}

pub(crate) struct Guard<'a, T> {
    owner: &'a Exclusive<T>,
    mutex: Option<MutexGuard<'a, ()>>,
}

impl<T> Exclusive<T> {
    /// Makes it. With `one_thread`, one thread alone may lock it until it is taken back.
    pub(crate) fn new(value: T, one_thread: bool) -> Self {
        let lent = one_thread && membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        Self {
            value: UnsafeCell::new(value),
            mutex: Mutex::new(()),
            lent: AtomicBool::new(lent),
            busy: AtomicBool::new(false),
        }
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        if self.lent.load(Ordering::Relaxed) {
            self.busy.store(true, Ordering::Relaxed);
            // `take_back` orders this store before the load on the processor.
            compiler_fence(Ordering::SeqCst);
            if self.lent.load(Ordering::Acquire) {
                return Guard { owner: self, mutex: None };
            }
            self.busy.store(false, Ordering::Release);
        }
        self.lock_for_all()
    }

    #[cold]
    #[inline(never)]
    fn lock_for_all(&self) -> Guard<'_, T> {
        Guard { owner: self, mutex: Some(self.mutex.lock().unwrap_or_else(PoisonError::into_inner)) }
    }

    /// Ends the use without the mutex. Any thread may lock from then on.
    pub(crate) fn take_back(&self) {
        if !self.lent.swap(false, Ordering::SeqCst) {
            return;
        }
        // From here on, the other thread sees that, or this one sees that it is busy.
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        while self.busy.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: guards exclude each other.
        unsafe { &*self.owner.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: guards exclude each other.
        unsafe { &mut *self.owner.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.mutex.is_none() {
            self.owner.busy.store(false, Ordering::Release);
        }
    }
}

/// Makes a system call of Linux; returns whether the kernel has it.
fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes numbers only.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_takes_it_back_never_meets_the_other() {
        for round in 0..200u64 {
            let (shared, ended) = (Exclusive::new((0u64, 0u64), true), AtomicBool::new(false));
            std::thread::scope(|scope| {
                let worker = scope.spawn(|| {
                    let mut count = 0;
                    while !ended.load(Ordering::Relaxed) {
                        let mut pair = shared.lock();
                        pair.0 += 1;
                        std::hint::black_box(&mut pair);
                        // So long that it is mostly busy when it is taken back.
                        (0..200).for_each(|_| std::hint::spin_loop());
                        pair.1 += 1;
                        count += 1;
                    }
                    count
                });
                (0..round * 50).for_each(|_| std::hint::spin_loop());
                shared.take_back();
                let seen = {
                    let mut pair = shared.lock();
                    let seen = *pair;
                    pair.0 += 1;
                    pair.1 += 1;
                    seen
                };
                ended.store(true, Ordering::Relaxed);
                let count = worker.join().expect("it counts");
                assert_eq!(seen.0, seen.1, "it was used by both");
                assert_eq!(*shared.lock(), (count + 1, count + 1));
            });
        }
    }

    #[test]
    fn without_a_single_thread_it_is_a_mutex() {
        let shared = Exclusive::new(0u64, false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..10_000).for_each(|_| *shared.lock() += 1));
            }
        });
        assert_eq!(*shared.lock(), 30_000);
    }
}
