//! Tiering policies, one module a published system, and the [`registry`] that names them.
//!
//! Nothing here performs I/O, reads a clock or starts a thread: see `isotherm_core::Policy`.

#![forbid(unsafe_code)]

mod arc;
mod first_touch;
mod freqtier;
mod lru;
pub mod registry;
pub mod replacement;
mod round;
#[cfg(test)]
mod test_view;
mod twoq;

pub use first_touch::FirstTouch;
pub use freqtier::FreqTier;
pub use lru::Lru;
pub use registry::{ALL, Bound, BuildError, Entry, Kind, Setup, UnknownPolicy, find};
