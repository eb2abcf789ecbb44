//! Options of the live host.

use isotherm_core::{Bytes, FastLimit, Nanos, PageSize};

use super::share::Share;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// Size; [`Options::fast`] may allow the programs less of it.
    pub size: Bytes,
    /// Idle latency from the firmware or a machine profile.
    pub latency: Nanos,
    /// Bytes a second, from the firmware or, of a shadow tier, a machine profile; 0 if unknown.
    pub bandwidth: u64,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub page_size: PageSize,
    pub tiers: Vec<Tier>,
    /// NUMA nodes of each tier; empty in shadow mode.
    pub nodes: Vec<Vec<u32>>,
    pub fast: FastLimit,
    /// Replaces `fast` where several hosts divide the machine's fast memory.
    pub share: Option<Share>,
    /// Whether nothing moves.
    pub shadow: bool,
    /// Whether queue occupancy that nothing counts is modelled; in shadow mode only.
    pub model_counters: bool,
    /// Shortest time between two scans of mapped memory; [`Options::scan_budget`] may lengthen it.
    pub scan_interval: Nanos,
    /// Memory of an engine inside the program, neither counted nor moved; its processor time is its thread's.
    pub inside: Option<Vec<std::ops::Range<u64>>>,
    /// Share of one processor for scans of mapped memory.
    pub scan_budget: f64,
    /// Share of their time that programs may lose to being observed.
    pub overhead: f64,
}
