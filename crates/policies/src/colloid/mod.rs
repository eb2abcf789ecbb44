//! Colloid: placement that balances the loaded latencies of the tiers.
//!
//! # Paper
//! Vuppalapati and Agarwal, "Tiered Memory Management: Access Latency is the Key!", SOSP 2024: section 3 and
//! its integration with Linux' hint faults. `balance` has the latencies and the controller.
//!
//! - Pages that fault within NUMA balancing's hot threshold move, on either tier. A page armed for t before
//!   its fault counts as 1 / (t x requests per time) of all requests. In each quantum pages move until their
//!   shares sum up to the shift, within the shift's share of the traffic (the dynamic migration limit).
//! - While the fast tier is the slower one, its hot pages are demoted. kswapd keeps demoting cold pages.
//!
//! # Deviations
//! - With more than two tiers, all slower ones are the alternate tier; demotions go to the next one.
//! - A tier without requests counts as unloaded; the paper's counters always see some.

mod balance;

use crate::prelude::*;
use crate::support::numa_balancing;
use crate::support::numa_balancing::{FAULT_OPERATIONS, Promotion, Scanner, Watermarks, faults_only};
use balance::{Balance, Shift};

/// Bytes of a request.
const LINE: f64 = 64.0;

parameters! {
    pub(crate) struct Settings {
        /// Latencies that differ by less are equal.
        delta: f64 = number(0.0, 1.0, "0.05").unit("of the fast tier's latency")
            .source("Colloid, section 3.2"),
        /// Marks that are closer than this have met: the balance has moved.
        epsilon: f64 = number(0.0, 1.0, "0.01").unit("of all requests").source("Colloid, section 3.2"),
        /// Time between two looks at the latencies.
        quantum: Nanos = interval("100ms")
            .source("Colloid's artifact, its kernel with hint faults: latency is sampled each 100 ms")
            .scaled(),
        /// Weight of a quantum in the moving averages of occupancy and requests.
        smoothing: f64 = number(0.001, 1.0, "0.5").source("Colloid's artifact: 2^-1 with that period"),
        kernel: numa_balancing::Settings,
    }
}

#[derive(Debug, Clone, Copy)]
struct Budget {
    /// Share of all requests.
    share: f64,
    pages: f64,
}

#[derive(Debug)]
pub(crate) struct Colloid {
    scanner: Scanner,
    promotion: Promotion,
    marks: Watermarks,
    balance: Balance,
    quantum: Nanos,
    last_quantum: Nanos,
    shift: Shift,
    budget: Budget,
    /// Requests in a nanosecond.
    rate: f64,
    page_bytes: f64,
    faults: Vec<HintFault>,
    counters: Counters,
    /// Of the promotions that it decides on, the share that is made: Alto holds some back.
    share: f64,
    /// Parts of promotions that the share has let through and were not made.
    credit: f64,
    work: Work,
}

impl Colloid {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        Self::with(&Settings::read(parameters), setup)
    }

    pub(crate) fn with(settings: &Settings, setup: &Setup) -> Self {
        let marks = Watermarks::new(&settings.kernel.marks, setup);
        Self {
            scanner: Scanner::new(&settings.kernel.scan, setup).of_every_tier(),
            promotion: Promotion::new(&settings.kernel.promotion, marks, setup),
            marks,
            balance: Balance::new(settings.delta, settings.epsilon, settings.smoothing),
            quantum: settings.quantum,
            last_quantum: Nanos(0),
            shift: Shift::Rest,
            budget: Budget { share: 0.0, pages: 0.0 },
            rate: 0.0,
            page_bytes: setup.page_size.bytes().0 as f64,
            faults: Vec::new(),
            counters: Counters::default(),
            share: 1.0,
            credit: 0.0,
            work: Work::default(),
        }
    }

    pub(crate) fn promote_share(&mut self, share: f64) {
        self.share = share;
    }

    fn lets_through(&mut self) -> bool {
        self.credit += self.share;
        let whole = self.credit >= 1.0;
        self.credit -= f64::from(u8::from(whole));
        whole
    }

    fn look(&mut self, now: Nanos) {
        let elapsed = now - self.last_quantum;
        if elapsed < self.quantum {
            return;
        }
        self.last_quantum = now;
        self.shift = self.balance.quantum(&self.counters);
        let share = match self.shift {
            Shift::Rest => 0.0,
            Shift::Promote(share) | Shift::Demote(share) => share,
        };
        self.rate = self.balance.requests() / elapsed.0 as f64;
        self.budget = Budget { share, pages: share * self.balance.requests() * LINE / self.page_bytes };
    }

    /// Returns the move of a faulting page if it is hot and its tier is the slower one.
    fn decide(&mut self, fault: &HintFault, free: u64) -> Option<Move> {
        let to = match (self.shift, fault.tier) {
            (Shift::Promote(_), tier) if tier != TierId::FAST => TierId::FAST,
            (Shift::Demote(_), TierId::FAST) => TierId::FAST.slower(),
            _ => return None,
        };
        let share = 1.0 / (fault.latency.0.max(1) as f64 * self.rate).max(1.0);
        if share > self.budget.share || self.budget.pages < 1.0 {
            return None;
        }
        let hot = match to {
            TierId::FAST => self.promotion.admits(fault, free),
            _ => fault.latency < self.promotion.threshold(),
        };
        if !hot || (to == TierId::FAST && !self.lets_through()) {
            return None;
        }
        self.budget.share -= share;
        self.budget.pages -= 1.0;
        Some(Move { page: fault.page, to })
    }
}

impl Policy for Colloid {
    fn signals(&self) -> Signals {
        Signals::NONE
            .with(Signal::HintFaults)
            .with(Signal::TierHits)
            .with(Signal::TierStalls)
            .with(Signal::KernelReclaim)
    }

    fn sampling(&self) -> Sampling {
        faults_only(self.scanner.tick().min(self.quantum))
    }

    fn migration_context(&self) -> MigrationContext {
        MigrationContext::Faulting
    }

    fn observe(&mut self, batch: &SampleBatch, _view: &mut dyn View) {
        self.faults.clone_from(&batch.faults);
        self.counters.clone_from(&batch.counters);
        self.work.operations += FAULT_OPERATIONS * batch.faults.len() as u64;
        self.work.touches += batch.faults.len() as u64;
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        self.look(now);
        self.scanner.run(now, view, plan, &mut self.work);
        if view.tiers() > 1 {
            let (free, mut promoted) = (view.free(TierId::FAST).0, 0);
            for fault in std::mem::take(&mut self.faults) {
                if let Some(step) = self.decide(&fault, free.saturating_sub(promoted)) {
                    promoted += u64::from(step.to == TierId::FAST);
                    plan.moves.push(step);
                }
            }
            self.marks.keep(promoted, view, plan);
        }
        plan.work = self.work.take();
    }

    fn metadata(&self) -> Bytes {
        Bytes((self.scanner.bytes() + self.faults.capacity() * size_of::<HintFault>()) as u64)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        let [fast, slow] = self.balance.latencies().map(|latency| latency.unwrap_or(0.0));
        let shift = match self.shift {
            Shift::Rest => 0.0,
            Shift::Promote(share) => share,
            Shift::Demote(share) => -share,
        };
        gauges.extend([
            Gauge { name: "fast-latency-ns", value: fast },
            Gauge { name: "slow-latency-ns", value: slow },
            Gauge { name: "shift", value: shift },
        ]);
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::{PageId, Pages, TierCounters};

    use super::*;
    use crate::support::test_view::{TestView, fault_of, parameters, setup, turn};

    fn policy() -> Colloid {
        Colloid::new(&parameters(Settings::SPECS, &[]), &setup(400, 100))
    }

    /// Returns the moves of a turn with a fault on `page`, `latency` after arming, a second after the start
    /// with tiers at such latencies and a million requests each.
    fn moves(page: u32, latency: Nanos, latencies: [u64; 2]) -> Vec<Move> {
        let (mut colloid, mut view) = (policy(), TestView::new(&[Pages(100), Pages(400)], 200));
        let mut batch = fault_of(&view, page, latency, Nanos(0));
        let requests = 1_000_000;
        let tier = |latency| TierCounters {
            load_misses: requests,
            occupancy: requests * latency,
            ..TierCounters::default()
        };
        batch.counters.tiers = latencies.map(tier).to_vec();
        turn(&mut colloid, &mut view, &batch, Nanos::SECOND).0.moves
    }

    #[test]
    fn hot_pages_go_to_the_tier_with_the_lower_loaded_latency() {
        let hot = Nanos(Nanos::MILLISECOND.0);
        let promoted = [Move { page: PageId(150), to: TierId::FAST }];
        let demoted = [Move { page: PageId(50), to: TierId(1) }];
        assert_eq!(moves(150, hot, [100, 200]), promoted);
        assert_eq!(moves(50, hot, [100, 200]), []);
        assert_eq!(moves(50, hot, [300, 200]), demoted);
        assert_eq!(moves(150, hot, [300, 200]), []);
        assert_eq!(moves(150, hot, [200, 200]), [], "equal");
        assert_eq!(moves(50, hot, [200, 200]), []);
    }

    #[test]
    fn cold_pages_and_pages_larger_than_the_shift_stay() {
        assert_eq!(moves(150, Nanos(2 * Nanos::SECOND.0), [100, 200]), [], "cold");
        assert_eq!(
            moves(150, Nanos(1_000), [100, 200]),
            [],
            "it alone would be all requests, the shift is a quarter"
        );
    }

    #[test]
    fn a_quantum_moves_no_more_than_its_shift() {
        let mut colloid = policy();
        colloid.shift = Shift::Demote(0.1);
        (colloid.rate, colloid.budget) = (1.0, Budget { share: 0.1, pages: 100.0 });
        let view = TestView::new(&[Pages(100), Pages(400)], 200);
        // A page with 1/40 of all requests each: four make a tenth.
        let faults = (0..10).map(|page| fault_of(&view, page, Nanos(40), Nanos(0)).faults[0]);
        assert_eq!(faults.filter(|fault| colloid.decide(fault, 0).is_some()).count(), 4);
        colloid.budget = Budget { share: 1.0, pages: 2.5 };
        let faults = (0..10).map(|page| fault_of(&view, page, Nanos(40), Nanos(0)).faults[0]);
        assert_eq!(
            faults.filter(|fault| colloid.decide(fault, 0).is_some()).count(),
            2,
            "the traffic's limit"
        );
    }
}
