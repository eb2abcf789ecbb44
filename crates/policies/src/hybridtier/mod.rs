//! HybridTier: two counting Bloom filters, one for the long term and one for the last seconds.
//!
//! # Paper
//! "HybridTier: an Adaptive and Lightweight CXL-Memory Tiering System", ASPLOS 2025, sections 3 and 4.
//! Recommended there: batches of 100,000 samples, k = 4, p = 0.001, as many keys as the fast tier has pages,
//! a momentum filter 128 times smaller, a momentum threshold of 3, a second look after a minute. `settings`
//! has each parameter's source and, as `preset=artifact`, the values of the published artifact.
//!
//! - Table 1, the choice of promotions and demotions: `decision`.
//! - Both trackers and their cooling (sections 3.1, 4.2): `hotness`.
//! - Second chance (sections 3.1, 4.3): `second_chance`.
//! - From the artifact, where the paper is silent: `monitor` mode; the floor of the frequency threshold; the
//!   fast tier's event is halved in frequency while four of five of its samples find their counter full.
//! - Frequency threshold that fits the fast tier (section 3.1) and scan between the watermarks (section 4.3):
//!   `support::hot_threshold` and `support::demotion_scan`, shared with FreqTier.
//! - The comparison with an exact table (section 6.4.2): `audit`.
//!
//! # Deviations
//! Paper and artifact differ in the frequency threshold: fitted to the fast tier in the paper and here, one
//! lower at each plateau in the artifact. `docs/reference/policies.md` has the others: coalesced batches,
//! saved counts that are halved with the counters, scans that fell short, what ends and begins monitor mode;
//! and as in FreqTier ties, the room of the hot set and refused promotions.

mod audit;
mod decision;
mod hotness;
mod monitor;
mod second_chance;
mod settings;

use isotherm_trackers::{Coalescer, ShapeError};

use crate::prelude::*;
use crate::support::SAMPLE_BYTES;
use crate::support::demotion_scan::{DemotionScan, Scan, Watermarks};
use crate::support::filter::COALESCE_OPERATIONS;
use crate::support::prefetch::{CHUNK, Chunk};
use decision::Demotion;
use hotness::Hotness;
use monitor::Monitor;
use second_chance::{Mark, SecondChances};
pub(crate) use settings::{PRESETS, Settings};

/// Operations of deciding on one sampled page, its tracker accesses apart.
const DECIDE_OPERATIONS: u64 = 5;

#[derive(Debug)]
pub(crate) struct HybridTier {
    settings: Settings,
    watermarks: Watermarks,
    coalescer: Coalescer,
    hotness: Hotness,
    chances: SecondChances,
    scan: DemotionScan,
    hot: Vec<PageId>,
    /// Of all pages that were to be promoted so far, those that only their momentum spoke for.
    by_momentum: u64,
    due: Vec<Mark>,
    due_pages: Vec<u32>,
    /// Promotions that found no room since the last scan.
    refused: u64,
    /// Hot pages that were left out for want of room since the last scan.
    left_out: u64,
    /// A scan fell short, and nothing has changed since.
    resting: bool,
    monitor: Monitor,
    /// Counted samples of the last batch.
    sampled: u64,
    /// How many times rarer the fast tier's samples are than the slow one's, by frequency; and its most.
    fast_divisor: u32,
    most_divisor: u32,
    /// The last request.
    asked: Sampling,
    work: Work,
}

impl HybridTier {
    /// Fails if a filter would be empty or too large, or there is no memory for it.
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Result<Self, ShapeError> {
        let settings = Settings::read(parameters);
        let watermarks = Watermarks::new(settings.promote_watermark, settings.demote_watermark, setup);
        Ok(Self {
            coalescer: Coalescer::default(),
            hotness: Hotness::new(&settings, watermarks.promote, setup)?,
            chances: SecondChances::new(settings.second_chances, settings.revisit, setup.pages),
            scan: DemotionScan::new(settings.scan_batch),
            hot: Vec::new(),
            by_momentum: 0,
            due: Vec::new(),
            due_pages: Vec::new(),
            refused: 0,
            left_out: 0,
            resting: false,
            monitor: Monitor::new(settings.monitor(setup)),
            sampled: 0,
            fast_divisor: 1,
            asked: settings.request(1, false),
            most_divisor: settings.most_divisor(setup),
            work: Work::default(),
            watermarks,
            settings,
        })
    }

    /// Counts a batch's pages and notes those that are to be promoted (section 4.3).
    fn count(&mut self, batch: &SampleBatch, view: &dyn View) {
        let pages = self.coalescer.coalesce(batch.samples.iter().map(|sample| sample.page.0));
        let (mut fast, mut saturated) = (0, 0);
        self.hotness.count(pages, &mut self.work);
        for (first, pairs) in pages.chunks(CHUNK).enumerate() {
            let chunk = Chunk::new(pairs.iter().map(|&(page, _)| PageId(page)), view);
            for (index, (&page, tier)) in chunk.pages().iter().zip(chunk.tiers()).enumerate() {
                let place = first * CHUNK + index;
                if *tier == Some(TierId::FAST) {
                    let samples = u64::from(pairs[index].1);
                    fast += samples;
                    saturated += if self.hotness.was_saturated(place) { samples } else { 0 };
                }
                if tier.is_none_or(|tier| tier == TierId::FAST) {
                    continue;
                }
                let (promoted, by_momentum) = self.hotness.promotes(place, page);
                if promoted {
                    self.hot.push(page);
                }
                self.by_momentum += u64::from(by_momentum);
            }
        }
        self.work.operations +=
            COALESCE_OPERATIONS * batch.samples.len() as u64 + DECIDE_OPERATIONS * pages.len() as u64;
        self.work.touches += batch.samples.len() as u64;
        if saturated as f64 > self.settings.saturated_share * fast as f64 {
            self.fast_divisor = (2 * self.fast_divisor).min(self.most_divisor);
        }
    }

    fn follow(&mut self, samples: u64) {
        let before = self.hotness.thresholds.frequency.certain();
        let cooled = self.hotness.follow(samples, &mut self.work);
        if cooled.frequency {
            self.chances.cool();
            self.work.operations += self.chances.len() as u64;
        }
        let changed = self.hotness.thresholds.frequency.certain() != before;
        self.resting &= !(changed || cooled.frequency || cooled.momentum);
    }

    /// Demotes between the watermarks where room is needed: marked pages whose time has come first, then what
    /// a scan finds (section 4.3). Not both in one step: the scan would meet the same pages.
    fn demote(&mut self, now: Nanos, view: &mut dyn View, moves: &mut Vec<Move>) {
        let wanted = self.watermarks.wanted(view.free(TierId::FAST).0, self.refused);
        while (moves.len() as u64) < wanted {
            self.chances.take_due(now, wanted as usize - moves.len(), &mut self.due);
            if self.due.is_empty() {
                break;
            }
            self.resting = false;
            self.revisit(view, moves);
        }
        if wanted > 0 && moves.is_empty() && !self.resting {
            self.scan(now, wanted, view, moves);
        }
    }

    /// Revisits marked pages: those not accessed since are demoted (section 4.3).
    fn revisit(&mut self, view: &dyn View, moves: &mut Vec<Move>) {
        self.due.retain(|mark| view.tier_of(mark.page) == Some(TierId::FAST));
        self.due_pages.clear();
        self.due_pages.extend(self.due.iter().map(|mark| mark.page.0));
        self.hotness.look_up(&self.due_pages, &mut self.work);
        for (index, mark) in self.due.iter().enumerate() {
            let counts = self.hotness.looked_up(index);
            if !self.hotness.was_accessed(counts, mark.count.into())
                && self.hotness.demotion(mark.page, counts) != Demotion::NoAction
            {
                moves.push(Move { page: mark.page, to: TierId::FAST.slower() });
            }
        }
    }

    /// Looks for cold pages, linearly over the address space, and marks those that get a second chance.
    fn scan(&mut self, now: Nanos, wanted: u64, view: &mut dyn View, moves: &mut Vec<Move>) {
        (self.refused, self.left_out) = (0, 0);
        let Self { hotness, chances, .. } = self;
        let choose = |pages: &[u32], limit, moves: &mut Vec<Move>, work: &mut Work| {
            choose_cold(hotness, chances, now, pages, limit, moves, work);
        };
        let scan = self.scan.run(wanted, view, moves, &mut self.work, choose);
        self.resting = scan != Scan::Enough;
        // What it marked may still turn out cold.
        self.monitor.scanned(!self.resting || self.chances.len() > 0);
    }

    /// Leaves monitor mode: at the full rate, with aged counters.
    fn resume(&mut self) {
        self.hotness.age(&mut self.work);
        self.chances.clear();
        self.fast_divisor = 1;
        (self.refused, self.left_out, self.resting) = (0, 0, false);
    }

    fn promote(&mut self, view: &dyn View, moves: &mut Vec<Move>) {
        let room = view.free(TierId::FAST).0 as usize + moves.len();
        self.left_out += self.hot.len().saturating_sub(room) as u64;
        // Where hot pages are outside, cold ones are inside.
        self.resting &= self.left_out < self.watermarks.promote;
        moves.extend(self.hot.iter().take(room).map(|&page| Move { page, to: TierId::FAST }));
    }
}

/// Demotes or marks pages of the fast tier by Table 1, until `limit` are demoted.
fn choose_cold(
    hotness: &mut Hotness,
    chances: &mut SecondChances,
    now: Nanos,
    pages: &[u32],
    limit: u64,
    moves: &mut Vec<Move>,
    work: &mut Work,
) {
    hotness.look_up(pages, work);
    let full = moves.len() + limit as usize;
    for (index, &page) in pages.iter().enumerate() {
        if moves.len() == full {
            return;
        }
        let (page, counts) = (PageId(page), hotness.looked_up(index));
        match hotness.demotion(page, counts) {
            Demotion::NoAction => {}
            Demotion::SecondChance => chances.mark(page, counts.frequency, now),
            Demotion::Demote => moves.push(Move { page, to: TierId::FAST.slower() }),
        }
    }
}

impl Policy for HybridTier {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples)
    }

    fn sampling(&self) -> Sampling {
        self.settings.request(self.fast_divisor, self.monitor.is_on())
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        self.hot.clear();
        self.monitor.count(batch.counters.load_hits());
        self.hotness.thresholds.frequency.resize(view.capacity(TierId::FAST));
        self.sampled = if self.monitor.is_on() { 0 } else { batch.samples.len() as u64 };
        if self.sampled > 0 {
            self.count(batch, view);
            self.follow(self.sampled);
        }
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        let before = self.asked;
        if self.monitor.ends(now) {
            self.resume();
        } else if !self.monitor.is_on() && view.tiers() > 1 {
            // Batches without a step, as a policy that takes over sees them, tell nothing about promotions.
            self.monitor.sampled(self.sampled, self.hotness.thresholds.frequency.hot_pages());
            self.demote(now, view, &mut plan.moves);
            self.promote(view, &mut plan.moves);
            self.monitor.begins(now);
        }
        self.asked = self.sampling();
        plan.sampling = (self.asked != before).then_some(self.asked);
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _view: &mut dyn View) {
        let promotions = plan.moves.iter().zip(&outcome.moves).filter(|(step, _)| step.to == TierId::FAST);
        for (_, status) in promotions {
            self.refused += u64::from(*status == MoveStatus::NoRoom);
            self.monitor.promoted(u64::from(*status == MoveStatus::Moved));
        }
    }

    fn metadata(&self) -> Bytes {
        let buffers = self.hot.capacity() * size_of::<PageId>()
            + self.due.capacity() * size_of::<Mark>()
            + self.due_pages.capacity() * size_of::<u32>();
        let structures =
            self.hotness.bytes() + self.coalescer.bytes() + self.chances.bytes() + self.scan.bytes();
        Bytes((structures + buffers) as u64 + self.settings.batch as u64 * SAMPLE_BYTES)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        let threshold = &self.hotness.thresholds.frequency;
        gauges.extend([
            Gauge { name: "hot-threshold", value: threshold.value() },
            Gauge { name: "hot-pages", value: threshold.hot_pages() as f64 },
            Gauge { name: "saturated-pages", value: threshold.saturated() as f64 },
            Gauge { name: "second-chances", value: self.chances.len() as f64 },
            Gauge { name: "hot-by-momentum", value: self.by_momentum as f64 },
            Gauge { name: "monitoring", value: f64::from(u8::from(self.monitor.is_on())) },
            Gauge { name: "fast-divisor", value: self.fast_divisor.into() },
        ]);
        if let Some(audit) = &self.hotness.audit {
            gauges.extend([
                Gauge { name: "audited-decisions", value: audit.decisions as f64 },
                Gauge { name: "audited-disagreements", value: audit.disagreements as f64 },
                Gauge { name: "audited-moves", value: audit.moves as f64 },
            ]);
        }
    }
}

#[cfg(test)]
mod tests;
