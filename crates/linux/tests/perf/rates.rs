//! Rates: changed on running threads, off and on, clamped, throttled.

use isotherm_core::{Operation, Sampling, SamplingRate, SamplingScope, Signal, TierId};
use isotherm_linux::perf::events::{EventSpec, SourceEvents};
use isotherm_linux::perf::pmu::Encoding;
use isotherm_linux::perf::source::{PmuOptions, PmuSource};
use isotherm_linux::source::{Access, AccessSource};

use super::support::{Program, at, drained, every, page_faults};

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;

/// New rates reach threads that inherited their events, which `PERF_EVENT_IOC_PERIOD` would not do.
#[test]
fn a_new_period_reaches_every_running_thread() {
    let mut program = Program::start("threads 10");
    let mut source = page_faults(16);
    source.request(&every(1)).expect("granted");
    source.follow(program.pid).expect("it runs");
    program.order("go");
    assert_eq!(program.inside(&drained(&mut source)).count(), 20);
    source.request(&every(4)).expect("granted");
    (0..40).for_each(|_| program.order("go"));
    let accesses = drained(&mut source);
    assert!(program.inside(&accesses).all(|access| access.weight == 4));
    // Each of 20 threads touches 40 pages. Each processor counts its own period: at most its last 3 are
    // missing.
    let (sampled, processors) = (program.inside(&accesses).count(), std::thread::available_parallelism());
    let processors = processors.map_or(1, usize::from);
    assert!((200usize.saturating_sub(20 * processors)..=205).contains(&sampled), "{sampled}");
}

#[test]
fn off_is_off_also_for_new_threads_and_on_goes_on() {
    let mut program = Program::start("threads 10");
    let mut source = page_faults(16);
    source.request(&every(1)).expect("granted");
    source.follow(program.pid).expect("it runs");
    source.request(&at(SamplingRate::Off)).expect("granted");
    let open = source.open_events();
    // Discards what the threads touched before sampling was off.
    drained(&mut source);
    program.order("go");
    assert!(drained(&mut source).is_empty());
    source.request(&every(1)).expect("granted");
    assert_eq!(source.open_events(), open, "nothing is opened anew for the same rate");
    program.order("go");
    let pages: Vec<u64> = (0..20).map(|thread| 64 * thread + 1).collect();
    program.assert_pages(&drained(&mut source), pages);
}

#[test]
fn a_frequency_above_the_kernels_limit_is_clamped_and_samples_weigh_what_they_stand_for() {
    let mut program = Program::start("touch 20000");
    let mut source = page_faults(128);
    source.follow(program.pid).expect("it runs");
    source.request(&at(SamplingRate::Frequency(100_001_000))).expect("clamped");
    (0..200).for_each(|_| program.order("100"));
    let accesses = drained(&mut source);
    assert!(!accesses.is_empty() && accesses.iter().all(|access| access.weight >= 1));
    source.request(&at(SamplingRate::Frequency(1_000))).expect("granted");
}

/// Minor faults replace one tier, all faults another, and minor faults again stores: each has its own ring.
#[test]
fn each_tier_and_stores_have_events_of_their_own() {
    let faults = |name: &str, config, operation, tier| EventSpec {
        name: name.into(),
        encoding: Encoding { kind: 1, config: [config, 0, 0, 0] },
        operation,
        tier,
        ..EventSpec::page_faults()
    };
    let each_tier = vec![
        faults("all", 2, Operation::Load, Some(TierId(0))),
        faults("minor", 5, Operation::Load, Some(TierId(1))),
    ];
    let stores = Some(faults("minor stores", 5, Operation::Store, None));
    let events = SourceEvents { each_tier, stores, ..SourceEvents::page_faults() };
    let mut program = Program::start("touch 30");
    let mut source = PmuSource::new(events, PmuOptions::default()).expect("page faults need no PMU");
    assert!(source.offers().has(Signal::StoreSamples));
    source.follow(program.pid).expect("it runs");
    let mut kinds = |scope, stores| {
        source.request(&Sampling { scope, stores, ..every(1) }).expect("granted");
        program.order("10");
        let accesses = drained(&mut source);
        let count = |operation, tier| {
            let of = |access: &&Access| access.operation == operation && access.tier == tier;
            program.inside(&accesses).filter(of).count()
        };
        let loads = [None, Some(TierId(0)), Some(TierId(1))].map(|tier| count(Operation::Load, tier));
        (loads, count(Operation::Store, None))
    };
    assert_eq!(kinds(SamplingScope::EachTier, true), ([0, 10, 10], 10));
    assert_eq!(kinds(SamplingScope::AllTiers, false), ([10, 0, 0], 0));
    assert_eq!(kinds(SamplingScope::EachTier, false), ([0, 10, 10], 0));
}

/// The kernel throttles events that overflow often within one tick of its clock. It does not check page
/// faults, and a timer's samples stay below the limit; the tracepoint of a task's run time counts
/// nanoseconds, a million at once.
#[test]
fn throttling_is_counted() {
    let Ok(id) = std::fs::read_to_string("/sys/kernel/tracing/events/sched/sched_stat_runtime/id") else {
        println!("skipped: no tracefs, whose sched_stat_runtime is the event that can be throttled");
        return;
    };
    let id = id.trim().parse().expect("a number");
    let run_time = EventSpec {
        name: "sched_stat_runtime".into(),
        encoding: Encoding { kind: TRACEPOINT, config: [id, 0, 0, 0] },
        ..EventSpec::page_faults()
    };
    let events = SourceEvents { all_tiers: vec![run_time], ..SourceEvents::page_faults() };
    let program = Program::start("spin");
    let mut source = PmuSource::new(events, PmuOptions::default()).expect("root may");
    source.follow(program.pid).expect("it runs");
    source.request(&every(1)).expect("granted");
    for _ in 0..1_000 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        drained(&mut source);
        if source.statistics().throttled > 0 {
            break;
        }
    }
    let statistics = source.statistics();
    assert!(statistics.throttled > 0 && statistics.foreign > 0, "{statistics:?}");
    // A slower rate is not throttled.
    source.request(&every(1_000_000_000)).expect("granted");
    drained(&mut source);
    let before = source.statistics().throttled;
    std::thread::sleep(std::time::Duration::from_millis(50));
    drained(&mut source);
    assert_eq!(source.statistics().throttled, before);
}
