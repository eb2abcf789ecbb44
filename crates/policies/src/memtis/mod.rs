//! Memtis: a histogram of access counts, and a hot threshold that fits the fast tier.
//!
//! # Paper
//! Lee et al., "Memtis: Efficient Memory Tiering with Dynamic Page Classification and Page Size
//! Determination", SOSP 2023, and the kernel published with it; described in HybridTier (sections 2 and 3)
//! and Jenga (2.2.2). Parameters and sources: `settings`. `memtis-qc` is the same with quick cooling, as
//! Jenga compares it.
//!
//! - Samples of loads and stores count exactly, page by page (`counts`); cooling halves the counts lazily.
//! - A histogram of 16 bins of powers of two (`histogram`) gives the hot threshold: the largest set of bins
//!   that fits the fast tier less 3 %. While that set is small, the bin below is warm ([`Thresholds`]).
//! - The sampling period follows the time that sampling takes (`period`, which goes there at once).
//! - Every 500 ms, hot pages of slower tiers are promoted and cold pages demoted, within a rate
//!   (`migration`).
//! - Huge pages: `units`, `split`.
//!
//! Deviations: see `docs/reference/policies.md`.

pub(crate) mod counts;
pub(crate) mod histogram;
mod migration;
mod period;
mod settings;
mod split;
mod units;

use crate::prelude::*;
use crate::support::SAMPLE_BYTES;
use crate::support::lists::PageLists;
use crate::support::prefetch::{CHUNK, Chunk};
use counts::{Counts, PageCounts};
use histogram::{Histogram, bin_of, clamp};
use period::PeriodControl;
use settings::Derived;
pub(crate) use settings::{Common, QUICK_COOLING, QuickSettings, Settings, Splits};
use split::Splitter;
use units::Units;

/// Samples that are taken in at once, unless a round of moves comes before. It is larger than a round:
/// coolings and fittings fall on their sample wherever it is in the batch.
const BATCH: usize = 4096;
/// Operations of counting one sample, table accesses apart: shift, add, two logarithms, compare.
const COUNT_OPERATIONS: u64 = 10;

/// Lists of units. Those of the fast tier by class:
const COLD: usize = 0;
const WARM: usize = 1;
const HOT: usize = 2;
/// Hot units of slower tiers.
const PROMOTED: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thresholds {
    hot: u8,
    /// The same as `hot` where there is no warm class.
    warm: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Cold,
    Warm,
    Hot,
}

impl Thresholds {
    fn fit(histogram: &Histogram, derived: &Derived) -> Self {
        let (hot, pages) = histogram.threshold_for(derived.room);
        Self { hot, warm: if pages < derived.warm_below { hot - 1 } else { hot } }
    }

    fn class(self, bin: u8) -> Class {
        match clamp(bin) {
            bin if bin >= self.hot => Class::Hot,
            bin if bin >= self.warm => Class::Warm,
            _ => Class::Cold,
        }
    }
}

/// Memtis (see the module) and, with other counts, the policies built on it.
#[derive(Debug)]
pub(crate) struct Memtis<C = Counts> {
    settings: Common,
    derived: Derived,
    units: Units,
    counts: C,
    histogram: Histogram,
    /// Where ranges are units: their counts.
    splitter: Option<Splitter>,
    thresholds: Thresholds,
    lists: PageLists<4>,
    period: PeriodControl,
    until_adaptation: u64,
    cooled: bool,
    /// Stores since the last one that was taken, where not all are.
    stores: u64,
    next_migration: Nanos,
    /// The lists no longer tell the classes.
    stale: bool,
    /// The last round found too few cold pages, and there are fast pages in no list.
    short: bool,
    chosen: Vec<PageId>,
    /// Ranges to be split by the host.
    splitting: Vec<PageId>,
    splits: u64,
    work: Work,
}

impl Memtis {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let Settings { cooling_samples, common, splits } = Settings::read(parameters);
        Self::with(cooling_samples, common, &splits, setup)
    }
}

impl<C: PageCounts> Memtis<C> {
    pub(crate) fn with(cooling: u64, settings: Common, splits: &Splits, setup: &Setup) -> Self {
        let derived = Derived::new(&settings, splits, setup);
        Self {
            units: Units::new(derived.huge_ranges),
            counts: C::new(setup.pages, cooling),
            histogram: Histogram::new(),
            splitter: derived.huge_ranges.then(|| Splitter::new(setup.pages)),
            thresholds: Thresholds { hot: 1, warm: 1 },
            lists: PageLists::new(setup.pages),
            period: PeriodControl::new(settings.clone()),
            until_adaptation: settings.adaptation_samples,
            cooled: false,
            stores: 0,
            next_migration: settings.migration_interval,
            stale: true,
            short: false,
            chosen: Vec::new(),
            splitting: Vec::new(),
            splits: 0,
            work: Work::default(),
            settings,
            derived,
        }
    }

    /// Returns whether a sample counts: of stores, perhaps only some.
    fn takes(&mut self, sample: &Sample) -> bool {
        if sample.operation == Operation::Load || self.settings.store_period == 0 {
            return true;
        }
        self.stores += u64::from(sample.weight);
        let taken = self.stores >= self.settings.store_period;
        if taken {
            self.stores -= self.settings.store_period;
        }
        taken
    }

    fn count(&mut self, page: PageId, tier: Option<TierId>, view: &dyn View) {
        let Some(tier) = tier else { return };
        let unit = self.units.unit(page);
        let size = self.units.pages(unit).len() as u64;
        let mut rebin = self.counts.add(page, self.derived.weight);
        self.work.touches += 1;
        if let Some(splitter) = &mut self.splitter {
            splitter.count(rebin, tier == TierId::FAST);
            self.work.touches += 2;
            if size > 1 {
                rebin = splitter.ranges.add(unit, 1);
                self.work.touches += 1;
            }
        }
        self.histogram.shift(rebin.before, rebin.after, size);
        let class = self.thresholds.class(rebin.after);
        let list = match (class, tier == TierId::FAST) {
            (Class::Hot, false) => Some(PROMOTED),
            (Class::Warm, true) => Some(WARM),
            (Class::Cold, true) => Some(COLD),
            (Class::Hot, true) if size == 1 => Some(HOT),
            (_, false) if size == 1 => None,
            _ => self.list_for(unit, class, view),
        };
        self.enlist(unit, list);
    }

    fn bin(&self, unit: PageId) -> u8 {
        match &self.splitter {
            Some(splitter) if self.units.pages(unit).len() > 1 => bin_of(splitter.ranges.get(unit)),
            _ => bin_of(self.counts.get(unit)),
        }
    }

    /// Returns the list that a unit of this class belongs to. Of a range whose pages lie in several tiers,
    /// those decide that should move.
    fn list_for(&self, unit: PageId, class: Class, view: &dyn View) -> Option<usize> {
        let is_fast = |tier: TierId| tier == TierId::FAST;
        let mut tiers = self.units.pages(unit).filter_map(|page| view.tier_of(PageId(page)));
        match class {
            Class::Hot if tiers.clone().any(|tier| !is_fast(tier)) => Some(PROMOTED),
            _ if !tiers.any(is_fast) => None,
            Class::Hot => Some(HOT),
            Class::Warm => Some(WARM),
            Class::Cold => Some(COLD),
        }
    }

    fn enlist(&mut self, unit: PageId, list: Option<usize>) {
        if self.lists.list_of(unit) == list {
            return;
        }
        match list {
            Some(list) => self.lists.enqueue(list, unit),
            None => self.lists.remove(unit),
        }
        // The unit's links and those of three neighbours.
        self.work.touches += 4;
    }

    fn follow(&mut self) {
        self.until_adaptation -= 1;
        if let Some(touched) = self.counts.pass(&mut self.histogram) {
            self.work.touches += touched;
            if let Some(splitter) = &mut self.splitter {
                splitter.cool();
            }
            (self.cooled, self.stale) = (true, true);
        }
        if self.until_adaptation == 0 {
            self.until_adaptation = self.settings.adaptation_samples;
            self.adapt();
        }
    }

    fn adapt(&mut self) {
        let before = self.thresholds;
        self.thresholds = Thresholds::fit(&self.histogram, &self.derived);
        self.stale |= self.short || self.thresholds != before;
        self.short = false;
        self.work.operations += u64::from(histogram::BINS);
        if let Some(splitter) = &mut self.splitter {
            splitter.fit(self.derived.room);
            if std::mem::take(&mut self.cooled) {
                let ranges = splitter.choose(&self.counts, &self.units, &self.derived, &mut self.work);
                ranges.into_iter().for_each(|range| self.split(range));
            }
        }
    }

    fn split(&mut self, range: PageId) {
        let Some(splitter) = &self.splitter else { return };
        let pages = self.units.pages(range);
        self.histogram.shift(splitter.ranges.counted_bin(range), 0, pages.len() as u64);
        self.lists.remove(range);
        self.units.split(range);
        self.work.touches += 2 * pages.len() as u64;
        for page in pages {
            self.histogram.shift(0, self.counts.counted_bin(PageId(page)), 1);
        }
        self.splitting.push(range);
        self.splits += 1;
        self.stale = true;
    }

    fn request(&self) -> Sampling {
        let rate = SamplingRate::Period(self.period.period());
        let tick = self.settings.migration_interval;
        Sampling::loads(rate, SamplingScope::AllTiers, BATCH, tick).and_stores()
    }
}

impl<C: PageCounts> Policy for Memtis<C> {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples).with(Signal::StoreSamples)
    }

    fn sampling(&self) -> Sampling {
        self.request()
    }

    /// `ksamplingd` and `kmigrated`; Jenga, section 6: a thread for sampling, others for migrations.
    fn migration_context(&self) -> MigrationContext {
        MigrationContext::Dedicated
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        self.counts.reserve(view.pages());
        self.lists.reserve(view.pages());
        self.units.reserve(view);
        if let Some(splitter) = &mut self.splitter {
            splitter.ranges.reserve(view.pages());
        }
        for samples in batch.samples.chunks(CHUNK) {
            let chunk = Chunk::of(samples, view);
            self.counts.approach(chunk.pages());
            self.lists.approach(chunk.pages());
            for (sample, &tier) in samples.iter().zip(chunk.tiers()) {
                if self.takes(sample) {
                    self.count(sample.page, tier, view);
                    self.follow();
                }
            }
        }
        // Lost samples were taken too: the program was interrupted for them, and a thread that only reads
        // samples, as Memtis' own, would have had to read it.
        self.period.count(batch.samples.len() as u64 + batch.lost);
        self.work.operations += COUNT_OPERATIONS * batch.samples.len() as u64;
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        if self.period.adapt(now) {
            plan.sampling = Some(self.request());
        }
        plan.split.append(&mut self.splitting);
        if now >= self.next_migration && view.tiers() > 1 {
            self.next_migration = now + self.settings.migration_interval;
            self.migrate(view, plan);
        }
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, _outcome: &Outcome, view: &mut dyn View) {
        let mut last = None;
        for step in &plan.moves {
            let unit = self.units.unit(step.page);
            if last.replace(unit) != Some(unit) {
                let list = self.list_for(unit, self.thresholds.class(self.bin(unit)), view);
                self.enlist(unit, list);
            }
        }
    }

    fn metadata(&self) -> Bytes {
        let ranges = self.splitter.as_ref().map_or(0, Splitter::bytes) + self.units.bytes();
        let chosen = self.chosen.capacity() * size_of::<PageId>();
        let structures = self.counts.bytes() + self.lists.bytes() + size_of::<Histogram>();
        Bytes((structures + ranges + chosen) as u64 + BATCH as u64 * SAMPLE_BYTES)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        gauges.extend([
            Gauge { name: "hot-threshold", value: f64::from(self.thresholds.hot) },
            Gauge { name: "warm-threshold", value: f64::from(self.thresholds.warm) },
            Gauge { name: "sampling-period", value: self.period.period() as f64 },
        ]);
        if self.splitter.is_some() {
            gauges.push(Gauge { name: "split-ranges", value: self.splits as f64 });
        }
    }
}

#[cfg(test)]
mod tests;
