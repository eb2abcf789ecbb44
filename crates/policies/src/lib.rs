//! PolicyRun policies, one module a published system, and the [`registry`] that names them.
//!
//! Nothing here performs I/O, reads a clock or starts a thread: see `isotherm_core::Policy`.

#![forbid(unsafe_code)]

mod alto;
mod arc;
mod colloid;
mod demotion_scan;
mod filter_shape;
mod first_touch;
mod freqtier;
mod hemem;
mod hot_threshold;
mod hybridtier;
mod jenga;
mod lists;
mod lru;
mod memtis;
mod multi_clock;
mod nbt;
mod neomem;
mod nomad;
mod numa_balancing;
mod pact;
mod page_bits;
mod pmu_sampling;
mod prefetch;
mod pte_scan;
pub mod registry;
pub mod replacement;
mod round;
pub mod soar;
#[cfg(test)]
mod test_view;
mod tpp;
mod twoq;

pub use alto::Alto;
pub use colloid::Colloid;
pub use first_touch::FirstTouch;
pub use freqtier::FreqTier;
pub use hemem::Hemem;
pub use hybridtier::HybridTier;
pub use lru::Lru;

pub use multi_clock::MultiClock;
pub use nbt::Nbt;
pub use neomem::NeoMem;
pub use nomad::Nomad;
pub use pact::Pact;
pub use pmu_sampling::PmuSampling;
pub use pte_scan::PteScan;
pub use registry::{ALL, Bound, BuildError, Entry, Kind, Setup, UnknownPolicy, find};
pub use tpp::Tpp;
