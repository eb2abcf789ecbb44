//! Alto: Colloid whose promotions are regulated by how much of its latency a load exposes.
//!
//! # Paper
//! Liu et al., "Tiered Memory Management Beyond Hotness", OSDI 2025: its adaptive page migration regulation;
//! on Colloid, as PACT compares it (section 5.4). Amortised off-core latency is latency / MLP over all tiers:
//! the time with a load in flight over the loads. Up to the lower threshold no promotion pays, from the upper
//! one on all of Colloid's are made, between them a share that rises in tenths. Demotions go on.
//!
//! # Deviations
//! - The thresholds are the paper's 40 and 100 cycles of Skylake, as time at 2.2 GHz.
//! - The steps between the thresholds are ours: the paper's function is not printed in full.
//! - Time with a load in flight is counted for each tier: twice while loads of two tiers are in flight.

use crate::colloid::{self, Colloid};
use crate::prelude::*;

const STEPS: f64 = 10.0;

parameters! {
    pub(crate) struct Settings {
        /// Amortised off-core latency up to which nothing is promoted.
        lower_latency: Nanos = duration(Nanos(0), Nanos::SECOND, "18ns")
            .source("Alto, algorithm 2: 40 cycles on Skylake; at 2.2 GHz"),
        /// Amortised off-core latency from which everything is promoted that Colloid would.
        upper_latency: Nanos = duration(Nanos(0), Nanos::SECOND, "45ns")
            .source("Alto, algorithm 2: 100 cycles on Skylake; at 2.2 GHz"),
        /// Time between two looks at the amortised off-core latency.
        interval: Nanos = interval("1s").source("Alto: counters are read each second; 100 ms does the same")
            .scaled(),
        colloid: colloid::Settings,
    }
}

#[derive(Debug)]
pub(crate) struct Alto {
    colloid: Colloid,
    settings: Settings,
    last: Nanos,
    before: Counters,
    now: Counters,
    amortised: Option<f64>,
}

impl Alto {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let settings = Settings::read(parameters);
        Self {
            colloid: Colloid::with(&settings.colloid, setup),
            last: Nanos(0),
            before: Counters::default(),
            now: Counters::default(),
            amortised: None,
            settings,
        }
    }

    fn look(&mut self, now: Nanos) {
        if now - self.last < self.settings.interval {
            return;
        }
        self.last = now;
        self.amortised = amortised(&self.before, &self.now);
        std::mem::swap(&mut self.before, &mut self.now);
        if let Some(latency) = self.amortised {
            self.colloid.promote_share(self.share(latency));
        }
    }

    fn share(&self, latency: f64) -> f64 {
        let Settings { lower_latency: Nanos(lower), upper_latency: Nanos(upper), .. } = self.settings;
        match (lower as f64, upper as f64) {
            (_, upper) if latency >= upper => 1.0,
            (lower, _) if latency <= lower => 0.0,
            (lower, upper) => (STEPS * (latency - lower) / (upper - lower)).floor() / STEPS,
        }
    }
}

/// Returns latency / MLP of the loads between two readings; `None` without loads.
fn amortised(before: &Counters, now: &Counters) -> Option<f64> {
    let sums = |counters: &Counters| {
        let tiers = counters.tiers.iter();
        tiers.fold((0, 0), |(busy, loads), tier| (busy + tier.load_busy, loads + tier.load_misses))
    };
    let ((busy_before, loads_before), (busy, loads)) = (sums(before), sums(now));
    let loads = loads.saturating_sub(loads_before);
    (loads > 0).then(|| busy.saturating_sub(busy_before) as f64 / loads as f64)
}

impl Policy for Alto {
    fn signals(&self) -> Signals {
        self.colloid.signals()
    }

    fn sampling(&self) -> Sampling {
        let sampling = self.colloid.sampling();
        Sampling { tick: sampling.tick.min(self.settings.interval), ..sampling }
    }

    fn migration_context(&self) -> MigrationContext {
        self.colloid.migration_context()
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        self.now.clone_from(&batch.counters);
        self.colloid.observe(batch, view);
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        self.look(now);
        self.colloid.step(now, view, plan);
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, view: &mut dyn View) {
        self.colloid.settle(plan, outcome, view);
    }

    fn metadata(&self) -> Bytes {
        self.colloid.metadata()
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        self.colloid.gauges(gauges);
        gauges.push(Gauge { name: "amortised-latency-ns", value: self.amortised.unwrap_or(0.0) });
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::{Move, PageId, Pages, TierCounters, TierId};

    use super::*;
    use crate::support::test_view::{TestView, fault_of, parameters, setup, turn};

    fn policy() -> Alto {
        Alto::new(&parameters(Settings::SPECS, &[]), &setup(400, 100))
    }

    /// Returns the promotions of ten turns, a second apart, with a hot fault and busy time for each load.
    fn promotions(amortised: u64) -> usize {
        let (mut alto, mut view) = (policy(), TestView::new(&[Pages(100), Pages(400)], 200));
        let turns = (1..=10).map(|second: u64| {
            let mut batch = fault_of(&view, 100 + second as u32, Nanos::MILLISECOND, Nanos(0));
            let loads = 1_000_000 * second;
            let tier = |latency: u64| TierCounters {
                load_misses: loads,
                occupancy: loads * latency,
                load_busy: loads * amortised,
                ..TierCounters::default()
            };
            batch.counters.tiers = vec![tier(100), tier(200)];
            let now = Nanos(second * Nanos::SECOND.0);
            let plan = turn(&mut alto, &mut view, &batch, now).0;
            let to_fast = |step: &&Move| step.to == TierId::FAST && step.page >= PageId(100);
            plan.moves.iter().filter(to_fast).count()
        });
        turns.sum()
    }

    #[test]
    fn it_promotes_as_colloid_where_latency_is_exposed_and_nothing_where_it_is_hidden() {
        assert_eq!(promotions(90), 10);
        assert_eq!(promotions(10), 0);
    }

    #[test]
    fn between_the_thresholds_it_promotes_a_share() {
        let alto = policy();
        assert_eq!([18.0, 31.5, 44.9, 45.0].map(|latency| alto.share(latency)), [0.0, 0.5, 0.9, 1.0]);
        assert_eq!(promotions(32), 5);
    }
}
