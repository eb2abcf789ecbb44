//! Weighted interleaving: new pages over all tiers, so that a program has the bandwidth of all of them.

use crate::{Allocation, MAX_TIERS};

/// Pages that each tier gets when its turn comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Weights(pub [u8; MAX_TIERS]);

/// Largest difference between a tier's share of the bandwidth and of the pages, unless no sum of weights up
/// to [`MAX_SUM`] is as good.
const TOLERANCE: f64 = 0.005;
/// The kernel's largest weight.
const MAX_SUM: u32 = 255;

impl Weights {
    /// Those that the host derives from the bandwidths of its tiers.
    pub const OF_HOST: Self = Self([0; MAX_TIERS]);

    /// Returns those of the first tiers; the others have none.
    pub fn of_first<const COUNT: usize>(first: [u8; COUNT]) -> Self {
        const { assert!(COUNT <= MAX_TIERS) };
        let mut weights = Self::OF_HOST;
        weights.0[..COUNT].copy_from_slice(&first);
        weights
    }

    /// Returns the smallest weights that divide pages as the bandwidths are divided: small ones spread
    /// neighbouring pages over all tiers. A tier gets at least 1, also one of unknown bandwidth (0); where
    /// none is known, all get 1.
    ///
    /// Linux' automatic mode takes 32 times each share, cut off, which is up to 3 % of all pages beside it.
    pub fn of_bandwidths(bandwidths: &[u64]) -> Self {
        let known = bandwidths.iter().any(|&bandwidth| bandwidth > 0);
        let of = |&bandwidth: &u64| if known { bandwidth as f64 } else { 1.0 };
        let bandwidths: Vec<f64> = bandwidths.iter().map(of).collect();
        let shares = best_shares(f64::INFINITY, &bandwidths);
        let mut best = (f64::INFINITY, Self::OF_HOST);
        for sum in 1..=MAX_SUM {
            let mut weights = Self::OF_HOST;
            for (weight, share) in weights.0.iter_mut().zip(&shares) {
                *weight = (share * f64::from(sum)).round().clamp(1.0, 255.0) as u8;
            }
            let all: f64 = weights.0.iter().map(|&weight| f64::from(weight)).sum();
            let errors =
                weights.0.iter().zip(&shares).map(|(&weight, share)| f64::from(weight) / all - share);
            let error = errors.fold(0.0, |most: f64, error| most.max(error.abs()));
            if error < best.0 {
                best = (error, weights);
            }
            if error <= TOLERANCE {
                break;
            }
        }
        best.1
    }
}

impl Allocation {
    /// Replaces [`Weights::OF_HOST`] by the weights of these bandwidths, of the fastest tier first.
    #[must_use]
    pub fn with_bandwidths(self, bandwidths: &[u64]) -> Self {
        match self {
            Self::Weighted(Weights::OF_HOST) => Self::Weighted(Weights::of_bandwidths(bandwidths)),
            other => other,
        }
    }
}

/// Returns each tier's share of the traffic at which a program runs fastest that is limited by bandwidth and
/// would use `demand` if it were not. Where all pages are accessed alike, these are shares of pages. The unit
/// of demand and bandwidths does not matter.
///
/// # Mathematics
/// Tiers serve at once. Of D bytes a second, tier i with bandwidth `B_i` serves the share `x_i`; work of D
/// bytes takes
///
/// ```text
/// T(x) = max(1, max_i x_i D / B_i),   sum_i x_i = 1
/// ```
///
/// of a second, 1 being the time without any limit. Summing `x_i D <= T B_i` over all tiers gives
/// T >= D / sum B, which `x_i = B_i / sum B` attains: if D exceeds the sum, the shares are in proportion to
/// the bandwidths, and this alone is best, because no other leaves all tiers busy to the end.
///
/// If D does not exceed the sum, every x with `x_i D <= B_i` has T = 1. Of these the fastest tiers' full use
/// has the least latency: tier 0 takes min(D, `B_0`), tier 1 of the rest min(D - `B_0`, `B_1`), and so on. A
/// program that demands less than the bandwidth of the fast tier thus has everything there. Both cases are
///
/// ```text
/// U = min(D, sum B),   x_i = min(B_i, U - sum of B before i) / U
/// ```
pub fn best_shares(demand: f64, bandwidths: &[f64]) -> Vec<f64> {
    let used = bandwidths.iter().sum::<f64>().min(demand);
    if used <= 0.0 {
        // Nothing is known, or nothing is asked for: latency alone counts.
        return (0..bandwidths.len()).map(|tier| f64::from(u8::from(tier == 0))).collect();
    }
    let mut left = used;
    let share = |&bandwidth: &f64| {
        let taken = bandwidth.min(left);
        left -= taken;
        taken / used
    };
    bandwidths.iter().map(share).collect()
}

/// Chooses the tiers of new pages.
#[derive(Debug, Clone, Default)]
pub struct Placing {
    allocation: Allocation,
    /// The tier whose turn it is, and the pages that it got in this turn.
    turn: (usize, u8),
}

impl Placing {
    /// Begins with the fastest tier's turn.
    pub fn new(allocation: Allocation) -> Self {
        Self { allocation, turn: (0, 0) }
    }

    /// Returns the next page's tier, of the number of tiers that there are; `None` where none has room. Tiers
    /// without room lose their turn.
    pub fn next(&mut self, tiers: usize, has_room: impl Fn(&usize) -> bool) -> Option<usize> {
        match self.allocation {
            Allocation::FastFirst => (0..tiers).find(has_room),
            Allocation::SlowFirst => (0..tiers).rev().find(has_room),
            Allocation::Weighted(weights) => {
                self.dealt(weights, tiers, &has_room).or_else(|| (0..tiers).find(has_room))
            }
        }
    }

    fn dealt(
        &mut self,
        Weights(weights): Weights,
        tiers: usize,
        has_room: impl Fn(&usize) -> bool,
    ) -> Option<usize> {
        // The first tier may come again, if its turn was over.
        for _ in 0..=tiers {
            let (tier, got) = self.turn;
            if tier < tiers && got < weights[tier] && has_room(&tier) {
                self.turn.1 += 1;
                return Some(tier);
            }
            self.turn = (if tier + 1 < tiers { tier + 1 } else { 0 }, 0);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deals so many pages to tiers with this room; returns the tiers.
    fn dealt<const TIERS: usize>(of: [u8; TIERS], room: &[usize], pages: usize) -> Vec<Option<usize>> {
        let (mut placing, mut used) =
            (Placing::new(Allocation::Weighted(Weights::of_first(of))), vec![0; room.len()]);
        let mut next = |_| {
            let tier = placing.next(room.len(), |&tier| used[tier] < room[tier])?;
            used[tier] += 1;
            Some(tier)
        };
        (0..pages).map(&mut next).collect()
    }

    #[test]
    fn tiers_get_as_many_pages_in_turn_as_their_weights_say() {
        let expected = [0, 0, 0, 1, 0, 0, 0, 1, 0].map(Some);
        assert_eq!(dealt([3, 1], &[99, 99], 9), expected);
        assert_eq!(dealt([1, 2, 1], &[99, 99, 99], 5), [0, 1, 1, 2, 0].map(Some));
    }

    #[test]
    fn a_full_tier_loses_its_turn_and_one_without_weight_gets_what_no_other_holds() {
        assert_eq!(dealt([3, 1], &[2, 4], 7), [Some(0), Some(0), Some(1), Some(1), Some(1), Some(1), None]);
        assert_eq!(dealt([0, 1], &[1, 2], 4), [Some(1), Some(1), Some(0), None]);
    }

    #[test]
    fn weights_are_the_smallest_that_divide_as_the_bandwidths_do() {
        assert_eq!(Weights::of_bandwidths(&[240_600, 53_400]), Weights::of_first([9, 2]));
        assert_eq!(Weights::of_bandwidths(&[300, 100]), Weights::of_first([3, 1]));
        assert_eq!(Weights::of_bandwidths(&[800, 400, 100]), Weights::of_first([8, 4, 1]));
        assert_eq!(Weights::of_bandwidths(&[1, 1]), Weights::of_first([1, 1]));
        // No bandwidth is known, or one is far smaller.
        assert_eq!(Weights::of_bandwidths(&[0, 0]), Weights::of_first([1, 1]));
        assert_eq!(Weights::of_bandwidths(&[1000, 3]).0[..2], [125, 1]);
    }

    #[test]
    fn weights_of_the_host_follow_its_bandwidths_and_others_stay() {
        let own = Allocation::Weighted(Weights::of_first([7, 1]));
        assert_eq!(own.with_bandwidths(&[1, 1]), own);
        assert_eq!(
            Allocation::Weighted(Weights::OF_HOST).with_bandwidths(&[3, 1]),
            Allocation::Weighted(Weights::of_first([3, 1]))
        );
        assert_eq!(Allocation::SlowFirst.with_bandwidths(&[3, 1]), Allocation::SlowFirst);
    }

    #[test]
    fn shares_are_in_proportion_above_all_bandwidths_and_fastest_first_below() {
        let of = |demand| best_shares(demand, &[60.0, 30.0, 10.0]);
        assert_eq!(of(f64::INFINITY), [0.6, 0.3, 0.1]);
        assert_eq!(of(1000.0), [0.6, 0.3, 0.1]);
        assert_eq!(of(80.0), [0.75, 0.25, 0.0]);
        assert_eq!(of(60.0), [1.0, 0.0, 0.0]);
        assert_eq!(of(1.0), [1.0, 0.0, 0.0]);
        assert_eq!(of(0.0), [1.0, 0.0, 0.0]);
        assert_eq!(best_shares(5.0, &[0.0, 0.0]), [1.0, 0.0]);
    }

    /// No split of a fine grid takes less time than the closed form's, nor the same at more use of the fast
    /// tier.
    #[test]
    fn no_other_split_takes_less_time() {
        let bandwidths = [240.0, 53.0];
        for demand in [10.0, 200.0, 250.0, 280.0, 300.0, 500.0] {
            let time = |fast: f64| {
                let parts = [fast, 1.0 - fast].into_iter().zip(bandwidths);
                parts.fold(1.0, |most: f64, (share, bandwidth)| most.max(share * demand / bandwidth))
            };
            let best = best_shares(demand, &bandwidths)[0];
            for step in 0..=1000 {
                let fast = f64::from(step) / 1000.0;
                assert!(time(fast) >= time(best) - 1e-9, "{demand}: {fast} against {best}");
                assert!(fast <= best + 1e-9 || time(fast) > time(best), "{demand}: {fast} against {best}");
            }
        }
    }
}
