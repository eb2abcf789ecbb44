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

#[derive(Debug, Clone, Copy)]
pub(crate) struct FilterSize {
    pub(crate) hashes: u32,
    pub(crate) counter_bits: CounterBits,
    /// The rate of false positives with every page of the fast tier in the filter.
    pub(crate) false_positive_rate: f64,
    /// The size instead of that rate; 0 is off.
    pub(crate) bytes: Bytes,
}

impl FilterSize {
    pub(crate) fn shape(self, setup: &Setup) -> Result<FilterShape, ShapeError> {
        let bits = self.counter_bits.bits(setup.page_size);
        if self.bytes.0 > 0 {
            return FilterShape::with_bytes(self.bytes.0, bits, self.hashes);
        }
        // A fast tier larger than the address space holds no more pages than that has.
        let keys = setup.fast.0.min(setup.pages as u64).max(1);
        FilterShape::for_keys(keys, self.false_positive_rate, bits, self.hashes)
    }
}
