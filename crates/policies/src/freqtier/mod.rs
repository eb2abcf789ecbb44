//! FreqTier: frequency-based tiering with a counting Bloom filter and an intensity that adapts.
//!
//! # Paper
//! "FreqTier", sections IV and V. Recommended there: batches of 100,000 samples, 4-bit counters, a
//! false-positive rate of 0.001 with all fast pages in the filter, an initial hot threshold of 5, sampling at
//! 100, 10 and 1 kHz, hit ratios that are stable within 0.5 % from minute to minute; see `settings`.
//!
//! - Algorithm 1, promotion: [`FreqTier::promote_hot`]; one call a batch, of coalesced pages (section V-C c).
//! - Algorithm 2, demotion: `support::demotion_scan`, which HybridTier shares.
//! - Dynamic hot threshold (section V-C a): `support::hot_threshold`, too.
//! - Dynamic tiering intensity (section V-B 2): `intensity`.
//!
//! The threshold has no floor: the paper lowers it as long as the hot pages do not fill the fast tier (V-C
//! a), to 1 where few pages are sampled. HybridTier's artifact, by the same authors, stops at 3.
//!
//! # Deviations
//! `docs/reference/policies.md` has them: ties, the room of the hot set, chance in hit ratios, demotion scans
//! that fell short, refused promotions, monitoring. A batch that the tick cuts short is handled as it is.

mod intensity;
mod settings;

use isotherm_trackers::{Change, Coalescer, ShapeError, Tracker};

use crate::prelude::*;
use crate::support::SAMPLE_BYTES;
use crate::support::demotion_scan::{DemotionScan, Scan, Watermarks};
use crate::support::filter::COALESCE_OPERATIONS;
use crate::support::hot_threshold::HotThreshold;
use crate::support::prefetch::{CHUNK, Chunk};
use intensity::{Intensity, Level, State};
pub(crate) use settings::Settings;

/// Operations of Algorithm 1 on one page, its filter accesses apart.
const PROMOTE_OPERATIONS: u64 = 4;

#[derive(Debug)]
pub(crate) struct FreqTier {
    settings: Settings,
    watermarks: Watermarks,
    ageing: u64,
    coalescer: Coalescer,
    filter: Box<dyn Tracker>,
    threshold: HotThreshold,
    intensity: Intensity,
    scan: DemotionScan,
    changes: Vec<Change>,
    /// Hot pages of the last batch that are not in the fast tier.
    hot: Vec<PageId>,
    counts: Vec<u32>,
    until_ageing: u64,
    /// Promotions that found no room since the last scan.
    refused: u64,
    /// Hot pages that were left out for want of room since the last scan.
    left_out: u64,
    /// A scan fell short, and nothing has changed since.
    resting: bool,
    work: Work,
}

impl FreqTier {
    /// Fails if the filter would be empty or too large, or there is no memory for it.
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Result<Self, ShapeError> {
        let settings = Settings::read(parameters);
        let filter = settings.shape(setup)?.build(settings.layout())?;
        let watermarks = Watermarks::new(settings.promote_watermark, settings.demote_watermark, setup);
        let ageing = settings.ageing(setup);
        Ok(Self {
            coalescer: Coalescer::default(),
            threshold: HotThreshold::new(settings.threshold(watermarks.promote, setup), filter.maximum()),
            intensity: Intensity::new(
                settings.stable_window,
                settings.monitor_interval,
                settings.stable_within,
            ),
            scan: DemotionScan::new(settings.scan_batch),
            changes: Vec::new(),
            hot: Vec::new(),
            counts: Vec::new(),
            until_ageing: ageing,
            ageing,
            watermarks,
            refused: 0,
            left_out: 0,
            resting: false,
            work: Work::default(),
            filter,
            settings,
        })
    }

    /// Counts a batch's pages and notes those that are hot and not in the fast tier (Algorithm 1).
    fn promote_hot(&mut self, batch: &SampleBatch, view: &dyn View) {
        let pages = self.coalescer.coalesce(batch.samples.iter().map(|sample| sample.page.0));
        self.filter.increase_batch(pages, &mut self.changes);
        for (pairs, changes) in pages.chunks(CHUNK).zip(self.changes.chunks(CHUNK)) {
            let chunk = Chunk::new(pairs.iter().map(|&(page, _)| PageId(page)), view);
            for ((&page, tier), change) in chunk.pages().iter().zip(chunk.tiers()).zip(changes) {
                if tier.is_some_and(|tier| tier != TierId::FAST) && self.threshold.is_hot(page, change.after)
                {
                    self.hot.push(page);
                }
            }
        }
        self.work.operations +=
            COALESCE_OPERATIONS * batch.samples.len() as u64 + PROMOTE_OPERATIONS * pages.len() as u64;
        self.work.touches += batch.samples.len() as u64 + pages.len() as u64 * u64::from(self.filter.lines());
    }

    fn follow(&mut self, samples: u64) {
        let before = self.threshold.certain();
        self.work.operations += self.threshold.follow(&self.changes, samples);
        self.resting &= self.threshold.certain() == before;
        self.until_ageing = self.until_ageing.saturating_sub(samples);
        if self.until_ageing == 0 {
            self.age();
        }
    }

    fn age(&mut self) {
        self.filter.age();
        self.threshold.age();
        self.until_ageing = self.ageing;
        self.resting = false;
        self.work.swept += self.filter.bytes() as u64;
    }

    /// Whether enough was counted to tell cold pages: before, the initial threshold may call everything hot,
    /// and just after an ageing a page that has become hot is no hotter than those that were.
    fn knows_what_is_cold(&self) -> bool {
        self.threshold.knows_distribution()
            && self.ageing - self.until_ageing >= self.threshold.warmup().min(self.ageing / 2)
    }

    fn demote(&mut self, view: &mut dyn View, plan: &mut Plan) -> Option<Scan> {
        let wanted = self.watermarks.wanted(view.free(TierId::FAST).0, self.refused);
        if wanted == 0 || self.resting {
            return None;
        }
        (self.refused, self.left_out) = (0, 0);
        let (filter, threshold, counts) = (&*self.filter, &self.threshold, &mut self.counts);
        let scan =
            self.scan.run(wanted, view, &mut plan.moves, &mut self.work, |pages, limit, moves, work| {
                choose_cold(filter, threshold, counts, pages, limit, moves, work);
            });
        self.resting = scan != Scan::Enough;
        Some(scan)
    }

    fn promote(&mut self, view: &dyn View, plan: &mut Plan) {
        let room = view.free(TierId::FAST).0 as usize + plan.moves.len();
        self.left_out += self.hot.len().saturating_sub(room) as u64;
        // The hot set fits: where hot pages are outside, as many cold ones are inside.
        self.resting &= self.left_out < self.watermarks.promote;
        plan.moves.extend(self.hot.iter().take(room).map(|&page| Move { page, to: TierId::FAST }));
    }

    fn advance(&mut self, now: Nanos) {
        let before = self.intensity.state;
        if self.intensity.advance(now) {
            self.resting = false;
        }
        let resumed = before == State::Monitoring && self.intensity.state != before;
        if resumed && self.settings.age_on_resume {
            self.age();
        }
    }

    fn request(&self, state: State) -> Sampling {
        let settings = &self.settings;
        let rate = match state {
            State::Promoting(Level::High) => SamplingRate::Frequency(settings.sampling_high),
            State::Promoting(Level::Middle) => SamplingRate::Frequency(settings.sampling_middle),
            State::Promoting(Level::Low) => SamplingRate::Frequency(settings.sampling_low),
            State::Monitoring => SamplingRate::Off,
        };
        Sampling::loads(rate, settings.sampling_scope, settings.batch, settings.monitor_interval)
    }
}

/// Looks `pages` up and demotes those that are not hot, at most `limit` (Algorithm 2).
fn choose_cold(
    filter: &dyn Tracker,
    threshold: &HotThreshold,
    counts: &mut Vec<u32>,
    pages: &[u32],
    limit: u64,
    moves: &mut Vec<Move>,
    work: &mut Work,
) {
    filter.get_batch(pages, counts);
    work.touches += pages.len() as u64 * u64::from(filter.lines());
    let cold = pages.iter().zip(&*counts).filter(|&(&page, &count)| !threshold.is_hot(PageId(page), count));
    let cold = cold.map(|(&page, _)| Move { page: PageId(page), to: TierId::FAST.slower() });
    moves.extend(cold.take(limit as usize));
}

impl Policy for FreqTier {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples).with(Signal::TierHits)
    }

    fn sampling(&self) -> Sampling {
        self.request(self.intensity.state)
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        self.intensity.count(batch.counters.load_hits());
        self.threshold.resize(view.capacity(TierId::FAST));
        self.hot.clear();
        if !batch.samples.is_empty() {
            self.promote_hot(batch, view);
            self.follow(batch.samples.len() as u64);
        }
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        let before = self.intensity.state;
        self.advance(now);
        if self.intensity.state != State::Monitoring && view.tiers() > 1 {
            let scan = self.demote(view, plan);
            self.promote(view, plan);
            if scan == Some(Scan::Empty) && self.knows_what_is_cold() {
                self.intensity.found_nothing_cold(now);
            }
        }
        let state = self.intensity.state;
        plan.sampling = (state != before).then(|| self.request(state));
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _view: &mut dyn View) {
        for (step, status) in plan.moves.iter().zip(&outcome.moves) {
            match status {
                MoveStatus::Moved if step.to == TierId::FAST => self.intensity.promoted(1),
                MoveStatus::NoRoom if step.to == TierId::FAST => self.refused += 1,
                _ => {}
            }
        }
    }

    fn metadata(&self) -> Bytes {
        let buffers = self.changes.capacity() * size_of::<Change>()
            + self.hot.capacity() * size_of::<PageId>()
            + self.counts.capacity() * size_of::<u32>();
        let structures =
            self.filter.bytes() + self.coalescer.bytes() + self.threshold.bytes() + self.scan.bytes();
        Bytes((structures + buffers) as u64 + self.settings.batch as u64 * SAMPLE_BYTES)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        let level = match self.intensity.state {
            State::Promoting(level) => f64::from(level as u8),
            State::Monitoring => 3.0,
        };
        gauges.extend([
            Gauge { name: "hot-threshold", value: self.threshold.value() },
            Gauge { name: "sampling-level", value: level },
            Gauge { name: "hot-pages", value: self.threshold.hot_pages() as f64 },
            Gauge { name: "saturated-pages", value: self.threshold.saturated() as f64 },
        ]);
    }
}

#[cfg(test)]
mod tests;
