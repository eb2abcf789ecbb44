//! Checks decisions against exact counts (HybridTier, section 6.4.2): each decision is made again from exact
//! tables, with the same thresholds. A measuring aid: off by default, and no part of the policy's metadata.

use isotherm_core::PageId;
use isotherm_trackers::{DenseTable, Tracker};

use super::decision::{Counts, Demotion};

/// The trackers that were cooled after a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cooled {
    pub(super) frequency: bool,
    pub(super) momentum: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Audit {
    frequency: DenseTable<u16>,
    momentum: DenseTable<u16>,
    pub(super) decisions: u64,
    /// Of these, decisions in which the exact counts move the page otherwise than the filters.
    pub(super) disagreements: u64,
    /// Decisions in which either of the two moves the page: the rest is pages that both leave alone.
    pub(super) moves: u64,
}

impl Audit {
    pub(super) fn new(pages: usize) -> Self {
        let (frequency, momentum) = (DenseTable::new(pages), DenseTable::new(pages));
        Self { frequency, momentum, decisions: 0, disagreements: 0, moves: 0 }
    }

    pub(super) fn count(&mut self, pages: &[(u32, u32)]) {
        for &(page, samples) in pages {
            self.frequency.increase(page, samples);
            self.momentum.increase(page, samples);
        }
    }

    pub(super) fn cool(&mut self, cooled: Cooled) {
        if cooled.frequency {
            self.frequency.age();
        }
        if cooled.momentum {
            self.momentum.age();
        }
    }

    pub(super) fn counts(&self, page: PageId) -> Counts {
        Counts { frequency: self.frequency.get(page.0), momentum: self.momentum.get(page.0) }
    }

    pub(super) fn promotion(&mut self, ours: bool, exact: bool) {
        self.note(ours != exact, ours || exact);
    }

    pub(super) fn demotion(&mut self, ours: Demotion, exact: Demotion) {
        self.note(ours != exact, ours != Demotion::NoAction || exact != Demotion::NoAction);
    }

    fn note(&mut self, disagree: bool, moves: bool) {
        self.decisions += 1;
        self.disagreements += u64::from(disagree);
        self.moves += u64::from(moves);
    }
}
