use isotherm_core::{Bin, Histogram};

use super::*;
use crate::support::test_view::{TestView, parameters, setup, turn};

const FAST: u64 = 16;
const MS: u64 = 1_000_000;

fn policy(settings: &[(&str, &str)]) -> NeoMem {
    NeoMem::new(&parameters(Settings::SPECS, settings), &setup(64, FAST))
}

/// 48 slow pages behind a fast tier with four free ones.
fn view() -> TestView {
    let mut view = TestView::new(&[Pages(FAST), Pages(64)], 64);
    (0..4).for_each(|page| view.put(page, TierId(1)));
    view
}

fn reading(pages: &[u32], report: Option<DeviceReport>) -> DeviceReading {
    DeviceReading { tier: TierId(1), hot: pages.iter().copied().map(PageId).collect(), again: false, report }
}

/// One turn at `ms`, with what each device tells; the pages promoted, and what the devices are told.
fn step(
    policy: &mut NeoMem,
    view: &mut TestView,
    ms: u64,
    devices: Vec<DeviceReading>,
) -> (Vec<u32>, Option<DeviceRequest>) {
    let batch = SampleBatch { devices, ..SampleBatch::default() };
    let (plan, _) = turn(policy, view, &batch, Nanos(ms * MS));
    (plan.moves.iter().map(|step| step.page.0).collect(), plan.device)
}

fn report(traffic: DeviceTraffic) -> DeviceReport {
    let bins = vec![Bin { counts: 0..=0, entries: 9_990 }, Bin { counts: 70..=70, entries: 10 }];
    DeviceReport { histogram: Histogram::new(bins), lanes: 2, traffic, ..DeviceReport::default() }
}

#[test]
fn it_asks_for_reports_updates_the_threshold_and_clears() {
    let (mut policy, mut view) = (policy(&[]), view());
    let cleared = DeviceRequest { clear: true, ..DeviceRequest::default() };
    assert_eq!(step(&mut policy, &mut view, 10, vec![]).1, Some(cleared));
    assert_eq!(step(&mut policy, &mut view, 500, vec![reading(&[], None)]).1, None);
    let asked = DeviceRequest { report: true, ..DeviceRequest::default() };
    assert_eq!(step(&mut policy, &mut view, 1_010, vec![]).1, Some(asked));
    let told = reading(&[], Some(report(DeviceTraffic { cycles: 100, reads: 40, writes: 10 })));
    let set = DeviceRequest { threshold: Some(1), ..DeviceRequest::default() };
    assert_eq!(step(&mut policy, &mut view, 1_020, vec![told]).1, Some(set), "15 of 10,000 entries");
    assert!((policy.threshold.bandwidth - 0.5).abs() < 1e-12 && (policy.threshold.p - 0.0015).abs() < 1e-12);
    (2..=4).for_each(|second| _ = step(&mut policy, &mut view, 1_000 * second + 10, vec![]));
    assert_eq!(step(&mut policy, &mut view, 5_010, vec![]).1, Some(asked), "the clear waits for the report");
    let told = reading(&[], Some(report(DeviceTraffic { cycles: 300, reads: 40, writes: 10 })));
    let both = DeviceRequest { threshold: Some(1), clear: true, report: false };
    assert_eq!(step(&mut policy, &mut view, 5_020, vec![told]).1, Some(both));
    assert_eq!(policy.threshold.bandwidth, 0.0, "nothing passed since the report before");
}

#[test]
fn a_fixed_threshold_is_set_once_and_needs_no_reports() {
    let (mut policy, mut view) = (policy(&[("threshold", "200")]), view());
    assert!(!policy.signals().has(Signal::DeviceReports));
    let first = DeviceRequest { threshold: Some(200), clear: true, report: false };
    assert_eq!(step(&mut policy, &mut view, 10, vec![]).1, Some(first));
    assert_eq!(step(&mut policy, &mut view, 1_500, vec![]).1, None);
    let clear = DeviceRequest { clear: true, ..DeviceRequest::default() };
    assert_eq!(step(&mut policy, &mut view, 5_010, vec![]).1, Some(clear));
}

#[test]
fn slow_pages_are_promoted_once_however_many_devices_report_them() {
    let (mut policy, mut view) = (policy(&[]), view());
    step(&mut policy, &mut view, 10, vec![]);
    let devices = vec![reading(&[40, 41, 40, 8], None), reading(&[41, 42], None)];
    assert_eq!(step(&mut policy, &mut view, 20, devices).0, [40, 41, 42], "8 is fast");
    assert_eq!(step(&mut policy, &mut view, 30, vec![reading(&[41], None)]).0, [] as [u32; 0]);
}

#[test]
fn the_quota_bounds_promotions_and_a_clear_forgets_who_waits() {
    let (mut policy, mut view) = (policy(&[("quota", "8192"), ("threshold", "5")]), view());
    step(&mut policy, &mut view, 10, vec![]);
    assert_eq!(step(&mut policy, &mut view, 1_010, vec![reading(&[40, 41, 42, 43, 44], None)]).0, [40, 41]);
    assert_eq!(step(&mut policy, &mut view, 1_510, vec![]).0, [42], "two a second");
    step(&mut policy, &mut view, 5_010, vec![]);
    assert_eq!(step(&mut policy, &mut view, 6_010, vec![]).0, [] as [u32; 0]);
    view.put(43, TierId(1));
    assert_eq!(step(&mut policy, &mut view, 6_020, vec![reading(&[43], None)]).0, [43], "found again");
}

#[test]
fn a_page_that_comes_back_is_a_ping_pong() {
    let (mut policy, mut view) = (policy(&[]), view());
    step(&mut policy, &mut view, 10, vec![]);
    step(&mut policy, &mut view, 20, vec![reading(&[40, 41], None)]);
    assert_eq!((policy.promoted, policy.ping_pongs), (2, 0));
    view.put(40, TierId(1));
    step(&mut policy, &mut view, 30, vec![reading(&[40], None)]);
    assert_eq!((policy.promoted, policy.ping_pongs), (3, 1));
    let outcome = Outcome { demoted: vec![PageId(7)], ..Outcome::default() };
    policy.settle(&Plan::default(), &outcome, &mut view);
    view.put(7, TierId(1));
    step(&mut policy, &mut view, 40, vec![reading(&[7], None)]);
    assert_eq!((policy.promoted, policy.ping_pongs), (4, 2), "fast from its allocation on, then demoted");
}

#[test]
fn a_page_that_is_promoted_twice_between_two_clears_is_counted() {
    let (mut policy, mut view) = (policy(&[("threshold", "5")]), view());
    step(&mut policy, &mut view, 10, vec![]);
    for (ms, again) in [(20, 0), (30, 1), (5_020, 1), (5_030, 1), (5_040, 2)] {
        // The clear falls on the third: what is promoted behind it is so for the first time.
        step(&mut policy, &mut view, ms, vec![reading(&[40], None)]);
        assert_eq!(policy.promoted_again, again, "after {ms} ms");
        view.put(40, TierId(1));
    }
}

/// 256 MB/s are 655 pages in 10 ms; 32 pages were room for 13 MB/s.
#[test]
fn room_is_made_as_fast_as_the_quota_is_earned() {
    const MANY: usize = 4_000;
    let mut policy = NeoMem::new(&parameters(Settings::SPECS, &[]), &setup(MANY, 1_000));
    let mut view = TestView::new(&[Pages(1_000), Pages(MANY as u64)], MANY);
    step(&mut policy, &mut view, 10, vec![]);
    let found: Vec<u32> = (1_000..3_000).collect();
    let batch = SampleBatch { devices: vec![reading(&found, None)], ..SampleBatch::default() };
    let mut plan = turn(&mut policy, &mut view, &batch, Nanos(20 * MS)).0;
    assert_eq!((plan.moves.len(), plan.reclaim[0].pages), (655, Pages(655)));
    plan = turn(&mut policy, &mut view, &SampleBatch::default(), Nanos(20 * MS + 1)).0;
    assert_eq!(
        plan.reclaim[0].pages, RECLAIM_BATCH,
        "as much as kswapd takes in one go, however short the time"
    );
}

#[test]
fn the_kernel_makes_room_and_what_finds_none_waits() {
    let (mut policy, mut view) = (policy(&[]), view());
    step(&mut policy, &mut view, 10, vec![]);
    let batch = SampleBatch { devices: vec![reading(&[40, 41, 42, 43, 44], None)], ..SampleBatch::default() };
    let (plan, outcome) = turn(&mut policy, &mut view, &batch, Nanos(20 * MS));
    assert_eq!(plan.reclaim[0].pages, Pages(policy.marks.promo + 5 - 4));
    assert_eq!(outcome.moves[4], MoveStatus::NoRoom);
    view.put(40, TierId(1));
    assert_eq!(step(&mut policy, &mut view, 30, vec![]).0, [44]);
}

#[test]
fn without_migration_pages_are_found_and_left() {
    let (mut policy, mut view) = (policy(&[("migrate", "false")]), view());
    step(&mut policy, &mut view, 10, vec![]);
    assert_eq!(step(&mut policy, &mut view, 20, vec![reading(&[40], None)]).0, [] as [u32; 0]);
    assert_eq!(policy.found, 1);
}
