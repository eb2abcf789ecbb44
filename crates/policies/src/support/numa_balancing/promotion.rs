//! The choice of hint faults that promote their page in tiering mode (`should_numa_migrate_memory`).

use isotherm_core::{HintFault, Nanos};

use super::Watermarks;
use super::settings::PromotionSettings;
use super::threshold::{HotThreshold, RateLimit};
use crate::Setup;

/// Parts of the fast tier of which one must be free for everything to be promoted.
const ENOUGH_PARTS: u64 = 16;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Promotion {
    threshold: HotThreshold,
    adjust_period: Nanos,
    limit: RateLimit,
    enough: u64,
}

impl Promotion {
    pub(crate) fn new(settings: &PromotionSettings, marks: Watermarks, setup: &Setup) -> Self {
        let adjust_period = settings.adjust_period;
        let rate = settings.rate_limit.0 as f64 / setup.page_size.bytes().0 as f64;
        let enough = setup.pages_in(settings.enough_free).max(setup.fast.0 / ENOUGH_PARTS);
        Self {
            threshold: HotThreshold::new(settings.hot_threshold, adjust_period),
            adjust_period,
            limit: RateLimit::new(rate, settings.rate_period),
            enough: marks.promo + enough,
        }
    }

    pub(crate) fn threshold(&self) -> Nanos {
        self.threshold.value()
    }

    /// Returns whether a faulting slow page is promoted, with `free` pages of the fast tier free.
    pub(crate) fn admits(&mut self, fault: &HintFault, free: u64) -> bool {
        if free >= self.enough {
            // The workload has changed: what was learned of its hotness is void.
            self.threshold.reset();
            return true;
        }
        self.admits_hot(fault)
    }

    pub(crate) fn admits_hot(&mut self, fault: &HintFault) -> bool {
        let target = self.limit.pages_in(self.adjust_period);
        self.threshold.adjust(fault.time, self.limit.candidates, target);
        fault.latency < self.threshold.value() && self.limit.admits(fault.time)
    }
}
