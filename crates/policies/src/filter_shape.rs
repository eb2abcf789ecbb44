//! Defines how policies that count in a Bloom filter size it, from the parameters that they have in common.

use isotherm_core::PageSize;
use isotherm_core::parameters::Parameters;
use isotherm_trackers::{FilterShape, ShapeError};

use crate::Setup;

/// Bytes of a buffered sample (FreqTier, section VII-E 2).
pub(crate) const SAMPLE_BYTES: u64 = 16;
/// Operations of coalescing one sample: hash, compare, count, and its share of the table's upkeep.
pub(crate) const COALESCE_OPERATIONS: u64 = 6;

/// The filter's shape: for every page of the fast tier, or as large as asked for, from `hashes`, `counter_bits`,
/// `false_positive_rate` and `filter_bytes`.
pub(crate) fn filter_shape(parameters: &Parameters, setup: &Setup) -> Result<FilterShape, ShapeError> {
    let bits = counter_bits(parameters, setup);
    let hashes = parameters.count("hashes") as u32;
    match parameters.size("filter_bytes").0 {
        // A fast tier larger than the address space holds no more pages than that has.
        0 => {
            let keys = setup.fast.0.min(setup.pages as u64).max(1);
            FilterShape::for_keys(keys, parameters.number("false_positive_rate"), bits, hashes)
        }
        bytes => FilterShape::with_bytes(bytes, bits, hashes),
    }
}

/// The width of a counter: `auto` is 4 bits for base pages and 16 for huge ones.
fn counter_bits(parameters: &Parameters, setup: &Setup) -> u32 {
    match (parameters.choice("counter_bits"), setup.page_size) {
        ("2", _) => 2,
        ("8", _) => 8,
        ("16", _) | ("auto", PageSize::Huge) => 16,
        _ => 4,
    }
}
