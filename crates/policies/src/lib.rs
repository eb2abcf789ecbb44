//! Tiering policies, one module a published system, and the [`registry`] that names them.
//!
//! Nothing here performs I/O, reads a clock or starts a thread: see `isotherm_core::Policy`.

#![forbid(unsafe_code)]

mod colloid;
mod first_touch;
mod freqtier;
mod lru;
mod multi_clock;
mod nbt;
mod nomad;
mod numa_balancing;
mod page_bits;
mod pte_scan;
pub mod registry;
mod round;
#[cfg(test)]
mod test_view;
mod tpp;

pub use colloid::Colloid;
pub use first_touch::FirstTouch;
pub use freqtier::FreqTier;
pub use lru::Lru;
pub use multi_clock::MultiClock;
pub use nbt::Nbt;
pub use nomad::Nomad;
pub use pte_scan::PteScan;
pub use registry::{ALL, Bound, BuildError, Entry, Kind, Setup, UnknownPolicy, find};
pub use tpp::Tpp;
