//! Nomad: non-exclusive tiering by transactional page migration.
//!
//! # Paper
//! Xiang et al., "Nomad: Non-Exclusive Memory Tiering via Transactional Page Migration", OSDI 2024, section
//! 3.
//!
//! - A page that faults enters the promotion candidate queue (PCQ). Each fault looks at the queue's head;
//!   candidates accessed since they entered go to the migration pending queue (MPQ).
//! - The kernel thread kpromote copies each pending page while it stays mapped. An aborted page stays pending
//!   ([`Copying::Transactional`], [`MoveStatus::Busy`]). The host keeps the slow copies as shadows.
//! - Demotion is TPP's: reclaim, ahead of allocation.
//!
//! Deviations: lengths, intervals and a bound on aborted copies, which the paper does not give, and pages
//! without room are no longer pending; see `docs/reference/policies.md`.

use std::collections::VecDeque;

use crate::prelude::*;
use crate::support::numa_balancing::{
    FAULT_OPERATIONS, Headroom, HeadroomSettings, ScanSettings, Scanner, faults_only,
};
use crate::support::page_bits::PageBits;

parameters! {
    pub(crate) struct Settings {
        scan: ScanSettings,
        headroom: HeadroomSettings,
        /// Length of the candidate queue; the oldest candidate leaves a full one.
        candidates: usize = count(1, 1 << 32, "1M").unit("pages")
            .source("ours: a bound on memory rather than a filter; the paper gives no size").scaled(),
        /// Candidates that each fault looks at.
        examined: usize = count(1, 1 << 20, "2").unit("candidates per fault")
            .source("ours: more than one, so that the queue drains; the paper says only that it is checked"),
        /// Time between two rounds of kpromote over the pending pages.
        kpromote_interval: Nanos = interval("10ms").source("ours: the paper has no number").scaled(),
        /// Aborted copies after which a page is no longer pending.
        attempts: u8 = count(1, 255, "8").unit("copies").source("ours: the paper retries without a limit"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pending {
    page: PageId,
    aborted: u8,
}

#[derive(Debug)]
pub(crate) struct Nomad {
    scanner: Scanner,
    headroom: Headroom,
    /// PCQ, oldest first.
    candidates: VecDeque<PageId>,
    settings: Settings,
    /// MPQ, oldest first.
    pending: VecDeque<Pending>,
    queued: PageBits,
    next_round: Nanos,
    aborted: u64,
    found: Vec<(PageId, TierId, bool)>,
    work: Work,
}

impl Nomad {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let settings = Settings::read(parameters);
        Self {
            scanner: Scanner::new(&settings.scan, setup),
            headroom: Headroom::new(&settings.headroom, setup),
            candidates: VecDeque::new(),
            pending: VecDeque::new(),
            queued: PageBits::new(setup.pages),
            next_round: settings.kpromote_interval,
            aborted: 0,
            found: Vec::new(),
            work: Work::default(),
            settings,
        }
    }

    /// Returns whether the page was accessed since this was last asked.
    fn test_accessed(&mut self, page: PageId, view: &mut dyn View) -> bool {
        self.found.clear();
        view.scan_accessed(page, 1, &mut self.found);
        self.found.first().is_some_and(|&(found, _, accessed)| found == page && accessed)
    }

    /// Makes a faulting page a candidate; the oldest one leaves a full queue.
    fn enter(&mut self, page: PageId, view: &mut dyn View) {
        if !self.queued.insert(page) {
            return;
        }
        self.test_accessed(page, view);
        if self.candidates.len() >= self.settings.candidates
            && let Some(oldest) = self.candidates.pop_front()
        {
            self.queued.remove(oldest);
        }
        self.candidates.push_back(page);
    }

    /// Makes the accessed ones of the oldest candidates pending; the others wait on.
    fn examine(&mut self, view: &mut dyn View) {
        for _ in 0..self.settings.examined.min(self.candidates.len()) {
            let Some(page) = self.candidates.pop_front() else { return };
            match view.tier_of(page) {
                Some(TierId::FAST) | None => self.queued.remove(page),
                Some(_) if self.test_accessed(page, view) => {
                    self.pending.push_back(Pending { page, aborted: 0 });
                }
                Some(_) => self.candidates.push_back(page),
            }
        }
    }
}

impl Policy for Nomad {
    fn signals(&self) -> Signals {
        Signals::NONE
            .with(Signal::HintFaults)
            .with(Signal::AccessedBits)
            .with(Signal::TransactionalMoves)
            .with(Signal::KernelReclaim)
    }

    fn sampling(&self) -> Sampling {
        faults_only(self.scanner.tick().min(self.settings.kpromote_interval))
    }

    fn migration_context(&self) -> MigrationContext {
        MigrationContext::Faulting
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        for fault in batch.faults.iter().filter(|fault| fault.tier != TierId::FAST) {
            self.examine(view);
            self.enter(fault.page, view);
        }
        let faults = batch.faults.len() as u64;
        self.work.operations += (FAULT_OPERATIONS + self.settings.examined as u64) * faults;
        self.work.touches += (1 + self.settings.examined as u64) * faults;
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        self.scanner.run(now, view, plan, &mut self.work);
        self.headroom.keep(view, plan);
        if now >= self.next_round {
            self.next_round = now + self.settings.kpromote_interval;
            plan.copying = Copying::Transactional;
            plan.moves.extend(self.pending.iter().map(|entry| Move { page: entry.page, to: TierId::FAST }));
        }
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _view: &mut dyn View) {
        for status in outcome.moves.iter().take(plan.moves.len()) {
            let Some(mut entry) = self.pending.pop_front() else { return };
            let busy = *status == MoveStatus::Busy;
            self.aborted += u64::from(busy);
            entry.aborted += u8::from(busy);
            if busy && entry.aborted < self.settings.attempts {
                self.pending.push_back(entry);
            } else {
                self.queued.remove(entry.page);
            }
        }
    }

    fn metadata(&self) -> Bytes {
        let queues = self.candidates.capacity() * size_of::<PageId>()
            + self.pending.capacity() * size_of::<Pending>()
            + self.found.capacity() * size_of::<(PageId, TierId, bool)>();
        Bytes((queues + self.queued.bytes() + self.scanner.bytes()) as u64)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        gauges.extend([
            Gauge { name: "candidates", value: self.candidates.len() as f64 },
            Gauge { name: "pending", value: self.pending.len() as f64 },
            Gauge { name: "aborted", value: self.aborted as f64 },
        ]);
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::Pages;

    use super::*;
    use crate::support::test_view::{TestView, fault_of, parameters, setup, turn};

    const FAST: u64 = 100;

    fn policy(settings: &[(&str, &str)]) -> Nomad {
        Nomad::new(&parameters(Settings::SPECS, settings), &setup(400, FAST))
    }

    fn machine() -> TestView {
        let mut view = TestView::new(&[Pages(FAST), Pages(400)], 200);
        (0..10).for_each(|page| view.put(page, TierId(1)));
        view
    }

    /// Returns the pages that the turn at `milliseconds` moves, after a fault on `page` if there is one.
    fn step(nomad: &mut Nomad, view: &mut TestView, page: Option<u32>, milliseconds: u64) -> Vec<u32> {
        let batch = page.map_or_else(SampleBatch::default, |page| fault_of(view, page, Nanos(1), Nanos(0)));
        let now = Nanos(milliseconds * Nanos::MILLISECOND.0);
        let plan = turn(nomad, view, &batch, now).0;
        assert!(plan.moves.is_empty() || plan.copying == Copying::Transactional);
        plan.moves.iter().map(|step| step.page.0).collect()
    }

    #[test]
    fn one_fault_and_a_later_access_make_a_page_pending_and_kpromote_moves_it() {
        let (mut nomad, mut view) = (policy(&[]), machine());
        view.accessed = vec![150];
        step(&mut nomad, &mut view, Some(150), 0);
        step(&mut nomad, &mut view, Some(151), 1);
        assert!(nomad.pending.is_empty(), "its own fault's access does not count");
        view.accessed = vec![150];
        assert!(step(&mut nomad, &mut view, Some(152), 2).is_empty(), "kpromote sleeps");
        assert_eq!(nomad.pending.len(), 1);
        assert_eq!(step(&mut nomad, &mut view, None, 10), [150]);
        assert_eq!(view.tier_of(PageId(150)), Some(TierId::FAST));
        assert!(!nomad.queued.contains(PageId(150)), "it may come again after a demotion");
    }

    #[test]
    fn an_aborted_copy_is_tried_again_until_its_attempts_are_spent() {
        let (mut nomad, mut view) = (policy(&[("attempts", "3")]), machine());
        nomad.pending.push_back(Pending { page: PageId(150), aborted: 0 });
        view.pinned = Some(PageId(150));
        for round in 1..=3 {
            assert_eq!(step(&mut nomad, &mut view, None, 10 * round), [150], "round {round}");
        }
        assert!(step(&mut nomad, &mut view, None, 40).is_empty());
        assert_eq!(nomad.aborted, 3);
    }

    #[test]
    fn a_page_without_room_is_pending_no_more_and_may_come_back() {
        let (mut nomad, mut view) = (policy(&[]), machine());
        nomad.queued.insert(PageId(150));
        nomad.pending.push_back(Pending { page: PageId(150), aborted: 0 });
        view.reserve = FAST;
        assert_eq!(step(&mut nomad, &mut view, None, 10), [150]);
        assert!(nomad.pending.is_empty() && !nomad.queued.contains(PageId(150)));
    }

    #[test]
    fn the_oldest_candidate_leaves_a_full_queue() {
        let (mut nomad, mut view) = (policy(&[("candidates", "2"), ("examined", "1")]), machine());
        (150..154).for_each(|page| _ = step(&mut nomad, &mut view, Some(page), 0));
        assert_eq!(nomad.candidates.len(), 2);
        let queued: Vec<u32> = (150..154).filter(|&page| nomad.queued.contains(PageId(page))).collect();
        let mut listed: Vec<u32> = nomad.candidates.iter().map(|page| page.0).collect();
        listed.sort_unstable();
        assert_eq!(queued, listed);
    }
}
