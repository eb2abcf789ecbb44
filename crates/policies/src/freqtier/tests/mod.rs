//! FreqTier on a small machine: the algorithms here, its parts in the modules below.

mod demotion;
mod intensity;
mod metadata;
mod threshold;

use isotherm_core::{PageSize, Pages};

use super::*;
use crate::support::hot_threshold::ThresholdSettings;
use crate::support::test_view::{TestView, batch_of, demoted, parameters, promoted, samples, turn};

/// Pages of the test machine's fast tier. PROMO_WMARK is 2 pages, DEMOTE_WMARK 8.
const FAST: u64 = 160;
/// Mapped pages.
const PAGES: usize = 1000;

fn setup() -> Setup {
    Setup { pages: PAGES, fast: Pages(FAST), page_size: PageSize::Base, tiers: 2, seed: 7 }
}

fn threshold_settings(policy: &FreqTier) -> ThresholdSettings {
    policy.settings.threshold(policy.watermarks.promote, &setup())
}

/// FreqTier with some parameters set; its filter is large enough to be exact here.
fn policy(changes: &[(&str, &str)]) -> FreqTier {
    let parameters = parameters(Settings::SPECS, &[&[("filter_bytes", "64K")], changes].concat());
    FreqTier::new(&parameters, &setup()).expect("a small filter")
}

fn machine() -> TestView {
    TestView::new(&[Pages(FAST), Pages(2000)], PAGES)
}

/// One turn with these samples at a time within the first window.
fn act(policy: &mut FreqTier, view: &mut TestView, pages: &[u32]) -> (Plan, Outcome) {
    let batch = batch_of(view, pages, (0, 0));
    turn(policy, view, &batch, Nanos(1))
}

#[test]
fn a_slow_page_is_promoted_when_it_reaches_the_hot_threshold() {
    let (mut policy, mut view) = (policy(&[]), machine());
    let (plan, _) = act(&mut policy, &mut view, &samples([500], 4));
    assert_eq!(promoted(&plan), [0; 0]);
    let (plan, _) = act(&mut policy, &mut view, &[500, 501]);
    assert_eq!(promoted(&plan), [500], "the fifth sample");
    assert_eq!(view.tier_of(PageId(500)), Some(TierId::FAST));
}

#[test]
fn a_batch_is_counted_once_for_each_page_with_its_number_of_samples() {
    let (mut policy, mut view) = (policy(&[]), machine());
    let (plan, _) = act(&mut policy, &mut view, &[500, 501, 500, 500, 501, 500, 500]);
    assert_eq!(promoted(&plan), [500]);
    assert_eq!((policy.filter.get(500), policy.filter.get(501)), (5, 2));
    assert_eq!(policy.changes.len(), 2);
}

#[test]
fn hot_pages_that_are_fast_already_or_unmapped_are_not_moved() {
    let (mut policy, mut view) = (policy(&[]), machine());
    view.unmap(600);
    let (plan, _) = act(&mut policy, &mut view, &samples([3, 600], 9));
    assert_eq!(promoted(&plan), [0; 0]);
}

#[test]
fn all_promotions_of_a_batch_are_one_plan_behind_the_demotions_that_make_room() {
    let (mut policy, mut view) = (policy(&[]), machine());
    let (plan, outcome) = act(&mut policy, &mut view, &samples(500..506, 5));
    assert_eq!(plan.moves.len(), demoted(&plan).len() + 6);
    assert!(plan.moves[..9].iter().all(|step| step.to == TierId(1)));
    assert!(outcome.moves.iter().all(|&status| status == MoveStatus::Moved));
}

#[test]
fn promotions_are_limited_to_the_room_there_is() {
    let (mut policy, mut view) = (policy(&[]), machine());
    let (plan, outcome) = act(&mut policy, &mut view, &samples(500..560, 5));
    assert_eq!(promoted(&plan), (500..509).collect::<Vec<_>>(), "the 9 that the watermarks free");
    assert!(!outcome.moves.contains(&MoveStatus::NoRoom));
}

#[test]
fn a_refused_promotion_asks_for_room_and_succeeds_when_sampled_again() {
    let (mut policy, mut view) = (policy(&[]), machine());
    view.reserve = 9;
    let (_, outcome) = act(&mut policy, &mut view, &samples([500], 5));
    assert!(outcome.moves.contains(&MoveStatus::NoRoom), "ENOMEM although nine pages are free");
    assert_eq!(view.tier_of(PageId(500)), Some(TierId(1)));
    let (plan, _) = act(&mut policy, &mut view, &[500]);
    assert_eq!(demoted(&plan).len(), 1, "room for the one that was refused");
    assert_eq!(view.tier_of(PageId(500)), Some(TierId::FAST));
}

#[test]
fn counters_age_by_samples_seen() {
    let (mut policy, mut view) = (policy(&[("ageing_samples_per_page", "0.1")]), machine());
    act(&mut policy, &mut view, &samples([1], 12));
    act(&mut policy, &mut view, &[2, 2, 2]);
    assert_eq!(policy.filter.get(1), 12, "15 samples of 16");
    act(&mut policy, &mut view, &[2]);
    assert_eq!((policy.filter.get(1), policy.filter.get(2)), (6, 2));
    act(&mut policy, &mut view, &samples([3], 15));
    assert_eq!(policy.filter.get(1), 6, "the count starts anew");
}

#[test]
fn equal_inputs_give_equal_plans() {
    let run = || {
        let (mut policy, mut view) = (policy(&[("threshold_warmup", "0")]), machine());
        let mut moves = Vec::new();
        for round in 0..200u32 {
            let pages: Vec<u32> = (0..300).map(|i| (i * i + round * 7) % PAGES as u32).collect();
            moves.extend(act(&mut policy, &mut view, &pages).0.moves);
        }
        (moves, view.pages_in(TierId::FAST))
    };
    let first = run();
    assert!(first.0.len() > 100);
    assert_eq!(first, run());
}

#[test]
fn a_machine_with_one_tier_is_left_alone() {
    let (mut policy, mut view) = (policy(&[]), TestView::new(&[Pages(100)], 100));
    let (plan, _) = act(&mut policy, &mut view, &samples(0..100, 6));
    assert!(!plan.moves_pages());
}

#[test]
fn with_three_tiers_pages_come_from_any_and_leave_to_the_next() {
    let mut view = TestView::new(&[Pages(FAST), Pages(200), Pages(2000)], PAGES);
    let mut policy = policy(&[]);
    let (plan, _) = act(&mut policy, &mut view, &samples([170, 900], 5));
    assert_eq!(promoted(&plan), [170, 900]);
    assert!(plan.moves.iter().all(|step| step.to.0 < 2));
}

#[test]
fn work_is_reported_for_every_mechanism() {
    let (mut policy, mut view) = (policy(&[("ageing_samples_per_page", "0.1")]), machine());
    let (plan, _) = act(&mut policy, &mut view, &[500, 500, 501]);
    // Three samples coalesced, two pages increased, and every fast page of the first scan batch looked up.
    assert_eq!(plan.work.touches, 3 + 2 + FAST);
    assert_eq!(plan.work.swept, 0);
    let (plan, _) = act(&mut policy, &mut view, &samples([1], 16));
    assert_eq!(plan.work.swept, 64 << 10, "the ageing");
    assert_eq!(plan.work.touches, 16 + 1, "no scan: the watermark was reached before");
}

#[test]
fn the_standard_filter_costs_k_lines_and_decides_alike() {
    let (mut blocked, mut standard) = (policy(&[]), policy(&[("filter", "standard")]));
    let pages = samples(500..504, 5);
    let (mut view, mut other) = (machine(), machine());
    let (first, _) = act(&mut blocked, &mut view, &pages);
    let (second, _) = act(&mut standard, &mut other, &pages);
    assert_eq!(first.moves, second.moves);
    assert_eq!(second.work.touches - first.work.touches, 2 * (4 + FAST), "3 lines for 1");
}

#[test]
fn huge_pages_have_16_bit_counters_and_age_by_the_memory_they_stand_for() {
    let setup = Setup { page_size: PageSize::Huge, ..setup() };
    let parameters = Parameters::new("freqtier", Settings::SPECS);
    let mut policy = FreqTier::new(&parameters, &setup).expect("a small filter");
    assert_eq!(policy.filter.maximum(), 65_535);
    assert_eq!(policy.until_ageing, 10 * 512 * FAST);
    let mut view = machine();
    view.page_size = PageSize::Huge;
    let (plan, _) = act(&mut policy, &mut view, &samples([500], 40));
    assert_eq!(promoted(&plan), [500]);
    assert_eq!(policy.filter.get(500), 40, "beyond 15");
}
