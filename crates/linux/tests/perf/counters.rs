//! Counters beside samples.

use isotherm_core::{Counters, Signal, TierId};
use isotherm_linux::perf::counters::{CountSpec, CounterEvents, Measure, PmuCounters};
use isotherm_linux::perf::pmu::Encoding;
use isotherm_linux::perf::sys::{kind, software};
use isotherm_linux::source::AccessSource;

use super::support::{Program, drained, every, page_faults};

/// Page faults replace the misses of a tier: each is both sampled and counted.
#[test]
fn counts_agree_with_samples_over_threads_that_come_and_go() {
    let faults = CountSpec {
        name: "page-faults".into(),
        encoding: Encoding { kind: kind::SOFTWARE, config: [software::PAGE_FAULTS, 0, 0, 0] },
        measure: Measure::Loads(TierId(1)),
    };
    let events = CounterEvents { threads: vec![vec![faults]], ..CounterEvents::default() };
    let mut program = Program::start("threads 20");
    let mut source = page_faults(64).with_counters(PmuCounters::new(events, 0).expect("one event"));
    assert!(source.offers().has(Signal::TierHits));
    source.request(&every(1)).expect("granted");
    source.follow(program.pid).expect("it runs");
    let mut counters = Counters::default();
    for _ in 0..5 {
        program.order("go");
    }
    program.finish();
    drained(&mut source);
    source.count(&mut counters).expect("readable");
    let statistics = source.statistics();
    assert!(statistics.delivered > 200, "{statistics:?}");
    assert_eq!(counters.tiers[1].load_misses, statistics.delivered + statistics.foreign + statistics.lost);
    assert_eq!(counters.load_hits(), (0, counters.tiers[1].load_misses));
}
