//! The sizing of counting Bloom filters.

use isotherm_core::{Bytes, PageSize, choices};
use isotherm_trackers::{FilterShape, ShapeError};

use crate::Setup;

/// Operations of coalescing one sample: hash, compare, count, and its share of the table's upkeep.
pub(crate) const COALESCE_OPERATIONS: u64 = 6;

choices! {
    pub(crate) enum CounterBits {
        /// 4 bits for base pages, 16 for huge ones.
        Auto = "auto",
        Two = "2",
        Four = "4",
        Eight = "8",
        Sixteen = "16",
    }
}

impl CounterBits {
    fn bits(self, page_size: PageSize) -> u32 {
        match (self, page_size) {
            (Self::Two, _) => 2,
            (Self::Eight, _) => 8,
            (Self::Sixteen, _) | (Self::Auto, PageSize::Huge) => 16,
            (Self::Four, _) | (Self::Auto, PageSize::Base) => 4,
        }
    }
}

/// Returns a filter's shape: for every fast page at a rate of false positives or, unless 0, of `bytes`.
pub(crate) fn shape(
    hashes: u32,
    counter_bits: CounterBits,
    rate: f64,
    bytes: Bytes,
    setup: &Setup,
) -> Result<FilterShape, ShapeError> {
    let bits = counter_bits.bits(setup.page_size);
    // No page, no counters: a policy that is only asked for its signals shall not take `bytes`.
    if bytes.0 > 0 && setup.pages > 0 {
        return FilterShape::with_bytes(bytes.0, bits, hashes);
    }
    // A fast tier larger than the address space holds no more pages than that has.
    let keys = setup.fast.0.min(setup.pages as u64).max(1);
    FilterShape::for_keys(keys, rate, bits, hashes)
}
