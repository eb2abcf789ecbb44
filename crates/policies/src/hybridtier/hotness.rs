//! The two trackers (HybridTier, sections 3.1 and 4.2), each with its cooling, and their thresholds.

use isotherm_core::{PageId, Work};
use isotherm_trackers::{Change, DenseTable, FilterShape, Layout, ShapeError, Tracker};

use super::audit::{Audit, Cooled};
use super::decision::{Counts, Demotion, Thresholds};
use super::settings::{Settings, TrackerKind};
use crate::Setup;
use crate::support::hot_threshold::HotThreshold;

/// Samples between two coolings, and how many of them are left.
#[derive(Debug, Clone, Copy)]
struct Cooling {
    period: u64,
    left: u64,
}

impl Cooling {
    fn new(period: u64) -> Self {
        Self { period, left: period }
    }

    /// Lets `samples` pass; returns whether it is time to cool.
    fn passes(&mut self, samples: u64) -> bool {
        let due = samples >= self.left;
        // A batch's overshoot counts for the next period; a batch longer than a period cools once.
        self.left = if due { self.period - (samples - self.left) % self.period } else { self.left - samples };
        due
    }
}

#[derive(Debug)]
pub(super) struct Hotness {
    frequency: Box<dyn Tracker>,
    momentum: Box<dyn Tracker>,
    pub(super) thresholds: Thresholds,
    frequency_cooling: Cooling,
    momentum_cooling: Cooling,
    frequency_changes: Vec<Change>,
    momentum_changes: Vec<Change>,
    frequency_counts: Vec<u32>,
    momentum_counts: Vec<u32>,
    pub(super) audit: Option<Audit>,
}

impl Hotness {
    /// Returns empty trackers. The hot set leaves `reserve` pages of the fast tier free.
    pub(super) fn new(settings: &Settings, reserve: u64, setup: &Setup) -> Result<Self, ShapeError> {
        let build = |shape: FilterShape| match settings.tracker {
            TrackerKind::Blocked => shape.build(Layout::Blocked),
            TrackerKind::Standard => shape.build(Layout::Standard),
            TrackerKind::Exact => Ok(Box::new(DenseTable::<u16>::new(setup.pages)) as Box<dyn Tracker>),
        };
        let shape = settings.frequency_shape(setup)?;
        let (frequency, momentum) = (build(shape)?, build(settings.momentum_shape(shape, setup)?)?);
        let thresholds = Thresholds {
            frequency: HotThreshold::new(settings.threshold(reserve, setup), frequency.maximum()),
            promote_momentum: settings.promote_momentum(setup).min(momentum.maximum()),
            demote_momentum: settings.demote_momentum(setup).min(momentum.maximum()),
        };
        Ok(Self {
            frequency,
            momentum,
            thresholds,
            frequency_cooling: Cooling::new(settings.frequency_period(setup)),
            momentum_cooling: Cooling::new(settings.momentum_cooling),
            frequency_changes: Vec::new(),
            momentum_changes: Vec::new(),
            frequency_counts: Vec::new(),
            momentum_counts: Vec::new(),
            audit: settings.audit.then(|| Audit::new(setup.pages)),
        })
    }

    pub(super) fn count(&mut self, pages: &[(u32, u32)], work: &mut Work) {
        self.frequency.increase_batch(pages, &mut self.frequency_changes);
        self.momentum.increase_batch(pages, &mut self.momentum_changes);
        work.touches += pages.len() as u64 * self.lines();
        if let Some(audit) = &mut self.audit {
            audit.count(pages);
        }
    }

    /// Returns whether the `index`-th page of the batch counted last, not in the fast tier, is promoted; and
    /// whether it is for its momentum alone.
    pub(super) fn promotes(&mut self, index: usize, page: PageId) -> (bool, bool) {
        let counts = Counts {
            frequency: self.frequency_changes[index].after,
            momentum: self.momentum_changes[index].after,
        };
        let promoted = self.thresholds.promotes(page, counts);
        if let Some(audit) = &mut self.audit {
            audit.promotion(promoted, self.thresholds.promotes(page, audit.counts(page)));
        }
        (promoted, promoted && !self.thresholds.frequency.is_hot(page, counts.frequency))
    }

    pub(super) fn look_up(&mut self, pages: &[u32], work: &mut Work) {
        self.frequency.get_batch(pages, &mut self.frequency_counts);
        self.momentum.get_batch(pages, &mut self.momentum_counts);
        work.touches += pages.len() as u64 * self.lines();
    }

    pub(super) fn looked_up(&self, index: usize) -> Counts {
        Counts { frequency: self.frequency_counts[index], momentum: self.momentum_counts[index] }
    }

    pub(super) fn demotion(&mut self, page: PageId, counts: Counts) -> Demotion {
        let ours = self.thresholds.demotion(page, counts);
        if let Some(audit) = &mut self.audit {
            audit.demotion(ours, self.thresholds.demotion(page, audit.counts(page)));
        }
        ours
    }

    /// Returns whether a page was accessed since it had a frequency of `saved` (halved as the counters were).
    ///
    /// At its largest value a counter cannot rise: there, any momentum is the access.
    pub(super) fn was_accessed(&self, counts: Counts, saved: u32) -> bool {
        counts.frequency > saved || (counts.frequency == self.frequency.maximum() && counts.momentum > 0)
    }

    pub(super) fn follow(&mut self, samples: u64, work: &mut Work) -> Cooled {
        work.operations += self.thresholds.frequency.follow(&self.frequency_changes, samples);
        let cooled = Cooled {
            frequency: self.frequency_cooling.passes(samples),
            momentum: self.momentum_cooling.passes(samples),
        };
        if cooled.frequency {
            self.frequency.age();
            self.thresholds.frequency.age();
            work.swept += self.frequency.bytes() as u64;
        }
        if cooled.momentum {
            self.momentum.age();
            work.swept += self.momentum.bytes() as u64;
        }
        if let Some(audit) = &mut self.audit {
            audit.cool(cooled);
        }
        cooled
    }

    /// Returns the cache lines that one page costs in both trackers.
    fn lines(&self) -> u64 {
        u64::from(self.frequency.lines() + self.momentum.lines())
    }

    pub(super) fn tracker_bytes(&self) -> usize {
        self.frequency.bytes() + self.momentum.bytes()
    }

    pub(super) fn bytes(&self) -> usize {
        let changes = self.frequency_changes.capacity() + self.momentum_changes.capacity();
        let counts = self.frequency_counts.capacity() + self.momentum_counts.capacity();
        self.tracker_bytes()
            + self.thresholds.frequency.bytes()
            + changes * size_of::<Change>()
            + counts * size_of::<u32>()
    }
}

#[cfg(test)]
impl Hotness {
    /// Gives a page these counts, each at most what a counter holds.
    pub(super) fn put(&mut self, page: u32, counts: Counts) {
        self.frequency.increase(page, counts.frequency);
        self.momentum.increase(page, counts.momentum);
    }

    pub(super) fn counts(&self, page: u32) -> Counts {
        Counts { frequency: self.frequency.get(page), momentum: self.momentum.get(page) }
    }

    /// Returns the largest counts, bytes of each tracker.
    pub(super) fn shapes(&self) -> [(u32, usize); 2] {
        [&self.frequency, &self.momentum].map(|tracker| (tracker.maximum(), tracker.bytes()))
    }
}
