//! The two trackers (HybridTier, sections 3.1 and 4.2), each with its cooling, and their thresholds.

use isotherm_core::{PageId, Work};
use isotherm_trackers::{Change, DenseTable, FilterShape, Layout, ShapeError, Tracker};

use super::audit::{Audit, Cooled};
use super::decision::{Counts, Demotion, Thresholds};
use super::settings::{Settings, TrackerKind};
use crate::Setup;
use crate::support::hot_threshold::HotThreshold;

/// A tracker, its cooling, and what it said of the last batch counted and of the pages looked up last.
#[derive(Debug)]
struct Metric {
    tracker: Box<dyn Tracker>,
    /// Samples between two coolings, and how many of them are left.
    period: u64,
    left: u64,
    changes: Vec<Change>,
    counts: Vec<u32>,
}

impl Metric {
    fn new(tracker: Box<dyn Tracker>, period: u64) -> Self {
        Self { tracker, period, left: period, changes: Vec::new(), counts: Vec::new() }
    }

    /// Lets `samples` pass, and cools if it is time. Returns whether it did.
    fn cools(&mut self, samples: u64, work: &mut Work) -> bool {
        let due = samples >= self.left;
        // A batch's overshoot counts for the next period; a batch longer than a period cools once.
        self.left = if due { self.period - (samples - self.left) % self.period } else { self.left - samples };
        if due {
            self.tracker.age();
            work.swept += self.tracker.bytes() as u64;
        }
        due
    }

    fn buffers(&self) -> usize {
        self.changes.capacity() * size_of::<Change>() + self.counts.capacity() * size_of::<u32>()
    }
}

#[derive(Debug)]
pub(super) struct Hotness {
    frequency: Metric,
    momentum: Metric,
    pub(super) thresholds: Thresholds,
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
            frequency: Metric::new(frequency, settings.frequency_period(setup)),
            momentum: Metric::new(momentum, settings.momentum_cooling),
            thresholds,
            audit: settings.audit.then(|| Audit::new(setup.pages)),
        })
    }

    pub(super) fn count(&mut self, pages: &[(u32, u32)], work: &mut Work) {
        for metric in [&mut self.frequency, &mut self.momentum] {
            metric.tracker.increase_batch(pages, &mut metric.changes);
        }
        work.touches += pages.len() as u64 * self.lines();
        if let Some(audit) = &mut self.audit {
            audit.count(pages);
        }
    }

    /// Returns whether the `index`-th page of the batch counted last, not in the fast tier, is promoted; and
    /// whether it is for its momentum alone.
    pub(super) fn promotes(&mut self, index: usize, page: PageId) -> (bool, bool) {
        let counts = Counts {
            frequency: self.frequency.changes[index].after,
            momentum: self.momentum.changes[index].after,
        };
        let promoted = self.thresholds.promotes(page, counts);
        if let Some(audit) = &mut self.audit {
            audit.promotion(promoted, self.thresholds.promotes(page, audit.counts(page)));
        }
        (promoted, promoted && !self.thresholds.frequency.is_hot(page, counts.frequency))
    }

    /// Returns whether the `index`-th page's samples in the batch counted last told nothing new: its
    /// frequency counter was full.
    pub(super) fn was_saturated(&self, index: usize) -> bool {
        self.frequency.changes[index].before == self.frequency.tracker.maximum()
    }

    pub(super) fn look_up(&mut self, pages: &[u32], work: &mut Work) {
        for metric in [&mut self.frequency, &mut self.momentum] {
            metric.tracker.get_batch(pages, &mut metric.counts);
        }
        work.touches += pages.len() as u64 * self.lines();
    }

    pub(super) fn looked_up(&self, index: usize) -> Counts {
        Counts { frequency: self.frequency.counts[index], momentum: self.momentum.counts[index] }
    }

    pub(super) fn demotion(&mut self, page: PageId, counts: Counts) -> Demotion {
        let ours = self.thresholds.demotion(page, counts);
        if let Some(audit) = &mut self.audit {
            audit.demotion(ours, self.thresholds.demotion(page, audit.counts(page)));
        }
        ours
    }

    /// Returns whether a page was accessed since it had a frequency of `saved` (halved as the counters were).
    /// At its largest value a counter cannot rise: there, any momentum is the access.
    pub(super) fn was_accessed(&self, counts: Counts, saved: u32) -> bool {
        counts.frequency > saved
            || (counts.frequency == self.frequency.tracker.maximum() && counts.momentum > 0)
    }

    pub(super) fn follow(&mut self, samples: u64, work: &mut Work) -> Cooled {
        work.operations += self.thresholds.frequency.follow(&self.frequency.changes, samples);
        let cooled = Cooled {
            frequency: self.frequency.cools(samples, work),
            momentum: self.momentum.cools(samples, work),
        };
        if cooled.frequency {
            self.thresholds.frequency.age();
        }
        if let Some(audit) = &mut self.audit {
            audit.cool(cooled);
        }
        cooled
    }

    /// Ages both trackers: what was hot before monitor mode need not be now.
    pub(super) fn age(&mut self, work: &mut Work) {
        for metric in [&mut self.frequency, &mut self.momentum] {
            metric.tracker.age();
            work.swept += metric.tracker.bytes() as u64;
        }
        self.thresholds.frequency.age();
        if let Some(audit) = &mut self.audit {
            audit.cool(Cooled { frequency: true, momentum: true });
        }
    }

    /// Returns the cache lines that one page costs in both trackers.
    fn lines(&self) -> u64 {
        u64::from(self.frequency.tracker.lines() + self.momentum.tracker.lines())
    }

    pub(super) fn tracker_bytes(&self) -> usize {
        self.frequency.tracker.bytes() + self.momentum.tracker.bytes()
    }

    pub(super) fn bytes(&self) -> usize {
        let buffers = self.frequency.buffers() + self.momentum.buffers();
        self.tracker_bytes() + self.thresholds.frequency.bytes() + buffers
    }
}

#[cfg(test)]
impl Hotness {
    /// Gives a page these counts, each at most what a counter holds.
    pub(super) fn put(&mut self, page: u32, counts: Counts) {
        self.frequency.tracker.increase(page, counts.frequency);
        self.momentum.tracker.increase(page, counts.momentum);
    }

    pub(super) fn counts(&self, page: u32) -> Counts {
        Counts { frequency: self.frequency.tracker.get(page), momentum: self.momentum.tracker.get(page) }
    }

    /// Returns the largest counts, bytes of each tracker.
    pub(super) fn shapes(&self) -> [(u32, usize); 2] {
        [&self.frequency.tracker, &self.momentum.tracker].map(|tracker| (tracker.maximum(), tracker.bytes()))
    }
}
