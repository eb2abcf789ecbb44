//! The clock that orders the records of different threads.

/// Returns the time in stamps of about 10 ns, the same on all cores and in all processes.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn now() -> u64 {
    // SAFETY: every x86-64 processor has a time-stamp counter, and Linux lets programs read it.
    unsafe { core::arch::x86_64::_rdtsc() >> 5 }
}

/// Returns the time in stamps of 8 ns, the same on all cores and in all processes.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is this function's; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64) >> 3
}
