//! Settings of scans: their pace, and thresholds for mappings accessed in part.

use isotherm_core::{Nanos, PageSize};

/// Limits on how often processes are scanned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Minimum time between two scans of a process, from start to start.
    pub interval: Nanos,
    /// Share of one processor that all scans together may take, above 0 and at most 1.
    pub budget: f64,
    /// Share of one processor that scans may cost a process (`SourceStatistics::program_time`), above 0.
    pub program_budget: f64,
}

impl Default for Pace {
    /// Scans once a second, with at most 1 % of a processor for scans and 1 % for their effect on a process.
    fn default() -> Self {
        Self { interval: Nanos::SECOND, budget: 0.01, program_budget: 0.01 }
    }
}

/// Thresholds for mappings that were accessed in part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resolution {
    /// Share of a mapping's present pages above which all of them are delivered as accesses.
    pub sampled: f64,
    /// Share above which ranges of the mapping are reported as accessed.
    pub accessed: f64,
    pub page_size: PageSize,
}

impl Default for Resolution {
    /// Delivers at most 5 % of wrong accesses, lets the majority decide about ranges, and counts 4 KiB pages.
    fn default() -> Self {
        Self { sampled: 0.95, accessed: 0.5, page_size: PageSize::Base }
    }
}
