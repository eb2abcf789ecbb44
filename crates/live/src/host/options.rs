//! Defines what a live run is asked to do.

use isotherm_core::{Bytes, Nanos, PageSize, Pages, parse_share};

/// How much fast memory the programs may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FastLimit {
    /// So much.
    Bytes(Bytes),
    /// This share of what they have mapped, as it grows.
    Share(f64),
}

/// A text that is no limit.
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

impl FastLimit {
    /// The limit in pages while `mapped` pages are mapped.
    pub fn pages(self, mapped: Pages, page_size: PageSize) -> Pages {
        match self {
            Self::Bytes(bytes) => Pages(bytes.0 >> page_size.shift()),
            Self::Share(share) => Pages((mapped.0 as f64 * share) as u64),
        }
    }
}

/// A tier of memory as the programs may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// Its size. The fast limit applies beside that of the first.
    pub size: Bytes,
    /// Its idle latency, as the firmware or a machine profile says.
    pub latency: Nanos,
}

/// What a live run is asked to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The granularity at which memory is tracked and moved.
    pub page_size: PageSize,
    /// The tiers, fastest first.
    pub tiers: Vec<Tier>,
    /// The NUMA nodes of each tier; nothing where they are shadows.
    pub nodes: Vec<Vec<u32>>,
    /// How much fast memory the programs may use.
    pub fast: FastLimit,
    /// Whether nothing moves.
    pub shadow: bool,
    /// Whether occupancy of the tiers' queues is modelled where nothing counts it ([`super::CounterOrigin::Modelled`]); with
    /// shadow tiers only.
    pub model_counters: bool,
    /// The shortest time between two looks at what is mapped; it is longer where [`Options::scan_budget`] says so.
    pub scan_interval: Nanos,
    /// Memory of the engine's own, where it is a thread of the program that it tiers: it is neither counted nor moved. Then the
    /// engine's processor time is its thread's, otherwise its process's.
    pub inside: Option<Vec<std::ops::Range<u64>>>,
    /// The share of one processor that looking at what is mapped may take.
    pub scan_budget: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_sizes_or_shares_of_what_is_mapped() {
        let pages =
            |text: &str| text.parse::<FastLimit>().expect("a limit").pages(Pages(1000), PageSize::Base);
        assert_eq!(pages("4M"), Pages(1024));
        assert_eq!(pages("25%"), Pages(250));
        assert_eq!(pages("1:9"), Pages(100));
        let error = "much".parse::<FastLimit>().expect_err("no number");
        assert!(error.to_string().contains("'much' is not a size"), "{error}");
    }
}
