//! Colloid's controller: the direction and the size of the shift of requests to the fast tier.
//!
//! Section 3.2 of the paper. `p` is the share of requests that the fast (default) tier serves, `L_D` and
//! `L_A` are the loaded latencies of the default and the alternate tier. The share at which they are equal
//! lies between two marks that close in on it:
//!
//! ```text
//! each quantum:
//!     if |L_D - L_A| < delta L_D: rest
//!     if L_D < L_A: p_lo = p  else: p_hi = p
//!     if p_hi < p_lo + epsilon:           the equal point has moved out of the marks
//!         if L_D < L_A: p_hi = 1  else: p_lo = 0
//!     shift p towards (p_lo + p_hi) / 2
//! ```

use isotherm_core::{Counters, TierCounters};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shift {
    /// The latencies are equal within delta, or nothing ran.
    Rest,
    /// Pages with this share move to the fast tier.
    Promote(f64),
    /// They move away from it.
    Demote(f64),
}

#[derive(Debug, Clone, Copy, Default)]
struct Load {
    occupancy: f64,
    requests: f64,
}

impl Load {
    fn smooth(&mut self, weight: f64, occupancy: u64, requests: u64) {
        self.occupancy += weight * (occupancy as f64 - self.occupancy);
        self.requests += weight * (requests as f64 - self.requests);
    }

    /// Returns the latency by Little's law; `None` without requests.
    fn latency(self) -> Option<f64> {
        (self.requests >= 0.5).then(|| self.occupancy / self.requests)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Balance {
    delta: f64,
    epsilon: f64,
    weight: f64,
    low: f64,
    high: f64,
    /// The fast tier, and all others.
    loads: [Load; 2],
    before: [TierCounters; 2],
}

impl Balance {
    pub(super) fn new(delta: f64, epsilon: f64, weight: f64) -> Self {
        let (loads, before) = Default::default();
        Self { delta, epsilon, weight, low: 0.0, high: 1.0, loads, before }
    }

    pub(super) fn requests(&self) -> f64 {
        self.loads[0].requests + self.loads[1].requests
    }

    /// Returns the loaded latencies of the fast tier and of the others in nanoseconds, if known.
    pub(super) fn latencies(&self) -> [Option<f64>; 2] {
        self.loads.map(Load::latency)
    }

    pub(super) fn quantum(&mut self, counters: &Counters) -> Shift {
        for (side, now) in [side(counters, ..1), side(counters, 1..)].into_iter().enumerate() {
            let before = std::mem::replace(&mut self.before[side], now);
            let requests = now.load_misses + now.store_misses - before.load_misses - before.store_misses;
            self.loads[side].smooth(self.weight, now.occupancy - before.occupancy, requests);
        }
        let total = self.requests();
        match self.latencies() {
            [None, None] => Shift::Rest,
            // A tier that nobody asks has no load: the other one is the slower.
            [fast, slow] => {
                self.shift(fast.unwrap_or(0.0), slow.unwrap_or(0.0), self.loads[0].requests / total)
            }
        }
    }

    /// Runs the module's algorithm for the loaded latencies `fast` and `slow` at the share `p`.
    fn shift(&mut self, fast: f64, slow: f64, p: f64) -> Shift {
        if (fast - slow).abs() < self.delta * fast {
            return Shift::Rest;
        }
        let promote = fast < slow;
        *(if promote { &mut self.low } else { &mut self.high }) = p;
        if self.high < self.low + self.epsilon {
            *(if promote { &mut self.high } else { &mut self.low }) = if promote { 1.0 } else { 0.0 };
        }
        let shift = f64::midpoint(self.low, self.high) - p;
        if promote { Shift::Promote(shift.max(0.0)) } else { Shift::Demote((-shift).max(0.0)) }
    }
}

fn side(
    counters: &Counters,
    tiers: impl std::slice::SliceIndex<[TierCounters], Output = [TierCounters]>,
) -> TierCounters {
    let tiers = counters.tiers.get(tiers).unwrap_or_default();
    tiers.iter().fold(TierCounters::default(), |sum, tier| TierCounters {
        load_misses: sum.load_misses + tier.load_misses,
        store_misses: sum.store_misses + tier.store_misses,
        occupancy: sum.occupancy + tier.occupancy,
        ..sum
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn balance() -> Balance {
        Balance::new(0.05, 0.01, 1.0)
    }

    #[test]
    fn latency_is_occupancy_over_requests() {
        let tier = |load_misses, store_misses, occupancy| TierCounters {
            load_misses,
            store_misses,
            occupancy,
            ..TierCounters::default()
        };
        let mut balance = balance();
        let mut counters =
            Counters { tiers: vec![tier(60, 40, 10_000), tier(50, 0, 15_000)], ..Counters::default() };
        assert_eq!(balance.quantum(&counters), Shift::Promote((2.0 / 3.0 + 1.0) / 2.0 - 2.0 / 3.0));
        assert_eq!(balance.latencies(), [Some(100.0), Some(300.0)]);
        counters.tiers[0].load_misses += 100;
        counters.tiers[0].occupancy += 40_000;
        counters.tiers[1].load_misses += 100;
        counters.tiers[1].occupancy += 20_000;
        assert!(matches!(balance.quantum(&counters), Shift::Demote(_)), "400 ns against 200 ns");
        assert_eq!(balance.requests(), 200.0);
    }

    #[test]
    fn within_delta_it_rests_and_without_requests_too() {
        assert_eq!(balance().shift(100.0, 104.0, 0.5), Shift::Rest);
        assert_eq!(balance().shift(100.0, 106.0, 0.5), Shift::Promote(0.25));
        assert_eq!(balance().shift(100.0, 94.0, 0.5), Shift::Demote(0.25));
        assert_eq!(balance().quantum(&Counters::default()), Shift::Rest);
    }

    #[test]
    fn marks_that_have_met_open_on_the_side_to_which_the_balance_moved() {
        let mut balance = balance();
        (balance.low, balance.high) = (0.5, 0.505);
        assert_eq!(balance.shift(100.0, 200.0, 0.5), Shift::Promote(0.25), "p_hi is 1 again");
        (balance.low, balance.high) = (0.5, 0.505);
        assert_eq!(balance.shift(200.0, 100.0, 0.5), Shift::Demote(0.25), "p_lo is 0 again");
    }

    proptest! {
        /// On tiers whose latency grows with their share, the share converges to equal latencies, or to an
        /// end if even there one tier is slower, from anywhere and after the balance has moved.
        #[test]
        fn it_converges(start in 0.0..1.0f64, first in 0.1..3.0f64, second in 0.1..3.0f64) {
            let (mut balance, mut p) = (balance(), start);
            for fast_load in [first, second] {
                let latencies = |p: f64| (100.0 * (1.0 + fast_load * p), 200.0 + 50.0 * (1.0 - p));
                for _ in 0..60 {
                    let (fast, slow) = latencies(p);
                    match balance.shift(fast, slow, p) {
                        Shift::Rest => {}
                        Shift::Promote(share) => p += share,
                        Shift::Demote(share) => p -= share,
                    }
                }
                let (fast, slow) = latencies(p);
                let equal = (fast - slow).abs() < 0.05 * fast;
                prop_assert!(equal || (p > 0.97 && fast < slow), "p {} latencies {} {}", p, fast, slow);
            }
        }
    }
}
