//! A group's claim on the fast tier.

use isotherm_core::Pages;

use crate::Curve;

/// How much slower a program is with all of its memory slow, unless the machine's latencies tell: those of
/// DRAM (about 100 ns) and of CXL memory (about 250 ns).
const SLOW: f64 = 2.5;

/// The share of the fast tier that one group is entitled to, and the use that it would make of more.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Least fast memory that pressure of others never takes.
    pub protect: Pages,
    /// Most fast memory.
    pub limit: Pages,
    /// How much a slowdown of this group counts beside those of others; above 0.
    pub weight: f64,
    /// Memory in use.
    pub mapped: Pages,
    /// Fast memory that the group has now. Keeping it costs nothing, so it is worth a little more than memory
    /// that must be moved first.
    pub held: Pages,
    /// Share of the time in which the group runs, from 0 to 1: memory helps nobody while its group sleeps.
    pub activity: f64,
    /// Hit ratio by fast memory.
    pub curve: Curve,
    /// How many times longer the group takes with all memory slow than with all memory fast; at least 1.
    pub slow: f64,
}

impl Claim {
    /// Returns the claim of a group of weight 1 that always runs, without protection or limit.
    pub fn new(mapped: Pages, curve: Curve) -> Self {
        Self {
            protect: Pages(0),
            limit: Pages(u64::MAX),
            weight: 1.0,
            mapped,
            held: Pages(0),
            activity: 1.0,
            curve,
            slow: SLOW,
        }
    }

    /// Returns the slowdown with the hottest `pages` fast, against all memory fast.
    pub fn slowdown(&self, pages: f64) -> f64 {
        1.0 + (self.slow.max(1.0) - 1.0) * (1.0 - self.curve.at(pages))
    }
}
