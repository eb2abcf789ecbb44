//! Sampling less, as the artifact does: monitor mode, a slower event of the fast tier; and its floor.

use isotherm_core::{SamplingRate, TierId};

use super::*;
use crate::hybridtier::monitor::{Monitor, MonitorSettings};

const SETTINGS: MonitorSettings = MonitorSettings {
    plateau_start: 1_000,
    plateau_samples: 100,
    plateau_pages: 5,
    plateaus: 2,
    enough_hot: 80,
    quiet: Nanos(120 * SECOND),
    interval: Nanos(60 * SECOND),
};

/// Takes 100 samples, promotes so many pages meanwhile, and returns whether monitor mode begins.
fn samples_promote(monitor: &mut Monitor, pages: u64, hot: u64) -> bool {
    monitor.promoted(pages);
    monitor.sampled(100, hot);
    monitor.begins(Nanos(0))
}

#[test]
fn a_plateau_of_promotions_begins_it_but_not_at_first() {
    let mut monitor = Monitor::new(SETTINGS);
    assert!((0..10).all(|_| !samples_promote(&mut monitor, 0, 80)), "what is hot is not known yet");
    assert!(!samples_promote(&mut monitor, 6, 80));
    assert!(samples_promote(&mut monitor, 5, 80) && monitor.is_on());
}

/// After a change, 20 batches are too few to count three samples of a page: it gave up at once, for ever.
#[test]
fn while_hot_pages_do_not_fill_the_fast_tier_only_the_third_plateau_begins_it() {
    let mut monitor = Monitor::new(SETTINGS);
    monitor.sampled(1_000, 0);
    assert_eq!(
        [0, 0, 6, 0].map(|pages| samples_promote(&mut monitor, pages, 79)),
        [false, false, false, true]
    );
    monitor.ends(Nanos(120 * SECOND));
    assert!(monitor.ends(Nanos(180 * SECOND)), "no loads");
    assert_eq!([0, 0, 0].map(|pages| samples_promote(&mut monitor, pages, 79)), [false, false, true]);
}

#[test]
fn two_scans_in_a_row_without_enough_begin_it_and_so_does_the_tenth_that_was_followed_by_enough() {
    let begins = |scans: &[bool]| {
        let mut monitor = Monitor::new(SETTINGS);
        scans.iter().for_each(|&enough| monitor.scanned(enough));
        monitor.begins(Nanos(0))
    };
    assert!(!begins(&[false]) && !begins(&[false, true, false]) && begins(&[true, false, false]));
    assert!(!begins(&[false, true].repeat(9)) && begins(&[false, true].repeat(10)));
}

/// Returns after which of these hit ratios, a minute apart, monitor mode ends.
fn ends_after(ratios: &[f64]) -> Option<usize> {
    let mut monitor = Monitor::new(SETTINGS);
    monitor.count((700, 1_000));
    (0..2).for_each(|_| monitor.scanned(false));
    assert!(monitor.begins(Nanos(0)));
    let (mut hits, mut all) = (700.0, 1_000);
    assert!(!monitor.ends(Nanos(119 * SECOND)) && !monitor.ends(Nanos(120 * SECOND)));
    ratios.iter().position(|ratio| {
        (hits, all) = (hits + ratio * 10_000.0, all + 10_000);
        monitor.count((hits as u64, all));
        let now = 120 + 60 * (all - 1_000) / 10_000;
        assert!(!monitor.ends(Nanos((now - 1) * SECOND)), "between two looks");
        monitor.ends(Nanos(now * SECOND))
    })
}

#[test]
fn five_hit_ratios_that_fall_end_it() {
    assert_eq!(ends_after(&[0.9, 0.88, 0.86, 0.84, 0.82]), Some(4));
    assert_eq!(ends_after(&[0.9, 0.895, 0.89, 0.885, 0.88]), None, "half a point a minute");
    assert_eq!(ends_after(&[0.5, 0.6, 0.7, 0.8, 0.9]), None);
    assert_eq!(ends_after(&[0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.7, 0.7]), Some(6), "a change, whenever it comes");
}

/// It took the hits after the change for those that are usual.
#[test]
fn a_change_that_comes_before_the_first_look_is_noticed_too() {
    let mut monitor = Monitor::new(SETTINGS);
    monitor.count((0, 0));
    monitor.sampled(2_000, 80);
    monitor.count((900, 1_000));
    assert!(samples_promote(&mut monitor, 0, 80), "90 % hits");
    let ends = (0..6).position(|minute| {
        monitor.count((900 + minute * 100, 1_000 + minute * 1_000));
        monitor.ends(Nanos((120 + 60 * minute) * SECOND))
    });
    assert_eq!(ends, Some(4), "four times 10 %");
}

#[test]
fn without_counts_there_is_nothing_to_wait_for() {
    let mut monitor = Monitor::new(SETTINGS);
    (0..2).for_each(|_| monitor.scanned(false));
    assert!(monitor.begins(Nanos(0)) && !monitor.ends(Nanos(120 * SECOND)));
    assert!(monitor.ends(Nanos(180 * SECOND)) && !monitor.is_on());
}

/// One turn with these samples and counters.
fn count_at(policy: &mut HybridTier, view: &mut TestView, pages: &[u32], hits: (u64, u64), now: u64) -> Plan {
    turn(policy, view, &batch_of(view, pages, hits), Nanos(now)).0
}

/// It sampled at 100 kHz for each event from beginning to end.
const PLATEAU: [(&str, &str); 5] = [
    ("batch", "64"),
    ("plateau_start", "1"),
    ("plateau_batches", "1"),
    ("plateau_pages", "2"),
    ("initial_threshold", "3"),
];

/// A rebuilt policy is shown the last samples, and would have rested before it had promoted anything.
#[test]
fn batches_without_a_step_are_no_plateau() {
    let (mut policy, mut view) = (policy(&PLATEAU), machine());
    let batch = batch_of(&view, &samples([500], 64), (0, 0));
    (0..3).for_each(|_| policy.observe(&batch, &mut view));
    assert_eq!(count_at(&mut policy, &mut view, &[], (0, 0), 1).sampling, None);
}

#[test]
fn at_a_plateau_sampling_stops_until_hits_fall_and_counters_age() {
    let (mut policy, mut view) = (policy(&PLATEAU), machine());
    (0..9).for_each(|page| view.put(page, TierId(1)));
    assert_eq!(count_at(&mut policy, &mut view, &samples([500], 64), (0, 0), 1).sampling, None);
    let plan = count_at(&mut policy, &mut view, &samples([500], 64), (0, 0), 2);
    assert_eq!(plan.sampling.map(|request| request.rate), Some(SamplingRate::Off));
    assert_eq!(policy.hotness.counts(500), counts(15, 15));
    let plan = count_at(&mut policy, &mut view, &samples([501], 9), (0, 0), 3);
    assert!(!plan.moves_pages() && policy.hotness.counts(501) == counts(0, 0), "late samples");
    let hits = [(900, 1000), (1800, 2000), (2680, 3000), (3520, 4000), (4320, 5000), (5080, 6000)];
    let requests = (2..)
        .zip(hits)
        .map(|(minute, hits)| count_at(&mut policy, &mut view, &[], hits, 60 * SECOND * minute + 2).sampling);
    let requests: Vec<_> = requests.map(|request| request.map(|request| request.rate)).collect();
    assert_eq!(requests[..5], [None; 5]);
    assert_eq!(requests[5], Some(SamplingRate::Frequency(100_000)), "90, 88, 84, 80 and 76 %");
    assert_eq!(policy.hotness.counts(500), counts(7, 7));
}

#[test]
fn the_fast_tiers_event_is_halved_while_its_samples_find_full_counters() {
    let (mut policy, mut view) = (policy(&[]), machine());
    let batch = [samples([3], 9), samples([4], 1), samples([500], 9)].concat();
    let asked = [0; 5].map(|_| {
        let request = count_at(&mut policy, &mut view, &batch, (0, 0), 1).sampling?;
        Some((request.rate_of(Some(TierId::FAST)), request.rate_of(Some(TierId(1)))))
    });
    let hertz = |fast| Some((SamplingRate::Frequency(fast), SamplingRate::Frequency(100_000)));
    // Page 3 is full after two batches; from the third on, nine of ten samples say nothing new.
    assert_eq!(asked, [None, None, hertz(50_000), hertz(25_000), None], "no more at 40 kHz or below");
}

#[test]
fn one_event_for_all_tiers_is_not_halved() {
    let (mut policy, mut view) = (policy(&[("sampling_scope", "all-tiers")]), machine());
    let asked = [0; 4].map(|_| count_at(&mut policy, &mut view, &samples([3], 9), (0, 0), 1).sampling);
    assert_eq!(asked, [None; 4]);
}

/// With few samples the fitted threshold fell to 1: any sampled page was hot, and momentum had no say.
#[test]
fn the_frequency_threshold_does_not_fall_below_three() {
    let (mut policy, mut view) = (policy(&[("threshold_warmup", "0")]), machine());
    assert_eq!(promoted(&act(&mut policy, &mut view, &[500, 500, 501]).0), [0; 0]);
    assert_eq!(policy.hotness.thresholds.frequency.value(), 3.0);
    assert_eq!(promoted(&act(&mut policy, &mut view, &[500]).0), [500], "the third sample");
}
