//! A quota of promotions in a period, saved up while it is not used.

use isotherm_core::{Bytes, Nanos};

use crate::Setup;

/// A quota and the pages that it has saved up, at most one period's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quota {
    /// Pages that may be promoted in a nanosecond.
    rate: f64,
    most: f64,
    saved: f64,
    earned: Nanos,
}

impl Quota {
    /// Creates a quota of `size` in each `period`, with nothing saved.
    pub(crate) fn new(size: Bytes, period: Nanos, setup: &Setup) -> Self {
        let pages = size.0 as f64 / setup.page_size.bytes().0 as f64;
        Self { rate: pages / period.0.max(1) as f64, most: pages.max(1.0), saved: 0.0, earned: Nanos(0) }
    }

    pub(crate) fn pages_in(&self, duration: Nanos) -> f64 {
        self.rate * duration.0 as f64
    }

    /// Saves up what the time since the last call earned. Returns the pages earned.
    pub(crate) fn earn(&mut self, now: Nanos) -> f64 {
        let pages = self.pages_in(now - self.earned);
        self.saved = (self.saved + pages).min(self.most);
        self.earned = now;
        pages
    }

    pub(crate) fn available(&self) -> usize {
        self.saved as usize
    }

    /// Spends the quota of `pages`, which are available.
    pub(crate) fn spend(&mut self, pages: usize) {
        self.saved -= pages as f64;
    }
}
