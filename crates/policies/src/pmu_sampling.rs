//! PMU sampling: promotes slow pages that PEBS samples, and leaves demotion to the kernel.
//!
//! # Paper
//! NeoMem, sections II-C and VI: the baseline "PEBS", NeoMem with sampled last-level cache misses in place of
//! its device. Samples are taken every 200 to 5,000 misses ("fine-tuned for each benchmark"); hot pages are
//! migrated every 10 ms, at most 256 MB/s; counts are reset every 5 s; the kernel's LRU makes room.
//!
//! # Deviations
//! - One fixed threshold: the paper's dynamic one needs the device's histogram and bandwidth counters.
//! - The policy requests kswapd's work at Linux' default watermarks: a host reclaims only on request.

use std::collections::VecDeque;

use crate::prelude::*;
use crate::support::SAMPLE_BYTES;
use crate::support::prefetch::{CHUNK, Chunk};

/// Samples that are taken in at once, unless a round comes before.
const BATCH: usize = 512;
/// Operations of counting one sample, table accesses apart.
const COUNT_OPERATIONS: u64 = 4;

parameters! {
    pub(crate) struct Settings {
        /// Samples every n-th load of each thread that misses.
        sampling_period: u64 = count(1, 1_000_000_000, "1000").unit("accesses")
            .source("NeoMem, Table IV: 200 to 5,000, tuned for each benchmark; ours: the geometric middle for all"),
        /// Samples since the last reset that make a slow page hot.
        threshold: u8 = count(1, 254, "1").unit("samples")
            .source("ours: NeoMem's fixed thresholds (Fig. 14: 100 to 400 accesses) are below what one sample stands for"),
        /// Time between two rounds of promotions.
        interval: Nanos = interval("10ms").source("NeoMem, Table IV: migration_interval").scaled(),
        /// Time after which counts are reset.
        reset_interval: Nanos = interval("5s").source("NeoMem, Table IV: clear_interval").scaled(),
        /// The most that may be promoted.
        quota: Bytes = size(4096, 1 << 44, "256M").unit("bytes per second")
            .source("NeoMem, Table IV: m_quota"),
        /// With less than this free beside the pages to promote, the kernel is asked to reclaim.
        low_watermark: f64 = number(0.0, 0.5, "0.1%").unit("of the fast tier")
            .source("Linux: vm.watermark_scale_factor is 10 of 10,000"),
        /// Reclaim goes on until this much is free beside the pages to promote.
        high_watermark: f64 = number(0.0, 0.5, "0.2%").unit("of the fast tier")
            .source("Linux: twice vm.watermark_scale_factor"),
    }
}

#[derive(Debug)]
pub(crate) struct PmuSampling {
    settings: Settings,
    quota: usize,
    low_mark: u64,
    high_mark: u64,
    counts: Vec<u8>,
    hot: VecDeque<PageId>,
    next_round: Nanos,
    next_reset: Nanos,
    work: Work,
}

impl PmuSampling {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let settings = Settings::read(parameters);
        let promoted = settings.quota.0 as f64 * settings.interval.as_seconds();
        let low_mark = setup.share(settings.low_watermark);
        Self {
            quota: setup.pages_in(Bytes(promoted as u64)).max(1) as usize,
            low_mark,
            high_mark: setup.share(settings.high_watermark).max(low_mark),
            counts: vec![0; setup.pages],
            hot: VecDeque::new(),
            next_round: settings.interval,
            next_reset: settings.reset_interval,
            work: Work::default(),
            settings,
        }
    }

    fn reset(&mut self) {
        self.counts.fill(0);
        self.hot.clear();
        self.work.swept += self.counts.len() as u64;
    }

    fn count(&mut self, page: PageId) {
        let count = &mut self.counts[page.index()];
        *count = count.saturating_add(1);
        if *count == self.settings.threshold {
            self.hot.push_back(page);
        }
        self.work.touches += 1;
    }

    /// Plans one round: the pages that became hot first, and the room that they need.
    fn promote(&mut self, view: &dyn View, plan: &mut Plan) {
        while plan.moves.len() < self.quota
            && let Some(page) = self.hot.pop_front()
        {
            // Once promoted, its count starts at zero: it may be reclaimed again.
            self.counts[page.index()] = 0;
            if view.tier_of(page).is_some_and(|tier| tier != TierId::FAST) {
                plan.moves.push(Move { page, to: TierId::FAST });
            }
            self.work.touches += 1;
        }
        let (free, promoted) = (view.free(TierId::FAST).0, plan.moves.len() as u64);
        if free < promoted + self.low_mark {
            let pages = Pages(promoted + self.high_mark) - Pages(free);
            plan.reclaim.push(Reclaim { from: TierId::FAST, pages });
        }
    }
}

impl Policy for PmuSampling {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples).with(Signal::KernelReclaim)
    }

    fn sampling(&self) -> Sampling {
        let rate = SamplingRate::Period(self.settings.sampling_period);
        Sampling::loads(rate, SamplingScope::AllTiers, BATCH, self.settings.interval)
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        if view.pages() > self.counts.len() {
            self.counts.resize(view.pages(), 0);
        }
        for samples in batch.samples.chunks(CHUNK) {
            let chunk = Chunk::of(samples, view);
            for (sample, tier) in samples.iter().zip(chunk.tiers()) {
                if sample.operation == Operation::Load && tier.is_some_and(|tier| tier != TierId::FAST) {
                    self.count(sample.page);
                }
            }
        }
        self.work.operations += COUNT_OPERATIONS * batch.samples.len() as u64;
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        if now >= self.next_reset {
            self.next_reset = now + self.settings.reset_interval;
            self.reset();
        }
        if now >= self.next_round && view.tiers() > 1 {
            self.next_round = now + self.settings.interval;
            self.promote(view, plan);
        }
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _view: &mut dyn View) {
        for (step, status) in plan.moves.iter().zip(&outcome.moves) {
            if matches!(status, MoveStatus::NoRoom | MoveStatus::Busy) {
                self.counts[step.page.index()] = self.settings.threshold;
                self.hot.push_back(step.page);
            }
        }
    }

    fn metadata(&self) -> Bytes {
        let hot = self.hot.capacity() * size_of::<PageId>();
        Bytes((self.counts.len() + hot) as u64 + BATCH as u64 * SAMPLE_BYTES)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        gauges.push(Gauge { name: "waiting-pages", value: self.hot.len() as f64 });
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::support::test_view::{TestView, batch_of, parameters, setup, turn};

    const FAST: u64 = 1000;

    fn policy(settings: &[(&str, &str)]) -> PmuSampling {
        PmuSampling::new(&parameters(Settings::SPECS, settings), &setup(4000, FAST))
    }

    /// Returns a full fast tier and a round at the `round`-th 10 ms.
    fn round(pmu: &mut PmuSampling, view: &mut TestView, pages: &[u32], round: u64) -> Plan {
        let batch = batch_of(view, pages, (0, 0));
        turn(pmu, view, &batch, Nanos(round * 10_000_000)).0
    }

    fn machine() -> TestView {
        TestView::new(&[Pages(FAST), Pages(4000)], 4000)
    }

    #[test]
    fn sampled_slow_pages_are_promoted_and_the_kernel_is_asked_for_their_room() {
        let (mut pmu, mut view) = (policy(&[]), machine());
        let plan = round(&mut pmu, &mut view, &[5, 2000, 2001, 2000], 1);
        let promoted: Vec<u32> = plan.moves.iter().map(|step| step.page.0).collect();
        assert_eq!(promoted, [2000, 2001], "page 5 is fast already");
        assert_eq!(plan.reclaim, [Reclaim { from: TierId::FAST, pages: Pages(2 + 2) }], "and 0.2 % beside");
    }

    #[test]
    fn nothing_is_reclaimed_while_there_is_room() {
        let (mut pmu, mut view) = (policy(&[]), machine());
        (0..3).for_each(|page| view.unmap(page));
        let plan = round(&mut pmu, &mut view, &[2000, 2001], 1);
        assert!(plan.reclaim.is_empty() && plan.moves.len() == 2, "two pages and the low mark of one fit");
        let plan = round(&mut pmu, &mut view, &[2002], 2);
        assert_eq!(plan.reclaim[0].pages, Pages(2));
    }

    #[test]
    fn below_the_threshold_nothing_is_promoted_and_a_reset_forgets() {
        let (mut pmu, mut view) = (policy(&[("threshold", "3")]), machine());
        (0..8).for_each(|page| view.unmap(page));
        assert!(!round(&mut pmu, &mut view, &[2000, 2000], 1).moves_pages());
        assert!(!round(&mut pmu, &mut view, &[], 500).moves_pages(), "5 s: a reset");
        assert!(!round(&mut pmu, &mut view, &[2000, 2000], 501).moves_pages());
        assert_eq!(round(&mut pmu, &mut view, &[2000], 502).moves.len(), 1);
    }

    #[test]
    fn a_round_promotes_no_more_than_the_quota_and_the_rest_waits() {
        // 256 MiB/s are 655 pages in 10 ms.
        let (mut pmu, mut view) = (policy(&[]), machine());
        let pages: Vec<u32> = (2000..2800).collect();
        assert_eq!(round(&mut pmu, &mut view, &pages, 1).moves.len(), 655);
        assert_eq!(round(&mut pmu, &mut view, &[], 1).moves.len(), 0, "10 ms have not passed");
    }

    #[test]
    fn refused_pages_are_tried_again_and_reclaimed_ones_count_anew() {
        let (mut pmu, mut view) = (policy(&[]), machine());
        let refused = round(&mut pmu, &mut view, &[2000], 1);
        assert_eq!((refused.moves.len(), view.tier_of(PageId(2000))), (1, Some(TierId(1))));
        (0..2).for_each(|page| view.unmap(page));
        assert_eq!(round(&mut pmu, &mut view, &[], 2).moves.len(), 1);
        assert_eq!(view.tier_of(PageId(2000)), Some(TierId::FAST));
        view.put(2000, TierId(1));
        assert_eq!(round(&mut pmu, &mut view, &[2000], 3).moves.len(), 1, "reclaimed, and sampled once more");
    }

    #[test]
    fn it_needs_the_kernels_reclaim_and_samples_loads_only() {
        let pmu = policy(&[]);
        assert!(pmu.signals().has(Signal::KernelReclaim) && !pmu.sampling().stores);
    }
}
