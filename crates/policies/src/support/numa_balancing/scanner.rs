//! The scan that arms pages (`task_numa_work`).

use isotherm_core::{Nanos, PageId, Plan, TierId, View, Work};

use super::settings::ScanSettings;
use crate::Setup;

/// Pages of one page table: Linux counts these ranges as a whole.
const PAGES_PER_TABLE: u64 = 512;
/// Multiple of the scan size that may be walked without anything to arm (`virtpages`).
const WALK_FACTOR: u64 = 8;
/// Periods that one scan makes up for at most.
const MAX_PERIODS: u64 = 8;
/// Looks at the time within a period.
const LOOKS_PER_PERIOD: u64 = 10;

/// A walk through the address space that arms `pages` of it in each period.
#[derive(Debug, Clone)]
pub(crate) struct Scanner {
    pages: u64,
    period: Nanos,
    every_tier: bool,
    next: Nanos,
    cursor: PageId,
    found: Vec<(PageId, TierId)>,
}

impl Scanner {
    /// Returns a scanner of the slower tiers that begins after one period (`scan_delay_ms`).
    pub(crate) fn new(settings: &ScanSettings, setup: &Setup) -> Self {
        let period = settings.scan_period;
        let (pages, cursor) = (setup.pages_in(settings.scan_size).max(1), PageId(0));
        Self { pages, period, every_tier: false, next: period, cursor, found: Vec::new() }
    }

    pub(crate) fn of_every_tier(self) -> Self {
        Self { every_tier: true, ..self }
    }

    /// Returns the interval at which to look at the time so that scans are on time.
    pub(crate) fn tick(&self) -> Nanos {
        Nanos((self.period.0 / LOOKS_PER_PERIOD).max(1))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.found.capacity() * size_of::<(PageId, TierId)>()
    }

    /// Scans if it is time. A scan ends at the end of the address space; the next one begins at its start.
    /// A late scan (kswapd kept the host) makes up for the periods that it missed, as threads would have.
    pub(crate) fn run(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan, work: &mut Work) {
        if now < self.next {
            return;
        }
        let periods = ((now - self.next).0 / self.period.0.max(1) + 1).min(MAX_PERIODS);
        self.next = now + self.period;
        let mut pages = self.pages.saturating_mul(periods);
        let mut walk = pages.saturating_mul(WALK_FACTOR);
        while pages > 0 && walk > 0 {
            let limit = PAGES_PER_TABLE.min(pages).min(walk);
            self.found.clear();
            let next = view.walk(self.cursor, limit as usize, &mut self.found);
            let walked = self.found.len() as u64;
            work.operations += walked;
            if self.arm(plan) {
                pages -= walked;
            }
            walk -= walked;
            self.cursor = next.unwrap_or(PageId(0));
            if next.is_none() {
                break;
            }
        }
    }

    /// Arms the found pages. Returns whether there were any.
    fn arm(&self, plan: &mut Plan) -> bool {
        let before = plan.arm.len();
        let wanted = |entry: &&(PageId, TierId)| self.every_tier || entry.1 != TierId::FAST;
        plan.arm.extend(self.found.iter().filter(wanted).map(|entry| entry.0));
        plan.arm.len() > before
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::{Bytes, PageSize, Pages};

    use super::*;
    use crate::support::test_view::TestView;

    fn scanner(pages: u64) -> Scanner {
        let setup = Setup { pages: 64, fast: Pages(4), page_size: PageSize::Base, tiers: 2, seed: 1 };
        let settings =
            ScanSettings { scan_size: Bytes(pages << 12), scan_period: Nanos(100 * Nanos::MILLISECOND.0) };
        Scanner::new(&settings, &setup)
    }

    fn scan(scanner: &mut Scanner, view: &mut TestView, milliseconds: u64) -> Vec<u32> {
        let mut plan = Plan::default();
        let now = Nanos(milliseconds * Nanos::MILLISECOND.0);
        scanner.run(now, view, &mut plan, &mut Work::default());
        plan.arm.iter().map(|page| page.0).collect()
    }

    #[test]
    fn each_period_arms_the_next_slow_pages_and_the_end_is_not_scanned_past() {
        let (mut scanner, mut view) = (scanner(4), TestView::new(&[Pages(4), Pages(64)], 14));
        assert!(scan(&mut scanner, &mut view, 50).is_empty(), "the first scan comes after a period");
        assert_eq!(
            scan(&mut scanner, &mut view, 100),
            [4, 5, 6, 7],
            "four fast pages were walked, not counted"
        );
        assert!(scan(&mut scanner, &mut view, 199).is_empty());
        assert_eq!(scan(&mut scanner, &mut view, 200), [8, 9, 10, 11]);
        assert_eq!(scan(&mut scanner, &mut view, 300), [12, 13]);
        assert_eq!(scan(&mut scanner, &mut view, 400), [4, 5, 6, 7]);
    }

    #[test]
    fn a_late_scan_makes_up_for_what_it_missed() {
        let (mut scanner, mut view) = (scanner(1), TestView::new(&[Pages(3), Pages(64)], 60));
        assert_eq!(scan(&mut scanner, &mut view, 399), [3, 4, 5], "due at 100, 200 and 300 ms");
        assert_eq!(scan(&mut scanner, &mut view, 499), [6]);
        assert_eq!(scan(&mut scanner, &mut view, 9000).len(), 8, "at most");
    }

    #[test]
    fn where_nothing_can_be_armed_it_walks_eight_times_its_size() {
        let (mut scanner, mut view) = (scanner(2), TestView::new(&[Pages(20), Pages(64)], 24));
        assert!(scan(&mut scanner, &mut view, 100).is_empty());
        assert_eq!(view.walks.len(), 8, "two pages each");
        assert_eq!(scan(&mut scanner, &mut view, 200), [20, 21]);
    }

    #[test]
    fn every_tier_is_armed_if_asked_for() {
        let mut view = TestView::new(&[Pages(4), Pages(64)], 8);
        assert_eq!(scan(&mut scanner(6).of_every_tier(), &mut view, 100), [0, 1, 2, 3, 4, 5]);
    }
}
