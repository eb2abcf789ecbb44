//! NUMA balancing in tiering mode, as in Linux (`kernel.numa_balancing = 2`), with demotion by reclaim.
//!
//! # Source
//! Linux 6.2: `kernel/sched/fair.c` (Huang, "memory tiering: hot page selection with hint page fault
//! latency", "rate limit NUMA migration throughput", "adjust hot threshold automatically", 2022) and
//! `mm/vmscan.c` (demotion). FreqTier and HybridTier call it AutoNUMA, PACT NBT.
//!
//! - `task_numa_work`: `numa_balancing::Scanner` arms `scan_size` of slow memory each `scan_period`.
//! - `should_numa_migrate_memory`: [`Promotion`]. With max(1 GiB, node / 16) free every faulting page is
//!   promoted; else one that faulted within the hot threshold, if the rate limit allows.
//! - `numa_promotion_adjust_threshold`: `numa_balancing::threshold`.
//! - Defaults are Linux'; a paper's own configuration is a preset ([`PRESETS`]).
//! - kswapd: [`Watermarks`] and the host's reclaim in place of MGLRU.
//!
//! # Deviations
//! - The scan period is fixed: in this mode faults on slow pages do not enter the statistic that adapts it.
//! - kswapd, woken by a promotion, makes room before it; in Linux that promotion fails and waits for the next
//!   fault. See `docs/reference/policies.md`.
//! - Linux' limit of 3 % of a thread's time for scans is not modelled, nor that fault times wrap.

use isotherm_core::parameters::Preset;

use crate::prelude::*;
pub(crate) use crate::support::numa_balancing::Settings;
use crate::support::numa_balancing::{FAULT_OPERATIONS, Promotion, Scanner, Watermarks, faults_only};

/// The settings of a paper that did not measure it with Linux' defaults.
pub(crate) const PRESETS: &[Preset] = &[Preset {
    name: "hybridtier",
    source: "github.com/kevins981/hybridtier-asplos25-artifact, run_exp_common.sh: enable_autonuma",
    help: "As HybridTier's artifact sets AutoNUMA up: watermark_scale_factor 200, promotions at 3,400 MB/s.",
    values: &[("watermark_step", "2%"), ("rate_limit", "3400M")],
}];

#[derive(Debug)]
pub(crate) struct Nbt {
    scanner: Scanner,
    promotion: Promotion,
    marks: Watermarks,
    wanted: Vec<PageId>,
    work: Work,
}

impl Nbt {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let settings = Settings::read(parameters);
        let marks = Watermarks::new(&settings.marks, setup);
        Self {
            scanner: Scanner::new(&settings.scan, setup),
            promotion: Promotion::new(&settings.promotion, marks, setup),
            marks,
            wanted: Vec::new(),
            work: Work::default(),
        }
    }
}

impl Policy for Nbt {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::HintFaults).with(Signal::KernelReclaim)
    }

    fn sampling(&self) -> Sampling {
        faults_only(self.scanner.tick())
    }

    fn migration_context(&self) -> MigrationContext {
        MigrationContext::Faulting
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        let free = view.free(TierId::FAST).0;
        for fault in batch.faults.iter().filter(|fault| fault.tier != TierId::FAST) {
            if self.promotion.admits(fault, free.saturating_sub(self.wanted.len() as u64)) {
                self.wanted.push(fault.page);
            }
        }
        self.work.operations += FAULT_OPERATIONS * batch.faults.len() as u64;
        self.work.touches += batch.faults.len() as u64;
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        self.scanner.run(now, view, plan, &mut self.work);
        self.marks.keep(self.wanted.len() as u64, view, plan);
        plan.moves.extend(self.wanted.drain(..).map(|page| Move { page, to: TierId::FAST }));
        plan.work = self.work.take();
    }

    fn metadata(&self) -> Bytes {
        Bytes((self.scanner.bytes() + self.wanted.capacity() * size_of::<PageId>()) as u64)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        gauges.push(Gauge { name: "hot-threshold-ns", value: self.promotion.threshold().0 as f64 });
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::Pages;
    use isotherm_core::parameters::Value;

    use super::*;
    use crate::support::test_view::{TestView, fault_of, parameters, setup, turn};

    fn policy(settings: &[(&str, &str)]) -> Nbt {
        Nbt::new(&parameters(Settings::SPECS, settings), &setup(64, 16))
    }

    /// Returns the plan after one fault on `page`, `latency` after it was armed.
    fn plan_after(policy: &mut Nbt, view: &mut TestView, page: u32, latency: Nanos) -> Plan {
        let batch = fault_of(view, page, latency, Nanos(0));
        turn(policy, view, &batch, Nanos(0)).0
    }

    #[test]
    fn a_page_that_faults_within_the_threshold_is_promoted_and_kswapd_makes_room() {
        let (mut nbt, mut view) = (policy(&[]), TestView::new(&[Pages(16), Pages(64)], 40));
        let plan = plan_after(&mut nbt, &mut view, 20, Nanos(Nanos::SECOND.0 - 1));
        assert_eq!(plan.moves, [Move { page: PageId(20), to: TierId::FAST }]);
        assert_eq!(plan.reclaim[0].pages, Pages(1 + nbt.marks.promo));
        view.put(0, TierId(1));
        let plan = plan_after(&mut nbt, &mut view, 21, Nanos::SECOND);
        assert!(plan.moves.is_empty(), "too cold");
        assert_eq!(nbt.migration_context(), MigrationContext::Faulting);
    }

    #[test]
    fn with_enough_free_everything_that_faults_is_promoted() {
        let (mut nbt, mut view) =
            (policy(&[("enough_free", "16384")]), TestView::new(&[Pages(16), Pages(64)], 40));
        (0..8).for_each(|page| view.put(page, TierId(1)));
        assert_eq!(plan_after(&mut nbt, &mut view, 20, Nanos(u64::MAX)).moves.len(), 1, "8 free of 16");
        (0..4).for_each(|page| view.put(page, TierId::FAST));
        assert!(
            plan_after(&mut nbt, &mut view, 21, Nanos(u64::MAX)).moves.is_empty(),
            "4 less the watermarks"
        );
    }

    /// HybridTier's authors measured AutoNUMA with a watermark_scale_factor of 200 and 3,400 MB/s, not with
    /// Linux' 10 and 65,536.
    #[test]
    fn the_preset_is_the_configuration_of_the_paper() {
        let built = |preset: &str| {
            let mut parameters = Parameters::with_presets("nbt", Settings::SPECS, PRESETS);
            parameters.set("preset", preset).expect("it is listed");
            let marks = Nbt::new(&parameters, &setup(200_000, 100_000)).marks;
            (marks.high - marks.low, parameters.value("rate_limit"))
        };
        let limit = |megabytes: u64| Some(Value::Size(Bytes(megabytes << 20)));
        assert_eq!(built("default"), (100, limit(65_536)));
        assert_eq!(built("hybridtier"), (2_000, limit(3_400)), "2 % of the tier between two marks");
    }

    #[test]
    fn above_the_rate_limit_nothing_is_promoted() {
        let (mut nbt, mut view) =
            (policy(&[("rate_limit", "12288")]), TestView::new(&[Pages(16), Pages(64)], 40));
        let moves: Vec<usize> =
            (20..25).map(|page| plan_after(&mut nbt, &mut view, page, Nanos(1)).moves.len()).collect();
        assert_eq!(moves, [1, 1, 0, 0, 0], "as in Linux the third candidate meets a limit of three");
    }
}
