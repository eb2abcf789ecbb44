//! Monitor mode (HybridTier's artifact; the paper is silent): while there is nothing left to move, nothing is
//! sampled.
//!
//! It begins when
//! - two demotion scans in a row found too few cold pages, and none that gets a second chance: the fast tier
//!   is full of hot ones;
//! - or ten times one did and the next found enough again;
//! - or promotions reached a plateau: past the first 500 batches, 20 batches promoted at most 25,000 pages.
//!   While the hot pages would not fill four fifths of the fast tier, the first plateaus only lower the
//!   artifact's threshold, step by step from 5 to 3; here, where it is fitted, they only count.
//!
//! Nothing is looked at for 120 s, then the hit ratio each 60 s. Where the line through the last five falls
//! by more than a point a minute, or no load was counted that would tell, the accesses have changed: sampling
//! begins again, with aged counters. The first of the five is ours: that of the last look at promotions, as
//! the artifact never notices a change that comes while it does not look.

use std::collections::VecDeque;

use isotherm_core::Nanos;

/// Hit ratios in the regression.
const RATIOS: usize = 5;
/// Change of the hit ratio from one to the next below which sampling begins again.
const SLOPE: f64 = -0.01;
/// Scans that fell short once before it is given up.
const RESETS: u32 = 10;

#[derive(Debug, Clone, Copy)]
pub(super) struct MonitorSettings {
    /// Samples before promotions count as a plateau, samples of one look at it, and pages that make it one.
    pub(super) plateau_start: u64,
    pub(super) plateau_samples: u64,
    pub(super) plateau_pages: u64,
    /// Plateaus that the artifact spends on lowering its threshold.
    pub(super) plateaus: u32,
    /// Hot pages that fill the fast tier as far as it asks for.
    pub(super) enough_hot: u64,
    /// Time without a look at hits, and time between two looks.
    pub(super) quiet: Nanos,
    pub(super) interval: Nanos,
}

#[derive(Debug, Clone)]
pub(super) struct Monitor {
    settings: MonitorSettings,
    /// Samples of the run, and samples and promotions since the last look at the plateau.
    samples: u64,
    seen: u64,
    promoted: u64,
    plateaus: u32,
    plateau: bool,
    /// The last scan found too few cold pages; how often the one behind such a scan found enough; whether two
    /// in a row did not, or it is given up.
    short: bool,
    resets: u32,
    exhausted: bool,
    /// In monitor mode: when hits are looked at next.
    next: Option<Nanos>,
    /// Load misses served by the fast tier and by all: now, and at the last look; `None` before the first.
    hits: (u64, u64),
    /// At the last look at the plateau: these hits, and their ratio since the one before.
    looked: ((u64, u64), Option<f64>),
    before: Option<(u64, u64)>,
    ratios: VecDeque<f64>,
}

impl Monitor {
    pub(super) fn new(settings: MonitorSettings) -> Self {
        Self {
            settings,
            samples: 0,
            seen: 0,
            promoted: 0,
            plateaus: 0,
            plateau: false,
            short: false,
            resets: 0,
            exhausted: false,
            next: None,
            hits: (0, 0),
            looked: ((0, 0), None),
            before: None,
            ratios: VecDeque::new(),
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.next.is_some()
    }

    /// Learns the counters: load misses of the fast tier and of all, since the start.
    pub(super) fn count(&mut self, load_hits: (u64, u64)) {
        self.hits = load_hits;
    }

    pub(super) fn promoted(&mut self, pages: u64) {
        self.promoted += pages;
    }

    /// Learns of so many samples, and how many pages are hot now.
    pub(super) fn sampled(&mut self, samples: u64, hot_pages: u64) {
        self.samples += samples;
        self.seen += samples;
        if self.seen >= self.settings.plateau_samples {
            let learned = self.samples > self.settings.plateau_start;
            let reached = learned && self.promoted <= self.settings.plateau_pages;
            let full = hot_pages >= self.settings.enough_hot;
            self.plateau = reached && (full || self.plateaus == self.settings.plateaus);
            self.plateaus += u32::from(reached && !self.plateau);
            self.looked = (self.hits, ratio(self.looked.0, self.hits));
            (self.seen, self.promoted) = (0, 0);
        }
    }

    /// Learns whether a demotion scan found enough cold pages.
    pub(super) fn scanned(&mut self, enough: bool) {
        self.resets += u32::from(enough && self.short);
        self.exhausted |= (!enough && self.short) || self.resets >= RESETS;
        self.short = !enough;
    }

    /// Begins monitor mode if there is a reason. Returns whether it did.
    pub(super) fn begins(&mut self, now: Nanos) -> bool {
        if !self.plateau && !self.exhausted {
            return false;
        }
        *self = Self {
            samples: self.samples,
            hits: self.hits,
            looked: (self.hits, None),
            next: Some(now + self.settings.quiet),
            ratios: self.looked.1.into_iter().collect(),
            ..Self::new(self.settings)
        };
        true
    }

    /// Looks at the hits if it is time. Returns whether sampling begins again.
    pub(super) fn ends(&mut self, now: Nanos) -> bool {
        let Some(next) = self.next.filter(|&next| now >= next) else { return false };
        self.next = Some(next.max(now) + self.settings.interval);
        let Some(before) = self.before.replace(self.hits) else { return false };
        let measured = ratio(before, self.hits);
        if self.ratios.len() == RATIOS {
            self.ratios.pop_front();
        }
        self.ratios.extend(measured);
        let over = measured.is_none() || (self.ratios.len() == RATIOS && slope(&self.ratios) < SLOPE);
        if over {
            self.next = None;
        }
        over
    }
}

/// Returns the hit ratio between two counts; `None` without loads.
fn ratio(before: (u64, u64), now: (u64, u64)) -> Option<f64> {
    let (hits, loads) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
    (loads > 0).then(|| hits as f64 / loads as f64)
}

/// Returns the slope of the line of best fit through equally spaced values.
fn slope(values: &VecDeque<f64>) -> f64 {
    let middle = (values.len() - 1) as f64 / 2.0;
    let distances = (0..values.len()).map(|index| index as f64 - middle);
    let spread: f64 = distances.clone().map(|distance| distance * distance).sum();
    distances.zip(values).map(|(distance, value)| distance * value).sum::<f64>() / spread
}
