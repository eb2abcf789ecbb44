//! The parts of Linux' NUMA balancing that other systems build on, named by the functions of
//! `kernel/sched/fair.c` and `mm/page_alloc.c` of Linux 6.2 and later.
//!
//! - [`Scanner`]: task work that makes the next part of the address space fault (`task_numa_work`).
//! - [`Promotion`]: which faults promote in tiering mode (`should_numa_migrate_memory`), with the hot
//!   threshold that adapts ([`threshold`]) and the rate limit.
//! - [`Watermarks`]: how much kswapd keeps free; [`Headroom`]: how much TPP does.

mod promotion;
mod scanner;
mod settings;
mod threshold;
mod watermarks;

pub(crate) use promotion::Promotion;
pub(crate) use scanner::Scanner;
pub(crate) use settings::{HeadroomSettings, ScanSettings, Settings, WatermarkSettings};
pub(crate) use watermarks::{Headroom, Watermarks};

use isotherm_core::{Nanos, Sampling, SamplingRate, SamplingScope};

/// Operations of one fault's decision: tier, time, threshold, limit.
pub(crate) const FAULT_OPERATIONS: u64 = 10;

/// Returns a request for hint faults only: each is answered at once, and time is looked at every `tick`.
pub(crate) fn faults_only(tick: Nanos) -> Sampling {
    Sampling::loads(SamplingRate::Off, SamplingScope::AllTiers, 1, tick)
}
