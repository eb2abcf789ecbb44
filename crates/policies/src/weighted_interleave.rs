//! Weighted interleaving: new pages go to all tiers in turn, so that a program has the bandwidth of all.
//!
//! # Source
//! Linux 6.9, `MPOL_WEIGHTED_INTERLEAVE` (Documentation/admin-guide/mm/numa_memory_policy.rst): the tiers
//! with room take turns, each for as many pages as its weight. Since 6.16 the kernel derives the weights from
//! the bandwidths that firmware reports (`weighted_interleave/auto`). Nothing is sampled and nothing moves.
//!
//! # Deviations
//! Weights are of tiers, not of nodes. Those from bandwidths are closer to the bandwidths than the kernel's
//! ([`Weights::of_bandwidths`]); `best_shares` in `core` has the mathematics. The simulator takes the read
//! bandwidth of the profile: all accesses read a line, and what a profile calls its write bandwidth is what
//! is written beside reads, not what firmware reports. Pages of all kinds take part; in the kernel, pages
//! that the process did not ask for itself, such as files that it shares, follow their own rules.

use crate::prelude::*;

/// A long tick: it has nothing to do.
const TICK: Nanos = Nanos(3600 * Nanos::SECOND.0);

const WEIGHT: isotherm_core::parameters::build::Builder<u8> =
    isotherm_core::parameters::build::count(0, 255, "0");
const SOURCE: &str = "Linux 6.16: from bandwidths; a weight is at most 255";

parameters! {
    pub(crate) struct Settings {
        /// Pages that the fastest tier gets in turn. If all four are 0, weights follow from bandwidths; else
        /// a tier of weight 0 gets what no other has room for.
        tier_0: u8 = WEIGHT.unit("pages").source(SOURCE),
        /// The same of the second tier.
        tier_1: u8 = WEIGHT.unit("pages").source(SOURCE),
        /// The same of the third tier.
        tier_2: u8 = WEIGHT.unit("pages").source(SOURCE),
        /// The same of the fourth tier.
        tier_3: u8 = WEIGHT.unit("pages").source(SOURCE),
    }
}

#[derive(Debug)]
pub(crate) struct WeightedInterleave {
    weights: Weights,
}

impl WeightedInterleave {
    pub(crate) fn new(parameters: &Parameters, _: &Setup) -> Self {
        let Settings { tier_0, tier_1, tier_2, tier_3 } = Settings::read(parameters);
        Self { weights: Weights::of_first([tier_0, tier_1, tier_2, tier_3]) }
    }
}

impl Policy for WeightedInterleave {
    fn signals(&self) -> Signals {
        Signals::NONE
    }

    fn sampling(&self) -> Sampling {
        Sampling::loads(SamplingRate::Off, SamplingScope::AllTiers, usize::MAX, TICK)
    }

    fn allocation(&self) -> Allocation {
        Allocation::Weighted(self.weights)
    }

    fn observe(&mut self, _batch: &SampleBatch, _view: &mut dyn View) {}

    fn step(&mut self, _now: Nanos, _view: &mut dyn View, _plan: &mut Plan) {}

    fn metadata(&self) -> Bytes {
        Bytes(size_of::<Weights>() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::test_view::{TestView, batch_of, parameters, setup};

    fn with(settings: &[(&str, &str)]) -> WeightedInterleave {
        WeightedInterleave::new(&parameters(Settings::SPECS, settings), &setup(8, 4))
    }

    #[test]
    fn new_pages_go_by_the_weights_that_are_set_and_else_by_the_hosts() {
        assert_eq!(with(&[]).allocation(), Allocation::Weighted(Weights::OF_HOST));
        let expected = Weights::of_first([9, 2]);
        assert_eq!(with(&[("tier_0", "9"), ("tier_1", "2")]).allocation(), Allocation::Weighted(expected));
    }

    #[test]
    fn it_samples_nothing_and_moves_nothing() {
        let mut view = TestView::new(&[Pages(4), Pages(8)], 8);
        let (mut policy, mut plan) = (with(&[]), Plan::default());
        policy.observe(&batch_of(&view, &[7, 7, 7], (0, 3)), &mut view);
        policy.step(Nanos::SECOND, &mut view, &mut plan);
        assert!(!plan.moves_pages() && plan.sampling.is_none());
        assert_eq!((policy.sampling().rate, policy.signals()), (SamplingRate::Off, Signals::NONE));
    }
}
