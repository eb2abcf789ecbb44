//! TPP: transparent page placement for CXL.
//!
//! # Paper
//! Maruf et al., "TPP: Transparent Page Placement for CXL-Enabled Tiered-Memory", ASPLOS 2023, section 5.
//!
//! - Migration for lightweight reclamation (5.1): the host's reclaim demotes the inactive list's tail.
//! - Decoupled allocation and reclamation (5.2): reclaim keeps `demote_watermark` (`demote_scale_factor`, 2
//!   %) free, ahead of the watermarks of allocation.
//! - Promotion (5.3): hint faults on slow pages only. The first puts a page on the active list; a fault on
//!   the active list promotes it at once, whatever the watermarks of allocation say.
//!
//! # Deviations
//! - A page leaves the slow tier's active list only with its promotion: that tier has room, so the kernel
//!   never ages its lists. A page that reclaim demoted needs two faults again.
//! - Page-type-aware allocation (5.4) is missing: a trace does not tell the page cache.

use crate::prelude::*;
use crate::support::numa_balancing::{
    FAULT_OPERATIONS, Headroom, HeadroomSettings, ScanSettings, Scanner, faults_only,
};
use crate::support::page_bits::PageBits;

parameters! {
    pub(crate) struct Settings {
        scan: ScanSettings,
        headroom: HeadroomSettings,
    }
}

#[derive(Debug)]
pub(crate) struct Tpp {
    scanner: Scanner,
    headroom: Headroom,
    active: PageBits,
    active_pages: u64,
    wanted: Vec<PageId>,
    work: Work,
}

impl Tpp {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let settings = Settings::read(parameters);
        Self {
            scanner: Scanner::new(&settings.scan, setup),
            headroom: Headroom::new(&settings.headroom, setup),
            active: PageBits::new(setup.pages),
            active_pages: 0,
            wanted: Vec::new(),
            work: Work::default(),
        }
    }
}

impl Policy for Tpp {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::HintFaults).with(Signal::KernelReclaim)
    }

    fn sampling(&self) -> Sampling {
        faults_only(self.scanner.tick())
    }

    fn migration_context(&self) -> MigrationContext {
        MigrationContext::Faulting
    }

    fn observe(&mut self, batch: &SampleBatch, _view: &mut dyn View) {
        for fault in batch.faults.iter().filter(|fault| fault.tier != TierId::FAST) {
            if self.active.insert(fault.page) {
                self.active_pages += 1;
            } else {
                self.wanted.push(fault.page);
            }
        }
        self.work.operations += FAULT_OPERATIONS * batch.faults.len() as u64;
        self.work.touches += batch.faults.len() as u64;
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        self.scanner.run(now, view, plan, &mut self.work);
        self.headroom.keep(view, plan);
        plan.moves.extend(self.wanted.drain(..).map(|page| Move { page, to: TierId::FAST }));
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _view: &mut dyn View) {
        for (step, status) in plan.moves.iter().zip(&outcome.moves) {
            if *status == MoveStatus::Moved {
                self.active.remove(step.page);
                self.active_pages -= 1;
            }
        }
    }

    fn metadata(&self) -> Bytes {
        let buffers = self.scanner.bytes() + self.wanted.capacity() * size_of::<PageId>();
        Bytes((self.active.bytes() + buffers) as u64)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        gauges.push(Gauge { name: "active-slow-pages", value: self.active_pages as f64 });
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::Pages;

    use super::*;
    use crate::support::test_view::{TestView, fault_of, parameters, setup, turn};

    const FAST: u64 = 100;

    fn policy() -> Tpp {
        Tpp::new(&parameters(Settings::SPECS, &[]), &setup(400, FAST))
    }

    fn fault(tpp: &mut Tpp, view: &mut TestView, page: u32) -> Plan {
        let batch = fault_of(view, page, Nanos(1), Nanos(0));
        turn(tpp, view, &batch, Nanos(0)).0
    }

    #[test]
    fn the_second_fault_promotes_and_a_demoted_page_needs_two_again() {
        let (mut tpp, mut view) = (policy(), TestView::new(&[Pages(FAST), Pages(400)], 200));
        view.put(0, TierId(1));
        assert!(fault(&mut tpp, &mut view, 150).moves.is_empty(), "it goes to the active list");
        assert_eq!(tpp.active_pages, 1);
        assert_eq!(fault(&mut tpp, &mut view, 150).moves, [Move { page: PageId(150), to: TierId::FAST }]);
        view.put(150, TierId(1));
        assert!(fault(&mut tpp, &mut view, 150).moves.is_empty());
        assert_eq!(tpp.migration_context(), MigrationContext::Faulting);
    }

    #[test]
    fn a_page_that_found_no_room_stays_on_the_active_list() {
        let (mut tpp, mut view) = (policy(), TestView::new(&[Pages(FAST), Pages(400)], 200));
        (0..2).for_each(|_| _ = fault(&mut tpp, &mut view, 150));
        assert_eq!(view.tier_of(PageId(150)), Some(TierId(1)), "the test's reclaim moves nothing");
        view.put(0, TierId(1));
        fault(&mut tpp, &mut view, 150);
        assert_eq!(view.tier_of(PageId(150)), Some(TierId::FAST));
    }

    #[test]
    fn reclaim_runs_ahead_of_allocation() {
        let (mut tpp, mut view) = (policy(), TestView::new(&[Pages(FAST), Pages(400)], 200));
        let idle = SampleBatch::default();
        assert_eq!(turn(&mut tpp, &mut view, &idle, Nanos(0)).0.reclaim[0].pages, Pages(2), "2 % of 100");
        (0..2).for_each(|page| view.put(page, TierId(1)));
        assert!(turn(&mut tpp, &mut view, &idle, Nanos(0)).0.reclaim.is_empty());
    }
}
