//! MULTI-CLOCK: a ladder of CLOCK lists in each tier.
//!
//! # Paper
//! Maruf et al., "MULTI-CLOCK: Dynamic Tiering for Hybrid Memory Systems", HPCA 2022, after its published
//! description. Each tier has inactive and active lists, each page on them a reference mark, and each tier
//! but the fastest a promote list:
//!
//! ```text
//! accessed:     inactive -> inactive, referenced -> active -> active, referenced -> promote -> (up, active)
//! not accessed: inactive <- inactive, referenced <- active <- active, referenced; active <- promote
//! ```
//!
//! The daemon kpromoted scans the lists each `scan_interval` and promotes pages that were referenced again on
//! the promote list: pages both recent and frequent. If the fast tier lacks room, pages leave from the tail
//! of its inactive list.
//!
//! # Deviations
//! - The scan's hand through the address space orders each list; a page's list and mark are one byte.
//! - Every scanned page that was not accessed steps down. Linux ages the active list only while inactive
//!   pages are few.
//! - Active pages are never demoted to make room: without inactive ones promotions wait.

use std::collections::VecDeque;

use crate::prelude::*;
use crate::support::numa_balancing::{WatermarkSettings, Watermarks, faults_only};

const CHUNK: u64 = 4096;

/// The rungs of the ladder.
const INACTIVE: u8 = 0;
const ACTIVE: u8 = 2;
const ACTIVE_REFERENCED: u8 = 3;
const PROMOTE: u8 = 4;

parameters! {
    pub(crate) struct Settings {
        /// Time from the start of one scan to the next.
        scan_interval: Nanos = interval("1s")
            .source("MULTI-CLOCK: kpromoted runs each second, as publicly described").scaled(),
        /// Share of the pages that a scan looks at, going on where the one before stopped.
        scan_share: f64 = number(1e-6, 1.0, "1").unit("of all pages")
            .source("ours: whole lists; a count of pages would not carry over to another footprint"),
        marks: WatermarkSettings,
    }
}

#[derive(Debug)]
pub(crate) struct MultiClock {
    settings: Settings,
    marks: Watermarks,
    next_scan: Nanos,
    cursor: PageId,
    rungs: Vec<u8>,
    wanted: Vec<PageId>,
    /// Unreferenced inactive pages of the fast tier, first met first.
    victims: VecDeque<PageId>,
    found: Vec<(PageId, TierId, bool)>,
    work: Work,
}

/// Returns the rung after a scan, and whether the page is to be promoted.
fn climb(rung: u8, fast: bool, accessed: bool) -> (u8, bool) {
    match (rung, accessed) {
        (PROMOTE, true) => (PROMOTE, !fast),
        (ACTIVE_REFERENCED, true) if fast => (ACTIVE_REFERENCED, false),
        (rung, true) => (rung + 1, false),
        (PROMOTE, false) => (ACTIVE, false),
        (rung, false) => (rung.saturating_sub(1), false),
    }
}

impl MultiClock {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let settings = Settings::read(parameters);
        Self {
            marks: Watermarks::new(&settings.marks, setup),
            next_scan: settings.scan_interval,
            cursor: PageId(0),
            rungs: vec![INACTIVE; setup.pages],
            wanted: Vec::new(),
            victims: VecDeque::new(),
            found: Vec::new(),
            work: Work::default(),
            settings,
        }
    }

    /// Moves each page of the daemon's share by one rung (kpromoted).
    fn scan(&mut self, view: &mut dyn View) {
        self.rungs.resize(view.pages().max(self.rungs.len()), INACTIVE);
        self.wanted.clear();
        self.victims.clear();
        let mut left = ((view.pages() as f64 * self.settings.scan_share).ceil() as u64).max(1);
        while left > 0 {
            self.found.clear();
            let next = view.scan_accessed(self.cursor, left.min(CHUNK) as usize, &mut self.found);
            left = left.saturating_sub(self.found.len() as u64);
            self.climb_found();
            self.cursor = next.unwrap_or(PageId(0));
            if next.is_none() {
                break;
            }
        }
    }

    fn climb_found(&mut self) {
        for &(page, tier, accessed) in &self.found {
            let fast = tier == TierId::FAST;
            let (rung, promote) = climb(self.rungs[page.index()], fast, accessed);
            self.rungs[page.index()] = rung;
            if promote {
                self.wanted.push(page);
            } else if fast && rung == INACTIVE {
                self.victims.push_back(page);
            }
        }
        self.work.operations += 5 * self.found.len() as u64;
        self.work.swept += self.found.len() as u64;
    }

    /// Plans demotions where the fast tier lacks room, and the promotions that then fit.
    fn shift(&mut self, view: &dyn View, plan: &mut Plan) {
        let (free, wanted) = (view.free(TierId::FAST).0, self.wanted.len() as u64);
        let short = free < self.marks.low || (wanted > 0 && free < self.marks.high + wanted);
        let needed = if short { (self.marks.promo + wanted).saturating_sub(free) } else { 0 };
        let leaving = self.victims.len().min(needed as usize);
        plan.moves.extend(self.victims.drain(..leaving).map(|page| Move { page, to: TierId::FAST.slower() }));
        let room = free as usize + leaving;
        plan.moves.extend(self.wanted.drain(..).take(room).map(|page| Move { page, to: TierId::FAST }));
    }
}

impl Policy for MultiClock {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::AccessedBits)
    }

    fn sampling(&self) -> Sampling {
        faults_only(self.settings.scan_interval)
    }

    fn observe(&mut self, _batch: &SampleBatch, _view: &mut dyn View) {}

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        if now >= self.next_scan {
            self.next_scan = now + self.settings.scan_interval;
            self.scan(view);
        }
        if view.tiers() > 1 {
            self.shift(view, plan);
        }
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _view: &mut dyn View) {
        for (step, status) in plan.moves.iter().zip(&outcome.moves) {
            if *status == MoveStatus::Moved {
                self.rungs[step.page.index()] = if step.to == TierId::FAST { ACTIVE } else { INACTIVE };
            }
        }
    }

    fn metadata(&self) -> Bytes {
        let buffers = (self.wanted.capacity() + self.victims.capacity()) * size_of::<PageId>()
            + self.found.capacity() * size_of::<(PageId, TierId, bool)>();
        Bytes((self.rungs.len() + buffers) as u64)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        gauges.push(Gauge { name: "inactive-fast-pages", value: self.victims.len() as f64 });
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::Pages;
    use proptest::prelude::*;

    use super::*;
    use crate::support::test_view::{TestView, parameters, setup, turn};

    const FAST: u64 = 16;

    fn policy(settings: &[(&str, &str)]) -> MultiClock {
        MultiClock::new(&parameters(Settings::SPECS, settings), &setup(64, FAST))
    }

    /// One scan with `accessed` since the one before; the plan's moves.
    fn scan(policy: &mut MultiClock, view: &mut TestView, accessed: &[u32]) -> Vec<Move> {
        view.accessed = accessed.to_vec();
        let now = policy.next_scan;
        turn(policy, view, &SampleBatch::default(), now).0.moves
    }

    #[test]
    fn a_page_climbs_by_one_rung_a_scan_and_moves_up_from_the_promote_list() {
        let (mut policy, mut view) = (policy(&[]), TestView::new(&[Pages(FAST), Pages(64)], 40));
        for rung in 1..=PROMOTE {
            let moves = scan(&mut policy, &mut view, &[20]);
            assert!(moves.iter().all(|step| step.page != PageId(20)), "{moves:?}");
            assert_eq!(policy.rungs[20], rung);
        }
        let moves = scan(&mut policy, &mut view, &[20]);
        assert!(moves.contains(&Move { page: PageId(20), to: TierId::FAST }));
        assert_eq!((view.tier_of(PageId(20)), policy.rungs[20]), (Some(TierId::FAST), ACTIVE));
    }

    #[test]
    fn without_an_access_pages_step_down() {
        let down: Vec<u8> = (0..=PROMOTE).map(|rung| climb(rung, false, false).0).collect();
        assert_eq!(down, [0, 0, 1, 2, ACTIVE]);
        assert_eq!(
            climb(ACTIVE_REFERENCED, true, true),
            (ACTIVE_REFERENCED, false),
            "no promote list on top"
        );
    }

    #[test]
    fn unreferenced_inactive_pages_leave_when_room_is_needed() {
        let (mut policy, mut view) = (policy(&[]), TestView::new(&[Pages(FAST), Pages(64)], 40));
        let fast: Vec<u32> = (0..16).filter(|&page| page != 3 && page != 9 && page != 12).collect();
        let moves = scan(&mut policy, &mut view, &fast);
        assert!(moves.iter().all(|step| step.to == TierId(1)));
        let left: Vec<u32> = moves.iter().map(|step| step.page.0).collect();
        assert_eq!(left, [3, 9, 12], "three of the {} wanted are inactive", policy.marks.promo);
        assert!(view.pages_in(TierId::FAST).iter().all(|page| fast.contains(page)));
    }

    #[test]
    fn a_share_of_the_pages_is_scanned_at_a_time() {
        let (mut policy, mut view) =
            (policy(&[("scan_share", "25%")]), TestView::new(&[Pages(FAST), Pages(64)], 40));
        let all: Vec<u32> = (0..40).collect();
        scan(&mut policy, &mut view, &all);
        assert_eq!(policy.rungs.iter().filter(|&&rung| rung == 1).count(), 10);
        scan(&mut policy, &mut view, &all);
        assert_eq!((policy.rungs[9], policy.rungs[19], policy.rungs[20]), (1, 1, 0));
    }

    proptest! {
        /// The rung never exceeds the run of accesses that leads to it, and only a run of five promotes.
        #[test]
        fn only_pages_accessed_again_and_again_are_promoted(bits in prop::collection::vec(any::<bool>(), 1..60)) {
            let (mut rung, mut ups) = (INACTIVE, 0);
            for &accessed in &bits {
                let (next, promote) = climb(rung, false, accessed);
                ups += usize::from(accessed);
                prop_assert!(next <= PROMOTE && usize::from(next) <= ups);
                prop_assert!(!promote || (accessed && rung == PROMOTE && ups >= 5));
                rung = next;
            }
        }
    }
}
