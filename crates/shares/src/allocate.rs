//! Divides the fast tier: protections, then benefit, then room to grow.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use isotherm_core::Pages;

use crate::Claim;

/// Pieces into which the fast memory beyond protections is cut.
const PIECES: u64 = 4096;
/// How much more a page is worth that its group already has: as much more must another group gain by it.
const KEEPING: f64 = 1.1;
/// Least activity that counts: a group that sleeps may wake before the next division.
const LEAST_ACTIVITY: f64 = 0.01;

/// A group's next piece.
struct Bid {
    group: usize,
    pages: u64,
    /// Fall of the weighted squared slowdown for each page.
    gain: f64,
}

impl PartialEq for Bid {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Bid {}

impl PartialOrd for Bid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bid {
    /// The largest gain first; of equal ones the group that was named first.
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.group.cmp(&self.group))
    }
}

/// Divides `fast` pages among the groups; returns the share of each in the order of the claims.
///
/// A protection counts up to the group's limit and memory in use. Where all protections together exceed the
/// fast tier, each gets the same part of its own. Shares are bounds, not orders: a group may use less.
pub fn share(fast: Pages, claims: &[Claim]) -> Vec<Pages> {
    let mut shares = protections(fast.0, claims);
    let mut rest = fast.0 - shares.iter().sum::<u64>();
    rest -= by_benefit(rest, claims, &mut shares);
    by_weight(rest, claims, &mut shares);
    shares.into_iter().map(Pages).collect()
}

fn protections(fast: u64, claims: &[Claim]) -> Vec<u64> {
    let wanted = |claim: &Claim| claim.protect.0.min(claim.limit.0).min(claim.mapped.0);
    let all: u128 = claims.iter().map(|claim| u128::from(wanted(claim))).sum();
    let part = |pages: u64| match all > u128::from(fast) {
        // Rounded down, so that the sum is not above the tier.
        true => (u128::from(pages) * u128::from(fast) / all) as u64,
        false => pages,
    };
    claims.iter().map(|claim| part(wanted(claim))).collect()
}

/// Gives pieces to the groups that gain most; returns how many pages were given.
fn by_benefit(rest: u64, claims: &[Claim], shares: &mut [u64]) -> u64 {
    let piece = rest.div_ceil(PIECES).max(1);
    let bid = |group: usize, share: u64| {
        let claim = &claims[group];
        let pages = claim.limit.0.min(claim.mapped.0).saturating_sub(share).min(piece);
        let gain = if pages > 0 { gain(claim, share, pages) } else { 0.0 };
        (gain > 0.0).then_some(Bid { group, pages, gain })
    };
    let mut bids: BinaryHeap<Bid> =
        shares.iter().enumerate().filter_map(|(group, &share)| bid(group, share)).collect();
    let mut given = 0;
    while given < rest
        && let Some(best) = bids.pop()
    {
        let pages = best.pages.min(rest - given);
        shares[best.group] += pages;
        given += pages;
        bids.extend(bid(best.group, shares[best.group]));
    }
    given
}

/// Returns what a page of these brings the group.
fn gain(claim: &Claim, share: u64, pages: u64) -> f64 {
    let square = |pages: u64| claim.slowdown(pages as f64).powi(2);
    let keeping = if share + pages <= claim.held.0 { KEEPING } else { 1.0 };
    let weight = claim.weight * claim.activity.clamp(LEAST_ACTIVITY, 1.0);
    keeping * weight * (square(share) - square(share + pages)) / pages as f64
}

/// Spreads what is left by weight, up to the limits: a group at its limit leaves its part to the others.
fn by_weight(mut rest: u64, claims: &[Claim], shares: &mut [u64]) {
    let room = |group: usize, shares: &[u64]| claims[group].limit.0.saturating_sub(shares[group]);
    while rest > 0 {
        let open: Vec<usize> = (0..claims.len()).filter(|&group| room(group, shares) > 0).collect();
        let weights: f64 = open.iter().map(|&group| claims[group].weight).sum();
        let before = rest;
        for &group in &open {
            let part = (before as f64 * claims[group].weight / weights) as u64;
            let given = part.min(room(group, shares)).min(rest);
            (shares[group], rest) = (shares[group] + given, rest - given);
        }
        if rest == before {
            // Fewer pages than groups.
            for &group in open.iter().take(rest as usize) {
                (shares[group], rest) = (shares[group] + 1, rest - 1);
            }
            if open.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Curve, jain};

    /// Returns a group of which a share of the accesses go to some hot pages, and the rest to all.
    fn skewed(mapped: u64, hot: u64, accesses: f64) -> Claim {
        let points = [(hot as f64, accesses), (mapped as f64, 1.0)];
        Claim::new(Pages(mapped), Curve::of_points(points).expect("a curve"))
    }

    fn uniform(mapped: u64) -> Claim {
        Claim::new(Pages(mapped), Curve::uniform(Pages(mapped)))
    }

    fn pages(shares: &[Pages]) -> Vec<u64> {
        shares.iter().map(|pages| pages.0).collect()
    }

    #[test]
    fn equal_groups_get_equal_shares() {
        let shares = share(Pages(999), &[uniform(1000), uniform(1000), uniform(1000)]);
        assert_eq!(pages(&shares), [333, 333, 333]);
    }

    /// A group gains by hits, not by having many pages.
    #[test]
    fn hot_pages_are_fast_before_others() {
        let shares = share(Pages(1000), &[skewed(10_000, 500, 0.9), uniform(100_000)]);
        assert!((500..=510).contains(&shares[0].0), "{shares:?}");
    }

    #[test]
    fn a_group_twice_as_heavy_is_slowed_less() {
        let heavy = Claim { weight: 2.0, ..uniform(1000) };
        let claims = [heavy, uniform(1000)];
        let shares = share(Pages(1000), &claims);
        assert!(shares[0].0 > 600, "{shares:?}");
        let slowdown = |group: usize| claims[group].slowdown(shares[group].0 as f64);
        assert!((slowdown(1) / slowdown(0) - 2.0).abs() < 0.02, "the weighted slopes are equal");
    }

    #[test]
    fn protections_that_exceed_the_tier_are_cut_alike() {
        let protected = |protect| Claim { protect: Pages(protect), ..uniform(1000) };
        assert_eq!(pages(&share(Pages(100), &[protected(300), protected(100)])), [75, 25]);
    }

    #[test]
    fn an_unused_protection_is_lent() {
        let small = Claim { protect: Pages(800), ..uniform(100) };
        let shares = share(Pages(1000), &[small, uniform(900)]);
        assert_eq!(pages(&shares), [100, 900]);
    }

    #[test]
    fn what_nobody_gains_by_is_room_to_grow() {
        let limited = Claim { limit: Pages(150), ..uniform(100) };
        let heavy = Claim { weight: 3.0, ..uniform(100) };
        assert_eq!(pages(&share(Pages(1000), &[limited, heavy, uniform(100)])), [150, 588, 262]);
    }

    #[test]
    fn a_sleeping_group_lends_its_memory_but_not_its_protection() {
        let asleep = Claim { activity: 0.0, protect: Pages(200), ..uniform(1000) };
        let shares = share(Pages(1000), &[asleep, uniform(1000)]);
        assert!(shares[0].0 >= 200 && shares[1].0 > 790, "{shares:?}");
    }

    #[test]
    fn memory_moves_for_a_real_gain_only() {
        let holds = |held| Claim { held: Pages(held), ..uniform(1000) };
        let near = share(Pages(1000), &[holds(510), holds(490)]);
        assert_eq!(pages(&near), [510, 490], "a little more is not worth the moves");
        let far = share(Pages(1000), &[holds(800), holds(200)]);
        assert!(far[0].0 < 600, "{far:?}");
    }

    fn any_claim() -> impl Strategy<Value = Claim> {
        let points = prop::collection::vec((1.0..20_000.0, 0.0..1.0), 1..6);
        (0..20_000u64, 0..20_000u64, 0..20_000u64, 0.1..10.0, 0..20_000u64, 0.0..1.0, points, 1.0..9.0)
            .prop_map(|(protect, limit, mapped, weight, held, activity, points, slow)| Claim {
                protect: Pages(protect),
                limit: Pages(limit),
                weight,
                mapped: Pages(mapped),
                held: Pages(held),
                activity,
                curve: Curve::of_points(points).expect("points"),
                slow,
            })
    }

    proptest! {
        #[test]
        fn protections_limits_and_the_sum_always_hold(
            fast in 0..50_000u64,
            claims in prop::collection::vec(any_claim(), 0..8),
        ) {
            let shares = share(Pages(fast), &claims);
            let sum: u64 = shares.iter().map(|share| share.0).sum();
            prop_assert!(sum <= fast);
            let wanted: Vec<u64> =
                claims.iter().map(|claim| claim.protect.0.min(claim.limit.0).min(claim.mapped.0)).collect();
            let all: u64 = wanted.iter().sum();
            for ((claim, share), wanted) in claims.iter().zip(&shares).zip(wanted) {
                prop_assert!(share.0 <= claim.limit.0);
                prop_assert!(all > fast || share.0 >= wanted, "{share:?} of {wanted}");
            }
            // Nothing is left while a group may still use it.
            prop_assert!(sum == fast || claims.iter().zip(&shares).all(|(claim, share)| *share == claim.limit));
        }

        /// Whatever the others claim, a protected group has its protection.
        #[test]
        fn pressure_of_others_takes_no_protected_page(
            others in prop::collection::vec(any_claim(), 0..8),
            mapped in 1..9000u64,
        ) {
            let others: Vec<Claim> =
                others.into_iter().map(|claim| Claim { protect: Pages(0), ..claim }).collect();
            let protected = Claim { protect: Pages(5000), ..uniform(mapped) };
            let claims: Vec<Claim> = std::iter::once(protected).chain(others).collect();
            prop_assert!(share(Pages(10_000), &claims)[0].0 >= mapped.min(5000));
        }

        /// No single page would do more good in another group, but for the size of a piece.
        #[test]
        fn no_exchange_of_pieces_lowers_the_sum_of_squares(
            fast in 8192..50_000u64,
            claims in prop::collection::vec(any_claim(), 2..6),
        ) {
            let claims: Vec<Claim> =
                claims.into_iter().map(|claim| Claim { held: Pages(0), ..claim }).collect();
            let shares = share(Pages(fast), &claims);
            let cost = |shares: &[u64]| -> f64 {
                claims.iter().zip(shares).map(|(claim, &share)| {
                    let share = share.min(claim.mapped.0) as f64;
                    claim.weight * claim.activity.clamp(LEAST_ACTIVITY, 1.0) * claim.slowdown(share).powi(2)
                }).sum()
            };
            let now: Vec<u64> = shares.iter().map(|share| share.0).collect();
            let (best, piece) = (cost(&now), 2 * fast.div_ceil(PIECES));
            for from in 0..now.len() {
                for to in 0..now.len() {
                    let floor = claims[from].protect.0.min(claims[from].limit.0).min(claims[from].mapped.0);
                    if from == to || now[from] < floor + piece || now[to] + piece > claims[to].limit.0 {
                        continue;
                    }
                    let mut other = now.clone();
                    (other[from], other[to]) = (other[from] - piece, other[to] + piece);
                    // A piece may reach over a bend of a curve.
                    prop_assert!(cost(&other) > best - 0.02 * best, "{from} -> {to}: {now:?}");
                }
            }
        }

        /// Equal groups are slowed alike, whatever their number and weight.
        #[test]
        fn equal_groups_are_slowed_alike(count in 1..9usize, fast in 100..20_000u64, claim in any_claim()) {
            let claim = Claim { protect: Pages(0), held: Pages(0), ..claim };
            let claims = vec![claim; count];
            let shares = share(Pages(fast), &claims);
            let slowdowns: Vec<f64> = claims
                .iter().zip(&shares).map(|(claim, share)| claim.slowdown(share.0.min(claim.mapped.0) as f64))
                .collect();
            prop_assert!(jain(&slowdowns) > 0.99, "{slowdowns:?}");
        }
    }
}
