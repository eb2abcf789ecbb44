//! Fair shares of the fast tier among groups of programs.
//!
//! # Problem
//!
//! Several groups use one machine. Each has an engine of its own that keeps the group's hottest pages fast,
//! in as much fast memory as the group has. How much should each have?
//!
//! # Approach
//!
//! A group makes a [`Claim`]. [`share`] divides the fast tier in three rounds:
//!
//! 1. *Protections.* Each group gets what it uses of its protection. Pressure of others never takes that.
//! 2. *Benefit.* What remains goes, piece by piece, to the group that gains most by it. A group's gain is the
//!    fall of its squared slowdown: the slower a group is now, the more a hit counts. So groups of one weight
//!    that want the same get the same, and a group for which more memory changes little, because it runs
//!    through all of its memory again and again, gets little for that.
//! 3. *Room to grow.* What nobody gains by is spread by weight, so that new memory begins fast.
//!
//! A limit holds in every round. The sum of all shares is never above the fast tier.
//!
//! The slowdown of a group follows from its [`Curve`]: the share of its accesses that its hottest pages take.
//! Curves rise ever more slowly, so the squared slowdown is convex, and giving piece by piece finds the
//! smallest weighted sum of squared slowdowns, up to the size of a piece.
//!
//! ```
//! use isotherm_core::Pages;
//! use isotherm_shares::{Claim, Curve, share};
//!
//! // Two groups of 1000 pages: one has 100 hot pages, the other uses all pages alike.
//! let hot = Curve::of_counts((0..1000).map(|page| if page < 100 { 90 } else { 1 }));
//! let alike = Curve::of_counts((0..1000).map(|_| 10));
//! let claims = [hot, alike].map(|curve| Claim::new(Pages(1000), curve));
//! let shares = share(Pages(400), &claims);
//! assert!(shares[0] >= Pages(100), "its hot pages are fast");
//! assert_eq!(shares[0].0 + shares[1].0, 400);
//! ```

#![forbid(unsafe_code)]

mod allocate;
mod claim;
mod curve;

pub use allocate::share;
pub use claim::Claim;
pub use curve::Curve;

/// Returns Jain's index of fairness: 1 if all values are equal, 1/n if one of n has everything. The index of
/// no values is 1.
///
/// Source: R. Jain, D. Chiu and W. Hawe, DEC-TR-301, 1984.
pub fn jain(values: &[f64]) -> f64 {
    let (sum, squares) =
        values.iter().fold((0.0, 0.0), |(sum, squares), value| (sum + value, squares + value * value));
    if squares > 0.0 { sum * sum / (values.len() as f64 * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_one_among_equals_and_an_nth_where_one_has_all() {
        assert_eq!((jain(&[]), jain(&[2.0, 2.0, 2.0])), (1.0, 1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert!((jain(&[1.0, 3.0]) - 0.8).abs() < 1e-12);
    }
}
