//! Options of the live host.

use std::fmt;

use isotherm_core::{Bytes, Nanos, PageSize, Pages, parse_share};

use super::share::Share;

/// Limit of the fast memory that the programs may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FastLimit {
    Bytes(Bytes),
    /// A share of the mapped memory, which follows its growth.
    Share(f64),
}

#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not a size (4G), a fast:slow ratio (1:8) or a percentage of the memory in use (25%)")]
pub struct FastLimitError(String);

impl std::str::FromStr for FastLimit {
    type Err = FastLimitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(share) = parse_share(text) {
            return Ok(Self::Share(share));
        }
        text.parse().map(Self::Bytes).map_err(|_| FastLimitError(text.into()))
    }
}

impl fmt::Display for FastLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Share(share) => write!(f, "{}%", 100.0 * share),
        }
    }
}

impl FastLimit {
    /// Returns the limit in pages while `mapped` pages are mapped.
    pub fn pages(self, mapped: Pages, page_size: PageSize) -> Pages {
        match self {
            Self::Bytes(bytes) => Pages(bytes.0 >> page_size.shift()),
            Self::Share(share) => Pages((mapped.0 as f64 * share) as u64),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// Size; the fast limit also applies to the first tier.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_sizes_or_shares_of_the_mapped_memory() {
        let pages =
            |text: &str| text.parse::<FastLimit>().expect("a limit").pages(Pages(1000), PageSize::Base);
        assert_eq!(pages("4M"), Pages(1024));
        assert_eq!(pages("25%"), Pages(250));
        assert_eq!(pages("1:9"), Pages(100));
        let error = "much".parse::<FastLimit>().expect_err("no number");
        assert!(error.to_string().contains("'much' is not a size"), "{error}");
    }
}
