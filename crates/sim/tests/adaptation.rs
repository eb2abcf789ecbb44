//! Policies when the hot set moves. FreqTier: monitoring notices, and the new hot set is found (section
//! VII-D). HybridTier: it is found, and the old one leaves (section 3.1).

mod support;

use isotherm_sim::Interval;
use support::{input, numbers, plain_machine, run, stream};

const PAGES: u32 = 4096;
const HOT: u32 = 400;
const ACCESSES: u32 = 12_000_000;
const SCALE: f64 = 1000.0;
/// FreqTier, section VII-D: the change is detected within 30 seconds.
const DETECTION_NS: f64 = 30e9 / SCALE;
/// `sampling-level` while monitoring.
const MONITORING: f64 = 3.0;

/// Sends 90 % of accesses to 400 pages, which move once at mid-run, and 10 % to all.
fn moving_hot_set(policy: &str) -> Vec<Interval> {
    let mut random = numbers(11, 1 << 30);
    let page = move |index: u32| {
        let hot_start = if index < ACCESSES / 2 { PAGES / 2 } else { PAGES / 4 };
        if random().is_multiple_of(10) { random() % PAGES } else { hot_start + random() % HOT }
    };
    let accesses = stream((0..ACCESSES).map(page), PAGES, 20, 1);
    run(&input(accesses), &plain_machine(), &[policy], &["20%"], SCALE).runs.remove(0).timeline
}

fn hits(interval: &Interval) -> f64 {
    interval.hits as f64 / interval.accesses as f64
}

#[test]
fn monitoring_is_left_within_thirty_seconds_after_the_hot_set_moved() {
    let timeline = moving_hot_set("freqtier");
    let level = |interval: &Interval| interval.gauges["sampling-level"];
    let before = &timeline[48];
    assert_eq!(level(before), MONITORING, "by mid-run the hit ratio is stable");
    let moved = timeline[49].end_ns.0 as f64;
    let left =
        timeline[50..].iter().find(|interval| level(interval) < MONITORING).expect("monitoring is left");
    let delay = left.end_ns.0 as f64 - moved;
    assert!(delay <= DETECTION_NS, "noticed after {} s of the paper's time", delay * SCALE / 1e9);
    // How much of the interval is lost depends on how soon the next look comes.
    assert!(hits(&timeline[50]) < 0.7 * hits(before), "the move was felt");
    assert!(hits(&timeline[99]) > 0.97 * hits(before), "{} after {}", hits(&timeline[99]), hits(before));
}

/// Time between two looks at hits in HybridTier's monitor mode.
const MONITOR_NS: f64 = 60e9 / SCALE;
/// HybridTier's counts of samples divided by 16,000, for this footprint of 16 MiB; times by 1000, since one
/// thread stands for the paper's 16.
const HYBRIDTIER: &str = "hybridtier:batch=64,momentum_cooling=64,frequency_cooling=5000";

/// Returns the intervals after the move until hits are back to 97 % of their former level.
fn intervals_to_adapt(timeline: &[Interval]) -> usize {
    let before = hits(&timeline[48]);
    assert!(before > 0.85, "the first hot set was found: {before}");
    assert!(hits(&timeline[50]) < 0.9 * before, "the move was felt: {}", hits(&timeline[50]));
    timeline[50..].iter().position(|interval| hits(interval) > 0.97 * before).expect("it adapts")
}

#[test]
fn hybridtier_follows_the_hot_set() {
    let timeline = moving_hot_set(HYBRIDTIER);
    assert!(timeline[48].gauges["monitoring"] > 0.0, "by mid-run there is nothing left to move");
    let look = MONITOR_NS / timeline[50].end_ns.0 as f64 * 51.0;
    let adapted = intervals_to_adapt(&timeline);
    assert!(adapted as f64 <= look + 2.0, "after {adapted} of 50 intervals, looked at hits each {look:.1}");
}
