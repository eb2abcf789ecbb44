//! PTE-scan: page tables are scanned for accessed bits, and pages accessed in several scans are hot.
//!
//! # Paper
//! The baseline of NeoMem (MICRO 2024, sections II-C and VI-A): NeoMem's software with its profiler replaced
//! by a scan of the page table every 5 s (`page_scanning_rate`, Table IV). What is NeoMem's remains: a daemon
//! that promotes each `migration_interval` (10 ms) within a quota of 256 MB/s (`m_quota`), and demotion by
//! the kernel's LRU (section V).
//!
//! # Deviations
//! `hot_scans` is 2, as TPP asks for two accesses (the paper: several). Watermarks are Linux'. Hot pages that
//! the quota left over are found again at the next scan. Promotion continues behind the page promoted last:
//! the lowest addresses would use up the quota.

use std::collections::VecDeque;

use crate::prelude::*;
use crate::support::numa_balancing::{WatermarkSettings, Watermarks, faults_only};
use crate::support::quota::Quota;

const CHUNK: usize = 4096;

parameters! {
    pub(crate) struct Settings {
        /// Time from the start of one scan of the whole page table to the next.
        scan_interval: Nanos = interval("5s").source("NeoMem, Table IV: page_scanning_rate").scaled(),
        /// A page accessed in each of so many scans in a row is hot.
        hot_scans: u32 = count(1, 8, "2").unit("scans")
            .source("ours: section II-C asks for several; two accesses make a page hot in TPP"),
        /// Hot pages that are promoted in a quota_period.
        quota: Bytes = size(4096, 1 << 50, "256M").unit("bytes in quota_period")
            .source("NeoMem, Table IV: m_quota 256 MB/s").scaled_rate(),
        /// The period of the quota.
        quota_period: Nanos = interval("1s").source("NeoMem, Table IV: the quota is by the second").scaled(),
        /// Time between two promotions of what is hot.
        migration_interval: Nanos = interval("10ms").source("NeoMem, Table IV").scaled(),
        marks: WatermarkSettings,
    }
}

#[derive(Debug)]
pub(crate) struct PteScan {
    settings: Settings,
    quota: Quota,
    /// The last scans of a page in a row that must all have found it accessed.
    hot_mask: u8,
    marks: Watermarks,
    next_scan: Nanos,
    /// Accessed bits of the last eight scans of each page, the newest lowest.
    history: Vec<u8>,
    hot: VecDeque<PageId>,
    last_promoted: PageId,
    found: Vec<(PageId, TierId, bool)>,
    work: Work,
}

impl PteScan {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let settings = Settings::read(parameters);
        Self {
            quota: Quota::new(settings.quota, settings.quota_period, setup),
            hot_mask: u8::MAX >> (8 - settings.hot_scans),
            marks: Watermarks::new(&settings.marks, setup),
            next_scan: settings.scan_interval,
            history: vec![0; setup.pages],
            hot: VecDeque::new(),
            last_promoted: PageId(u32::MAX),
            found: Vec::new(),
            work: Work::default(),
            settings,
        }
    }

    /// Reads and clears every accessed bit and notes the hot pages of slower tiers.
    fn scan(&mut self, view: &mut dyn View) {
        self.hot.clear();
        self.history.resize(view.pages().max(self.history.len()), 0);
        let mut cursor = Some(PageId(0));
        while let Some(from) = cursor {
            self.found.clear();
            cursor = view.scan_accessed(from, CHUNK, &mut self.found);
            for &(page, tier, accessed) in &self.found {
                let history = &mut self.history[page.index()];
                *history = *history << 1 | u8::from(accessed);
                if tier != TierId::FAST && *history & self.hot_mask == self.hot_mask {
                    self.hot.push_back(page);
                }
            }
            self.work.operations += 3 * self.found.len() as u64;
            self.work.swept += self.found.len() as u64;
        }
        let before = self.hot.partition_point(|&page| page <= self.last_promoted);
        self.hot.rotate_left(before);
    }

    fn promote(&mut self, now: Nanos, view: &dyn View, plan: &mut Plan) {
        self.quota.earn(now);
        let count = self.hot.len().min(self.quota.available());
        self.quota.spend(count);
        self.marks.keep(count as u64, view, plan);
        self.last_promoted = count.checked_sub(1).map_or(self.last_promoted, |last| self.hot[last]);
        plan.moves.extend(self.hot.drain(..count).map(|page| Move { page, to: TierId::FAST }));
    }
}

impl Policy for PteScan {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::AccessedBits).with(Signal::KernelReclaim)
    }

    fn sampling(&self) -> Sampling {
        faults_only(self.settings.migration_interval)
    }

    fn observe(&mut self, _batch: &SampleBatch, _view: &mut dyn View) {}

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        if now >= self.next_scan {
            self.next_scan = now + self.settings.scan_interval;
            self.scan(view);
        }
        self.promote(now, view, plan);
        plan.work = self.work.take();
    }

    fn metadata(&self) -> Bytes {
        let buffers = self.hot.capacity() * size_of::<PageId>()
            + self.found.capacity() * size_of::<(PageId, TierId, bool)>();
        Bytes((self.history.len() + buffers) as u64)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        gauges.push(Gauge { name: "hot-pages-waiting", value: self.hot.len() as f64 });
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::Pages;

    use super::*;
    use crate::support::test_view::{TestView, parameters, setup, turn};

    const FAST: u64 = 16;

    fn policy(settings: &[(&str, &str)]) -> PteScan {
        PteScan::new(&parameters(Settings::SPECS, settings), &setup(64, FAST))
    }

    /// Returns the pages that a scan after `seconds` promotes, with `accessed` since the one before.
    fn scan(policy: &mut PteScan, view: &mut TestView, seconds: u64, accessed: &[u32]) -> Vec<u32> {
        view.accessed = accessed.to_vec();
        let now = Nanos(seconds * Nanos::SECOND.0);
        let plan = turn(policy, view, &SampleBatch::default(), now).0;
        plan.moves.iter().map(|step| step.page.0).collect()
    }

    #[test]
    fn a_page_accessed_in_two_scans_in_a_row_is_hot() {
        let (mut policy, mut view) = (policy(&[]), TestView::new(&[Pages(FAST), Pages(64)], 40));
        assert!(scan(&mut policy, &mut view, 4, &[20]).is_empty(), "not yet time");
        assert!(scan(&mut policy, &mut view, 5, &[20, 21, 1]).is_empty());
        assert_eq!(scan(&mut policy, &mut view, 10, &[20, 22, 1]), [20], "1 is fast");
        assert_eq!(scan(&mut policy, &mut view, 15, &[21, 22]), [22], "21 missed a scan");
    }

    #[test]
    fn one_scan_is_enough_if_asked_for() {
        let mut view = TestView::new(&[Pages(FAST), Pages(64)], 40);
        assert_eq!(scan(&mut policy(&[("hot_scans", "1")]), &mut view, 5, &[20]), [20]);
    }

    #[test]
    fn the_quota_spreads_promotions_and_the_kernel_makes_room() {
        let settings = [("hot_scans", "1"), ("quota", "8192")];
        let (mut policy, mut view) = (policy(&settings), TestView::new(&[Pages(FAST), Pages(64)], 40));
        assert_eq!(scan(&mut policy, &mut view, 5, &[20, 21, 22, 23, 24]), [20, 21], "two a second");
        assert_eq!(scan(&mut policy, &mut view, 6, &[]), [22, 23]);
        assert_eq!(scan(&mut policy, &mut view, 10, &[18, 19, 24, 25, 30]), [24, 25], "behind 23");
        assert_eq!(scan(&mut policy, &mut view, 11, &[]), [30, 18], "and around");
        view.accessed.clear();
        let plan = turn(&mut policy, &mut view, &SampleBatch::default(), Nanos(12 * Nanos::SECOND.0)).0;
        assert_eq!((plan.moves.len(), plan.reclaim[0].pages), (1, Pages(1 + policy.marks.promo)));
    }
}
