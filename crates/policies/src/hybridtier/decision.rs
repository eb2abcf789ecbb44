//! Table 1 (HybridTier, section 3.1): what two metrics, each high or low, make of a page.
//!
//! | promote / demote | frequency high | frequency low |
//! |---|---|---|
//! | **momentum high** | promote / no action | promote / no action |
//! | **momentum low** | promote / second chance | no action / demote |
//!
//! The first word is for a sampled page of the slow tier, the second for one of the fast tier that the
//! demotion scan meets. (The printed table leaves its axes open; the text says which cell is which.)

use isotherm_core::PageId;

use crate::support::hot_threshold::HotThreshold;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    /// Samples over the long term.
    pub(super) frequency: u32,
    /// Samples over the last seconds.
    pub(super) momentum: u32,
}

/// The fate of a page of the fast tier when room is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Demotion {
    NoAction,
    /// It is marked, and demoted later if it is not accessed meanwhile.
    SecondChance,
    Demote,
}

#[derive(Debug, Clone)]
pub(super) struct Thresholds {
    /// Of frequency: fitted to the fast tier.
    pub(super) frequency: HotThreshold,
    /// Momentum from here on is high for a page that may be promoted.
    pub(super) promote_momentum: u32,
    pub(super) demote_momentum: u32,
}

impl Thresholds {
    #[inline]
    pub(super) fn promotes(&self, page: PageId, counts: Counts) -> bool {
        counts.momentum >= self.promote_momentum || self.frequency.is_hot(page, counts.frequency)
    }

    #[inline]
    pub(super) fn demotion(&self, page: PageId, counts: Counts) -> Demotion {
        if counts.momentum >= self.demote_momentum {
            Demotion::NoAction
        } else if self.frequency.is_hot(page, counts.frequency) {
            Demotion::SecondChance
        } else {
            Demotion::Demote
        }
    }
}
