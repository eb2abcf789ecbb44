//! Tiering policies, one module a published system, and the [`registry`] that names them.
//!
//! Nothing here performs I/O, reads a clock or starts a thread: see `isotherm_core::Policy`.

#![forbid(unsafe_code)]

mod demotion_scan;
mod filter_shape;
mod arc;
mod first_touch;
mod freqtier;
mod hot_threshold;
mod hybridtier;
mod hemem;
mod lists;
mod lru;
mod memtis;
mod pmu_sampling;
pub mod registry;
pub mod replacement;
mod round;
#[cfg(test)]
mod test_view;
mod twoq;

pub use first_touch::FirstTouch;
pub use freqtier::FreqTier;
pub use hybridtier::HybridTier;
pub use hemem::Hemem;
pub use lru::Lru;
pub use memtis::Memtis;
pub use pmu_sampling::PmuSampling;
pub use registry::{ALL, Bound, BuildError, Entry, Kind, Setup, UnknownPolicy, find};
