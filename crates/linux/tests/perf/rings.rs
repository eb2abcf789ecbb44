//! Rings that wrap and overflow.

use isotherm_linux::perf::events::{EventSpec, Format, SourceEvents};
use isotherm_linux::perf::source::{PmuOptions, PmuSource};
use isotherm_linux::perf::sys::{self, Attr, Join, kind, software};
use isotherm_linux::source::AccessSource;

use super::support::{Program, drained, every, page_faults};

/// A ring of one page holds 85 1/3 records of 48 bytes: 20,000 faults wrap it 235 times, most often in a
/// record.
#[test]
fn a_ring_that_wraps_loses_nothing_when_drained_in_time() {
    let mut program = Program::start("touch 20000");
    let faults = EventSpec { format: Format::DataSource, ..EventSpec::page_faults() };
    let events = SourceEvents { all_tiers: vec![faults], ..SourceEvents::page_faults() };
    let options = PmuOptions { ring_pages: 1, ..PmuOptions::default() };
    let mut source = PmuSource::new(events, options).expect("page faults need no PMU");
    source.follow(program.pid).expect("it runs");
    source.request(&every(1)).expect("granted");
    let mut accesses = Vec::new();
    for _ in 0..400 {
        program.order("50");
        accesses.extend(drained(&mut source));
    }
    program.assert_pages(&accesses, 0..20_000);
    let statistics = source.statistics();
    assert_eq!((statistics.lost, statistics.delivered), (0, accesses.len() as u64));
    assert!(accesses.iter().all(|access| access.process == program.pid && access.weight == 1));
    assert!(accesses.is_sorted_by_key(|access| access.time));
}

#[test]
fn what_a_full_ring_loses_is_counted_exactly() {
    let mut program = Program::start("touch 20000");
    let mut source = page_faults(1);
    source.request(&every(1)).expect("granted");
    source.follow(program.pid).expect("it runs");
    // The kernel's own count of the same event, for every thread.
    let attr = Attr { kind: kind::SOFTWARE, config: software::PAGE_FAULTS, ..Attr::default() };
    let tasks = std::fs::read_dir(format!("/proc/{}/task", program.pid.0)).expect("it runs");
    let counts: Vec<_> = tasks
        .map(|task| {
            let tid = task.expect("readable").file_name().to_string_lossy().parse().expect("a number");
            sys::open(&attr, tid, -1, Join::Alone).expect("granted")
        })
        .collect();
    let mut delivered = 0;
    for burst in ["5000", "101", "3000", "7"] {
        program.order(burst);
        delivered += drained(&mut source).len() as u64;
    }
    // The kernel reports a loss with the next record that fits into the same processor's ring.
    program.order("1");
    delivered += drained(&mut source).len() as u64;
    let caused: u64 = counts
        .iter()
        .map(|event| {
            let mut value = [0];
            assert_eq!(event.read(&mut value).expect("readable"), 1);
            value[0]
        })
        .sum();
    let statistics = source.statistics();
    assert!(statistics.lost > 7_000 && caused > 8_000, "{statistics:?}");
    assert_eq!(statistics.delivered + statistics.lost + statistics.foreign, caused);
    assert_eq!(statistics.delivered, delivered);
}
