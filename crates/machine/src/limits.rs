//! Sizes that the core model is built for. Profiles that ask for more are refused.

/// Maximum number of tiers that are modelled: fewer than [`isotherm_core::MAX_TIERS`], because every thread
/// keeps arrays of this size in its hottest cache lines.
pub const MAX_TIERS: usize = 4;
/// Misses and stores in one thread's window: the size of a load queue. A power of two.
pub(crate) const WINDOW: usize = 128;
/// Maximum number of page walkers of a core.
pub(crate) const MAX_WALKERS: usize = 16;
/// Maximum number of registers of a kind.
pub(crate) const MAX_REGISTERS: usize = 128;
