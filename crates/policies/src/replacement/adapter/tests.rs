//! The adapter on a small machine, under ARC, 2Q and LRU.

use isotherm_core::PageSize;
use isotherm_core::parameters::Parameters;
use proptest::prelude::*;

use super::*;
use crate::replacement::{Arc, Lru, TwoQ};
use crate::support::test_view::{TestView, batch_of, turn};

const FAST: u64 = 4;
const PAGES: usize = 16;

fn tiering<R: Replacement>(cache: R, settings: &[(&str, &str)]) -> Tiered<R> {
    let setup = Setup { pages: PAGES, fast: Pages(FAST), page_size: PageSize::Base, tiers: 2, seed: 1 };
    let mut parameters = Parameters::new("test", Settings::SPECS);
    parameters.set("free_reserve", "0").expect("in range");
    settings.iter().for_each(|(key, value)| parameters.set(key, value).expect("in range"));
    Tiered::with(|_, _| cache, &Settings::read(&parameters), &setup)
}

fn lru() -> Lru {
    Lru::new(PAGES, FAST as usize)
}

fn arc() -> Arc {
    Arc::new(PAGES, FAST as usize)
}

fn twoq() -> TwoQ {
    TwoQ::new(PAGES, FAST as usize, TwoQ::KIN, TwoQ::KOUT)
}

/// Returns a machine whose pages are all in the slow tier, as the policies ask for.
fn machine() -> TestView {
    let mut view = TestView::new(&[Pages(FAST), Pages(64)], 0);
    (0..PAGES).for_each(|_| view.allocate());
    (0..PAGES as u32).for_each(|page| view.put(page, TierId(1)));
    view
}

/// One batch of these pages; returns the moves.
fn sample<R: Replacement + Send>(policy: &mut Tiered<R>, view: &mut TestView, pages: &[u32]) -> Vec<Move> {
    let batch = batch_of(view, pages, (0, 0));
    turn(policy, view, &batch, Nanos(0)).0.moves
}

fn promotion(page: u32) -> Move {
    Move { page: PageId(page), to: TierId::FAST }
}

fn demotion(page: u32) -> Move {
    Move { page: PageId(page), to: TierId(1) }
}

#[test]
fn new_pages_are_slow_and_the_first_sample_promotes() {
    let (mut policy, mut view) = (tiering(arc(), &[]), machine());
    assert_eq!(policy.allocation(), Allocation::SlowFirst);
    assert_eq!(sample(&mut policy, &mut view, &[5, 6, 5]), [promotion(5), promotion(6)]);
    assert_eq!(sample(&mut policy, &mut view, &[5, 6]), []);
}

#[test]
fn the_page_that_left_is_demoted_and_not_the_one_that_came() {
    let (mut policy, mut view) = (tiering(lru(), &[]), machine());
    sample(&mut policy, &mut view, &[0, 1, 2, 3]);
    assert_eq!(sample(&mut policy, &mut view, &[9]), [demotion(0), promotion(9)]);
    assert_eq!(view.pages_in(TierId::FAST), [1, 2, 3, 9]);
}

#[test]
fn a_page_that_came_and_left_within_a_batch_moves_nowhere() {
    let (mut policy, mut view) = (tiering(lru(), &[]), machine());
    sample(&mut policy, &mut view, &[0, 1, 2, 3]);
    // 9 enters and leaves, 0 to 3 leave and come back.
    assert_eq!(sample(&mut policy, &mut view, &[9, 0, 1, 2, 3]), []);
}

#[test]
fn beyond_the_budget_pages_wait_for_the_next_batch_in_the_order_of_their_samples() {
    let (mut policy, mut view) = (tiering(lru(), &[("promotion_budget", "1")]), machine());
    assert_eq!(sample(&mut policy, &mut view, &[7, 5, 6]), [promotion(7)]);
    assert_eq!(sample(&mut policy, &mut view, &[5]), [promotion(5)], "which does not wait twice");
    assert_eq!(sample(&mut policy, &mut view, &[]), [promotion(6)]);
    assert_eq!(sample(&mut policy, &mut view, &[]), []);
}

#[test]
fn what_the_algorithm_evicted_stays_while_there_is_room() {
    let (mut policy, mut view) = (tiering(Lru::new(PAGES, 2), &[]), machine());
    sample(&mut policy, &mut view, &[0, 1]);
    assert_eq!(sample(&mut policy, &mut view, &[2, 3]), [promotion(2), promotion(3)]);
    assert_eq!(sample(&mut policy, &mut view, &[0]), [], "0 came back before its room was needed");
    assert_eq!(sample(&mut policy, &mut view, &[4]), [demotion(1), promotion(4)]);
}

#[test]
fn a_promotion_that_failed_is_tried_again_with_the_next_sample_and_only_then() {
    let (mut policy, mut view) = (tiering(arc(), &[]), machine());
    view.pinned = Some(PageId(5));
    assert_eq!(sample(&mut policy, &mut view, &[5]), [promotion(5)]);
    assert_eq!(sample(&mut policy, &mut view, &[6]), [promotion(6)]);
    view.pinned = None;
    assert_eq!(
        sample(&mut policy, &mut view, &[5]),
        [promotion(5)],
        "a hit in the lists, a slow page all the same"
    );
    assert_eq!(view.pages_in(TierId::FAST), [5, 6]);
}

#[test]
fn a_page_that_could_not_be_demoted_leaves_later() {
    let (mut policy, mut view) = (tiering(lru(), &[]), machine());
    sample(&mut policy, &mut view, &[0, 1, 2, 3]);
    view.pinned = Some(PageId(0));
    assert_eq!(sample(&mut policy, &mut view, &[8]), [demotion(0), promotion(8)]);
    assert_eq!(view.pages_in(TierId::FAST), [0, 1, 2, 3], "no room came of it");
    view.pinned = None;
    assert_eq!(sample(&mut policy, &mut view, &[9]), [demotion(0), promotion(9)]);
    assert_eq!(sample(&mut policy, &mut view, &[8]), [demotion(1), promotion(8)]);
}

#[test]
fn room_that_others_took_is_not_asked_for() {
    let (mut policy, mut view) = (tiering(lru(), &[]), machine());
    (12..15).for_each(|page| view.put(page, TierId::FAST));
    assert_eq!(sample(&mut policy, &mut view, &[1, 2]), [promotion(1)]);
    view.put(12, TierId(1));
    assert_eq!(sample(&mut policy, &mut view, &[2]), [promotion(2)]);
}

#[test]
fn a_page_that_is_gone_does_no_harm() {
    let (mut policy, mut view) = (tiering(lru(), &[]), machine());
    sample(&mut policy, &mut view, &[0, 1, 2, 3]);
    view.unmap(0);
    assert_eq!(sample(&mut policy, &mut view, &[9]), [promotion(9)], "its frame is free");
    assert_eq!(sample(&mut policy, &mut view, &[0, 10]), [demotion(1), promotion(10)], "0 cannot be sampled");
}

#[test]
fn one_pass_over_cold_pages_flushes_the_hot_ones_under_lru_but_under_neither_arc_nor_2q() {
    fn hot_pages_left<R: Replacement + Send>(cache: R) -> usize {
        let (mut policy, mut view) = (tiering(cache, &[]), machine());
        for round in 0..40 {
            sample(&mut policy, &mut view, &[0, 1, 2 + round % 6]);
        }
        (8..16).for_each(|page| {
            sample(&mut policy, &mut view, &[page]);
        });
        view.pages_in(TierId::FAST).iter().filter(|&&page| page < 2).count()
    }
    assert_eq!(hot_pages_left(lru()), 0);
    assert_eq!(hot_pages_left(arc()), 2);
    assert_eq!(hot_pages_left(twoq()), 2);
}

#[test]
fn a_sample_of_a_demoted_page_moves_the_border_of_arc() {
    let (mut policy, mut view) = (tiering(arc(), &[]), machine());
    sample(&mut policy, &mut view, &[0, 0, 1, 1, 2, 3, 4]);
    assert_eq!(policy.cache.target(), 0.0);
    assert_eq!(
        sample(&mut policy, &mut view, &[2])[..],
        [demotion(3), promotion(2)],
        "2 was let go too early"
    );
    assert_eq!(policy.cache.target(), 1.0);
}

#[test]
fn every_sample_is_charged_and_the_structures_are_counted_whole() {
    let (mut policy, mut view) = (tiering(arc(), &[("batch", "64")]), machine());
    let batch = batch_of(&view, &[1, 1, 1], (0, 0));
    let (plan, _) = turn(&mut policy, &mut view, &batch, Nanos(0));
    // A miss and two hits of a page that waits; then a look at it.
    let expected = Arc::MISS_LINES + 2 * Arc::HIT_LINES + 3 + QUEUED_LINES;
    assert_eq!(plan.work.touches, expected);
    // Node, place and flags of each page; a queue; the buffer of samples.
    let least = PAGES as u64 * (8 + 1 + 1) + 64 * SAMPLE_BYTES;
    assert!((least..least + 64).contains(&policy.metadata().0), "{:?} for {least}", policy.metadata());
}

proptest! {
    /// With any pinned pages and any budget, page table and lists do not drift apart: a fast page that is no
    /// resident waits to leave, and once moves succeed again every sampled resident becomes fast.
    #[test]
    fn failed_moves_do_not_let_lists_and_tiers_drift_apart(
        steps in prop::collection::vec((prop::collection::vec(0..PAGES as u32, 0..6), 0..3 * PAGES as u32), 1..60),
        budget in 1..6_u32,
    ) {
        let (mut policy, mut view) = (tiering(arc(), &[("promotion_budget", &budget.to_string())]), machine());
        for (pages, pinned) in steps {
            view.pinned = Some(PageId(pinned));
            sample(&mut policy, &mut view, &pages);
            for page in view.pages_in(TierId::FAST).into_iter().map(PageId) {
                let waits = policy.queued[page.index()] & LEAVING != 0;
                prop_assert!(policy.cache.contains(page) || waits, "{page:?}");
            }
        }
        view.pinned = None;
        let residents: Vec<u32> = (0..PAGES as u32).filter(|&page| policy.cache.contains(PageId(page))).collect();
        sample(&mut policy, &mut view, &residents);
        (0..PAGES).for_each(|_| drop(sample(&mut policy, &mut view, &[])));
        let fast = view.pages_in(TierId::FAST);
        prop_assert!(residents.iter().all(|page| fast.contains(page)), "{residents:?} {fast:?}");
    }
}
