//! HybridTier on a small machine: what a batch does here, its parts in the modules below.

mod audit;
mod cooling;
mod decision;
mod metadata;
mod monitor;
mod second_chance;

use isotherm_core::{PageSize, Pages};

use super::decision::Counts;
use super::*;
use crate::support::test_view::{TestView, batch_of, demoted, promoted, samples, turn};

/// Pages of the test machine's fast tier. PROMO_WMARK is 2 pages, DEMOTE_WMARK 8.
const FAST: u64 = 160;
/// Mapped pages.
const PAGES: usize = 1000;
const SECOND: u64 = Nanos::SECOND.0;

fn setup() -> Setup {
    Setup { pages: PAGES, fast: Pages(FAST), page_size: PageSize::Base, tiers: 2, seed: 7 }
}

fn parameters(changes: &[(&str, &str)]) -> Parameters {
    let mut parameters = Parameters::with_presets("hybridtier", Settings::SPECS, PRESETS);
    changes.iter().for_each(|(key, text)| parameters.set(key, text).expect("valid"));
    parameters
}

/// HybridTier with some parameters set. Its filters are large enough to be exact here, and its frequency
/// threshold stays at 5.
fn policy(changes: &[(&str, &str)]) -> HybridTier {
    let exact = [("filter_bytes", "1M"), ("momentum_divisor", "4"), ("threshold_warmup", "1e6")];
    HybridTier::new(&parameters(&[&exact, changes].concat()), &setup()).expect("small filters")
}

fn machine() -> TestView {
    TestView::new(&[Pages(FAST), Pages(2000)], PAGES)
}

fn counts(frequency: u32, momentum: u32) -> Counts {
    Counts { frequency, momentum }
}

/// One turn with these samples.
fn act_at(policy: &mut HybridTier, view: &mut TestView, pages: &[u32], now: u64) -> (Plan, Outcome) {
    let batch = batch_of(view, pages, (0, 0));
    turn(policy, view, &batch, Nanos(now))
}

fn act(policy: &mut HybridTier, view: &mut TestView, pages: &[u32]) -> (Plan, Outcome) {
    act_at(policy, view, pages, 1)
}

#[test]
fn a_newly_hot_page_is_promoted_by_momentum_before_its_frequency_would_do() {
    let (mut policy, mut view) = (policy(&[]), machine());
    assert_eq!(promoted(&act(&mut policy, &mut view, &[500, 500]).0), [0; 0]);
    assert_eq!(promoted(&act(&mut policy, &mut view, &[500]).0), [500], "the third sample");
    assert_eq!(policy.by_momentum, 1);
    let mut slow = super::tests::policy(&[("momentum_threshold", "15")]);
    let mut view = machine();
    assert_eq!(promoted(&act(&mut slow, &mut view, &samples([500], 4)).0), [0; 0]);
    assert_eq!(promoted(&act(&mut slow, &mut view, &[500]).0), [500], "the fifth makes the frequency high");
    assert_eq!(slow.by_momentum, 0);
}

#[test]
fn a_page_that_is_sampled_slowly_but_steadily_is_promoted_by_frequency() {
    let (mut policy, mut view) = (policy(&[("momentum_cooling", "64")]), machine());
    for round in 0..5 {
        assert_eq!(view.tier_of(PageId(500)), Some(TierId(1)), "sample {round}");
        act(&mut policy, &mut view, &[samples([500], 1), samples(0..64, 1)].concat());
        assert!(policy.hotness.counts(500).momentum < 3);
    }
    assert_eq!(view.tier_of(PageId(500)), Some(TierId::FAST));
}

#[test]
fn a_batch_is_counted_once_for_each_page_with_its_number_of_samples() {
    let (mut policy, mut view) = (policy(&[]), machine());
    let (plan, _) = act(&mut policy, &mut view, &[500, 501, 500, 500, 501]);
    assert_eq!(promoted(&plan), [500]);
    assert_eq!(policy.hotness.counts(500), counts(3, 3));
    assert_eq!(policy.hotness.counts(501), counts(2, 2));
}

#[test]
fn hot_pages_that_are_fast_already_or_unmapped_are_not_moved() {
    let (mut policy, mut view) = (policy(&[]), machine());
    view.unmap(600);
    assert_eq!(promoted(&act(&mut policy, &mut view, &samples([3, 600], 9)).0), [0; 0]);
}

#[test]
fn all_promotions_of_a_batch_are_one_plan_behind_the_demotions_that_make_room() {
    let (mut policy, mut view) = (policy(&[]), machine());
    let (plan, outcome) = act(&mut policy, &mut view, &samples(500..560, 3));
    assert_eq!(demoted(&plan), (0..9).collect::<Vec<_>>(), "until more than DEMOTE_WMARK is free");
    assert_eq!(promoted(&plan), (500..509).collect::<Vec<_>>(), "as many as fit");
    assert!(plan.moves[..9].iter().all(|step| step.to == TierId(1)));
    assert!(outcome.moves.iter().all(|&status| status == MoveStatus::Moved));
}

#[test]
fn nothing_is_demoted_while_the_promotion_watermark_is_free() {
    let (mut policy, mut view) = (policy(&[]), machine());
    view.put(0, TierId(1));
    view.put(1, TierId(1));
    assert!(!act(&mut policy, &mut view, &[]).0.moves_pages(), "2 of 160 pages are 1.25 %");
    view.put(0, TierId::FAST);
    assert_eq!(demoted(&act(&mut policy, &mut view, &[]).0).len(), 8);
    assert_eq!(view.free(TierId::FAST), Pages(9), "more than 5 %");
    assert!(!act(&mut policy, &mut view, &[]).0.moves_pages());
}

#[test]
fn the_scan_goes_on_where_it_stopped() {
    let (mut policy, mut view) = (policy(&[]), machine());
    act(&mut policy, &mut view, &[]);
    (0..9).for_each(|page| view.put(page, TierId::FAST));
    view.walks.clear();
    assert_eq!(demoted(&act(&mut policy, &mut view, &[]).0), (9..18).collect::<Vec<_>>());
    assert_eq!(view.walks, [PageId(9)]);
}

#[test]
fn a_scan_that_fell_short_rests_until_something_has_changed() {
    let (mut policy, mut view) = (policy(&[("momentum_cooling", "1000")]), machine());
    (0..FAST as u32).for_each(|page| policy.hotness.put(page, counts(0, 4)));
    act(&mut policy, &mut view, &[]);
    assert!(!view.walks.is_empty());
    view.walks.clear();
    act(&mut policy, &mut view, &samples([999], 999));
    assert!(view.walks.is_empty(), "all are as they were");
    act(&mut policy, &mut view, &[999]);
    assert!(!view.walks.is_empty(), "momentum has cooled");
}

#[test]
fn a_refused_promotion_asks_for_room_and_succeeds_when_sampled_again() {
    let (mut policy, mut view) = (policy(&[]), machine());
    view.reserve = 9;
    let (_, outcome) = act(&mut policy, &mut view, &samples([500], 3));
    assert!(outcome.moves.contains(&MoveStatus::NoRoom), "ENOMEM although nine pages are free");
    let (plan, _) = act(&mut policy, &mut view, &[500]);
    assert_eq!(demoted(&plan).len(), 1, "room for the one that was refused");
    assert_eq!(view.tier_of(PageId(500)), Some(TierId::FAST));
}

/// The published artifact has the paper's rule but never calls it; there the threshold only falls.
#[test]
fn the_frequency_threshold_is_fitted_to_the_fast_tier() {
    let changes = [
        ("threshold_warmup", "0"),
        ("threshold_floor", "1"),
        ("momentum_threshold", "255"),
        ("counter_bits", "8"),
    ];
    let (mut policy, mut view) = (policy(&changes), machine());
    let value = |policy: &HybridTier| policy.hotness.thresholds.frequency.value();
    let mut seen = Vec::new();
    for _ in 0..9 {
        act(&mut policy, &mut view, &samples(0..PAGES as u32, 1));
        seen.push(value(&policy));
        assert_eq!(
            policy.hotness.thresholds.frequency.hot_pages(),
            FAST - 3,
            "all but PROMO_WMARK, rounded down"
        );
    }
    assert!(seen.is_sorted() && seen[8] > 8.0, "it rises with the counts: {seen:?}");
    act(&mut policy, &mut view, &samples(300..400, 90));
    assert!(value(&policy) < 10.0, "a hundred far hotter pages leave room for 58 of the others");
}

#[test]
fn equal_inputs_give_equal_plans() {
    let run = || {
        let (mut policy, mut view) = (policy(&[("threshold_warmup", "0")]), machine());
        let mut moves = Vec::new();
        for round in 0..200u32 {
            let pages: Vec<u32> = (0..300).map(|i| (i * i + round * 7) % PAGES as u32).collect();
            moves.extend(act_at(&mut policy, &mut view, &pages, u64::from(round) * SECOND).0.moves);
        }
        (moves, view.pages_in(TierId::FAST))
    };
    let first = run();
    assert!(first.0.len() > 100);
    assert_eq!(first, run());
}

#[test]
fn a_machine_with_one_tier_is_left_alone_and_of_three_any_page_can_become_fast() {
    let (mut one, mut view) = (policy(&[]), TestView::new(&[Pages(100)], 100));
    assert!(!act(&mut one, &mut view, &samples(0..100, 6)).0.moves_pages());
    let (mut three, mut view) = (policy(&[]), TestView::new(&[Pages(FAST), Pages(200), Pages(2000)], PAGES));
    let (plan, _) = act(&mut three, &mut view, &samples([170, 900], 5));
    assert_eq!(promoted(&plan), [170, 900]);
    assert!(plan.moves.iter().all(|step| step.to.0 < 2));
}

#[test]
fn work_is_reported_for_every_mechanism() {
    let (mut policy, mut view) = (policy(&[("momentum_cooling", "64")]), machine());
    let (plan, _) = act(&mut policy, &mut view, &[500, 500, 501]);
    // Three samples coalesced; two pages counted and the first scan batch's fast pages looked up, both twice.
    assert_eq!(plan.work.touches, 3 + 2 * 2 + 2 * FAST);
    assert_eq!(plan.work.swept, 0);
    let (plan, _) = act(&mut policy, &mut view, &samples([1], 61));
    assert_eq!(plan.work.swept, 256 << 10, "the momentum filter");
}

#[test]
fn huge_pages_have_16_bit_counters_in_both_filters_and_thresholds_of_their_own() {
    let setup = Setup { page_size: PageSize::Huge, fast: Pages(10_000), ..setup() };
    let mut policy = HybridTier::new(&parameters(&[]), &setup).expect("small filters");
    let [(frequency, bytes), (momentum, _)] = policy.hotness.shapes();
    assert_eq!((frequency, momentum), (65_535, 65_535));
    assert!((bytes as f64 - 20.4 * 2.0 * 1000.0).abs() < 300.0, "two bytes a counter: {bytes}");
    let mut view = machine();
    view.page_size = PageSize::Huge;
    assert_eq!(promoted(&act(&mut policy, &mut view, &samples([500], 199)).0), [0; 0]);
    assert_eq!(promoted(&act(&mut policy, &mut view, &[500]).0), [500], "momentum of 200");
    assert_eq!(policy.hotness.counts(500), counts(200, 200), "beyond 15");
}

#[test]
fn the_momentum_filter_is_128_times_smaller_and_the_preset_has_the_artifacts_sizes() {
    let setup = Setup { pages: 1 << 20, fast: Pages(1 << 20), ..setup() };
    let shapes = |changes| HybridTier::new(&parameters(changes), &setup).expect("they fit").hotness.shapes();
    let [(maximum, frequency), (_, momentum)] = shapes(&[]);
    assert_eq!(maximum, 15);
    assert!((frequency as f64 / f64::from(1 << 20) - 10.2).abs() < 0.02, "20.4 counters of 4 bits a page");
    assert_eq!(momentum, frequency.div_ceil(128).next_multiple_of(64));
    let [(_, frequency), (_, momentum)] = shapes(&[("preset", "artifact")]);
    assert_eq!((frequency, momentum), (16 << 20, (16usize << 20).div_ceil(100).next_multiple_of(64)));
}

#[test]
fn the_preset_changes_what_the_artifact_has_otherwise_and_no_more() {
    let settings = |changes| Settings::read(&parameters(changes));
    let (paper, artifact) = (settings(&[]), settings(&[("preset", "artifact")]));
    let setup = setup();
    assert_eq!((paper.demote_momentum(&setup), artifact.demote_momentum(&setup)), (3, 1));
    assert_eq!((paper.promote_momentum(&setup), artifact.promote_momentum(&setup)), (3, 3));
    assert_eq!((paper.frequency_period(&setup), artifact.frequency_period(&setup)), (80_000_000, 160 * FAST));
    assert_eq!((paper.momentum_cooling, artifact.momentum_cooling), (500_000, 1_100_000));
    assert_eq!((paper.second_chances, artifact.second_chances), (4_000_000_000, 10_000));
    assert_eq!((paper.revisit, artifact.revisit), (Nanos(60 * SECOND), Nanos(60 * SECOND)));
    let set = settings(&[("momentum_cooling", "2M"), ("preset", "artifact")]);
    assert_eq!((set.momentum_cooling, set.demote_momentum(&setup)), (2_000_000, 1));
}

#[test]
fn exact_and_standard_trackers_decide_as_a_large_blocked_filter_does() {
    let plans = ["blocked", "standard", "exact"].map(|tracker| {
        let (mut policy, mut view) = (policy(&[("tracker", tracker)]), machine());
        let batches = [samples(500..530, 3), samples(20..40, 6), samples(525..560, 2)];
        batches.map(|pages| act(&mut policy, &mut view, &pages).0.moves)
    });
    assert!(!plans[0].concat().is_empty());
    assert_eq!(plans[0], plans[1]);
    assert_eq!(plans[0], plans[2]);
}
