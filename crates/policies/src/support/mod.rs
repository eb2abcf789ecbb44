//! Structures and mechanisms that several policies share.

pub(crate) mod demotion_scan;
pub(crate) mod filter;
pub(crate) mod hot_threshold;
pub(crate) mod lists;
pub(crate) mod numa_balancing;
pub(crate) mod page_bits;
pub(crate) mod prefetch;
pub(crate) mod quota;
pub(crate) mod round;
#[cfg(test)]
pub(crate) mod test_view;

/// Bytes of a buffered sample (FreqTier, section VII-E 2).
pub(crate) const SAMPLE_BYTES: u64 = 16;
