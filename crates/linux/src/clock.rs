//! Clocks.

use isotherm_core::Nanos;
use rustix::time::{ClockId, clock_gettime};

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos(time.tv_sec as u64 * Nanos::SECOND.0 + time.tv_nsec as u64)
}

/// Reads `CLOCK_MONOTONIC`, the clock of accesses.
pub fn monotonic() -> Nanos {
    read(ClockId::Monotonic)
}

/// Reads the time of day in seconds since 1970.
pub fn unix_seconds() -> u64 {
    read(ClockId::Realtime).0 / Nanos::SECOND.0
}

/// Reads the processor time of this process, all threads together.
pub fn process_cpu() -> Nanos {
    read(ClockId::ProcessCPUTime)
}

/// Reads the processor time of the calling thread.
pub fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}
