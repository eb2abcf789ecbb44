use isotherm_core::{Counters, TierCounters};

use super::*;
use crate::support::test_view::{TestView, batch_of, parameters, promoted, setup, turn};

const WINDOW: u64 = 20_000_000;

fn policy(settings: &[(&str, &str)]) -> Pact {
    Pact::new(&parameters(Settings::SPECS, settings), &setup(2000, 100))
}

fn machine() -> TestView {
    TestView::new(&[Pages(100), Pages(2000)], 2000)
}

/// Slow counters after `windows` windows of 1000 misses each with so many in flight.
fn counters(windows: u64, parallelism: u64) -> Counters {
    let slow = TierCounters {
        load_misses: 1000 * windows,
        load_occupancy: 1000 * windows * parallelism,
        load_busy: 1000 * windows,
        ..TierCounters::default()
    };
    Counters { tiers: vec![TierCounters::default(), slow], ..Counters::default() }
}

/// One window with these pages sampled.
fn window(pact: &mut Pact, view: &mut TestView, pages: &[u32], number: u64, parallelism: u64) -> Plan {
    let mut batch = batch_of(view, pages, (0, 0));
    batch.counters = counters(number, parallelism);
    turn(pact, view, &batch, Nanos(number * WINDOW)).0
}

#[test]
fn what_reaches_the_last_bin_is_promoted_and_as_much_reclaimed() {
    let (mut pact, mut view) = (policy(&[("initial_width", "10000")]), machine());
    // 350 us of stall: page 500 has two thirds of it, above 19 bins of 10 us, page 501 a third.
    let plan = window(&mut pact, &mut view, &[500, 501, 500], 1, 1);
    assert_eq!(promoted(&plan), [500]);
    assert_eq!(plan.reclaim, [Reclaim { from: TierId::FAST, pages: Pages(1) }]);
    assert!((pact.pac(PageId(501)) - 350_000.0 / 3.0).abs() < 1.0);
}

#[test]
fn misses_that_overlap_cost_less() {
    let (mut pact, mut view) = (policy(&[("initial_width", "10000")]), machine());
    let plan = window(&mut pact, &mut view, &[500], 1, 7);
    assert!(promoted(&plan).is_empty() && (pact.pac(PageId(500)) - 50_000.0).abs() < 1.0);
}

#[test]
fn nothing_happens_within_a_window() {
    let (mut pact, mut view) = (policy(&[]), machine());
    let mut batch = batch_of(&view, &[500; 50], (0, 0));
    batch.counters = counters(1, 1);
    assert!(!turn(&mut pact, &mut view, &batch, Nanos(WINDOW - 1)).0.moves_pages());
    batch.samples.clear();
    let plan = turn(&mut pact, &mut view, &batch, Nanos(WINDOW)).0;
    assert_eq!(promoted(&plan), [500], "the samples waited for the window's end");
}

#[test]
fn demotion_follows_what_was_promoted_and_the_margin() {
    let reclaimed = |margin: &str| {
        let (mut pact, mut view) = (policy(&[("margin", margin)]), machine());
        (0..20).for_each(|page| view.unmap(page));
        let plan = window(&mut pact, &mut view, &[500, 501], 1, 1);
        let first = plan.reclaim[0].pages.0;
        // The test's kernel demotes nothing: the debt stays.
        let plan = window(&mut pact, &mut view, &[502], 2, 1);
        (first, plan.reclaim[0].pages.0)
    };
    assert_eq!(reclaimed("0"), (2, 3), "although 20 pages are free");
    assert_eq!(reclaimed("40960"), (12, 13));
}

#[test]
fn a_window_promotes_its_most_critical_pages_first_and_no_more_than_a_batch() {
    let (mut pact, mut view) = (policy(&[("batch", "2"), ("initial_width", "1")]), machine());
    (0..10).for_each(|page| view.unmap(page));
    let plan = window(&mut pact, &mut view, &[500, 501, 501, 501, 502, 502], 1, 1);
    assert_eq!(promoted(&plan), [501, 502]);
}

#[test]
fn room_that_new_pages_took_is_made_again() {
    let (mut pact, mut view) = (policy(&[]), machine());
    pact.demoted = 1000;
    let plan = window(&mut pact, &mut view, &[500, 501], 1, 1);
    assert_eq!(plan.reclaim, [Reclaim { from: TierId::FAST, pages: Pages(2) }], "the tier is full");
    view.unmap(0);
    let plan = window(&mut pact, &mut view, &[502], 2, 1);
    assert!(plan.reclaim.is_empty(), "there is room, and more was demoted than promoted");
}

#[test]
fn a_run_promotes_no_more_than_its_limit() {
    let (mut pact, mut view) = (policy(&[("promotions", "3"), ("initial_width", "1")]), machine());
    (0..10).for_each(|page| view.unmap(page));
    let counts = [1, 2].map(|number: u32| {
        let first = 500 + 10 * number;
        promoted(&window(&mut pact, &mut view, &[first, first + 1], number.into(), 1)).len()
    });
    assert_eq!(counts, [2, 1]);
}

#[test]
fn with_a_batch_of_zero_it_only_measures() {
    let (mut pact, mut view) = (policy(&[("batch", "0")]), machine());
    let plan = window(&mut pact, &mut view, &[500], 1, 1);
    assert!(!plan.moves_pages() && pact.pac(PageId(500)) > 0.0);
    assert!(!pact.signals().has(Signal::KernelReclaim));
}

#[test]
fn huge_pages_move_whole_and_base_pages_are_tracked() {
    let (mut pact, mut view) = (policy(&[("move_huge", "true")]), machine());
    (0..100).for_each(|page| view.unmap(page));
    let plan = window(&mut pact, &mut view, &[600, 601, 601], 1, 1);
    assert_eq!(promoted(&plan), (512..1024).collect::<Vec<_>>(), "once");
    assert!(pact.pac(PageId(601)) > pact.pac(PageId(600)) && pact.pac(PageId(602)) == 0.0);
}

#[test]
fn without_an_lru_the_tracker_demotes_what_stalls_least() {
    let settings = [("demotion", "tracker"), ("track", "all")];
    let (mut pact, mut view) = (policy(&settings), machine());
    assert!(!pact.signals().has(Signal::KernelReclaim) && pact.sampling().scope == SamplingScope::EachTier);
    let mut batch = batch_of(&view, &[0, 1, 2, 3, 3, 500, 501], (0, 0));
    batch.counters = counters(1, 1);
    batch.counters.tiers[0] = batch.counters.tiers[1];
    let plan = turn(&mut pact, &mut view, &batch, Nanos(WINDOW)).0;
    assert_eq!(promoted(&plan), [500, 501]);
    let demoted = &plan.moves[..2];
    assert!(demoted.iter().all(|step| step.to == TierId(1) && (4..8).contains(&step.page.0)), "{demoted:?}");
    assert!(plan.reclaim.is_empty());
    assert_eq!(view.tier_of(PageId(500)), Some(TierId::FAST), "they made room for it");
}

#[test]
fn a_page_that_is_gone_is_forgotten() {
    let (mut pact, mut view) = (policy(&[]), machine());
    let batch = {
        let mut batch = batch_of(&view, &[500], (0, 0));
        batch.counters = counters(1, 1);
        batch
    };
    let mut plan = Plan::default();
    pact.observe(&batch, &mut view);
    pact.step(Nanos(WINDOW), &mut view, &mut plan);
    let outcome = Outcome { moves: vec![MoveStatus::Gone], ..Outcome::default() };
    pact.settle(&plan, &outcome, &mut view);
    assert_eq!(pact.pac(PageId(500)), 0.0);
}
