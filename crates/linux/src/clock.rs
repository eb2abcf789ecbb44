//! Clocks.

use isotherm_core::Nanos;
use rustix::time::{ClockId, clock_gettime};

use crate::process::Pid;

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos(time.tv_sec as u64 * Nanos::SECOND.0 + time.tv_nsec as u64)
}

/// `CLOCK_MONOTONIC`, the clock of accesses.
pub fn monotonic() -> Nanos {
    read(ClockId::Monotonic)
}

pub fn unix_seconds() -> u64 {
    read(ClockId::Realtime).0 / Nanos::SECOND.0
}

pub fn process_cpu() -> Nanos {
    read(ClockId::ProcessCPUTime)
}

pub fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// Returns the processor time that all threads of a process have had; 0 if it has ended.
pub fn cpu_of(process: Pid) -> Nanos {
    Nanos(crate::sys::agent::processor_time(process.0))
}
