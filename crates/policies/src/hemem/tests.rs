//! HeMem on a small machine: thresholds, lists, cooling, rounds of moves.

use isotherm_core::Pages;
use proptest::prelude::*;

use super::*;
use crate::support::test_view::{TestView, batch_of, parameters, setup, turn};

const FAST: u64 = 10;

fn policy(settings: &[(&str, &str)]) -> Hemem {
    Hemem::new(&parameters(Settings::SPECS, settings), &setup(40, FAST))
}

fn machine() -> TestView {
    TestView::new(&[Pages(FAST), Pages(64)], 40)
}

/// Samples of `pages`, with a round of moves at the `round`-th 10 ms. Returns the moves.
fn reads(hemem: &mut Hemem, view: &mut TestView, pages: &[u32], round: u64) -> Vec<(u32, u8)> {
    let batch = batch_of(view, pages, (0, 0));
    let (plan, _) = turn(hemem, view, &batch, Nanos(round * 10_000_000));
    plan.moves.iter().map(|step| (step.page.0, step.to.0)).collect()
}

fn writes(hemem: &mut Hemem, view: &mut TestView, pages: &[u32], round: u64) -> Vec<(u32, u8)> {
    let mut batch = batch_of(view, pages, (0, 0));
    batch.samples.iter_mut().for_each(|sample| sample.operation = Operation::Store);
    let (plan, _) = turn(hemem, view, &batch, Nanos(round * 10_000_000));
    plan.moves.iter().map(|step| (step.page.0, step.to.0)).collect()
}

#[test]
fn the_fourth_read_makes_a_page_hot_and_the_first_cold_page_makes_room() {
    let (mut hemem, mut view) = (policy(&[]), machine());
    assert_eq!(reads(&mut hemem, &mut view, &[30, 30, 30], 1), []);
    assert_eq!(reads(&mut hemem, &mut view, &[30], 2), [(0, 1), (30, 0)]);
    assert_eq!(hemem.lists.list_of(PageId(30)), Some(FAST_HOT));
    assert_eq!(hemem.lists.list_of(PageId(0)), Some(SLOW_COLD));
}

#[test]
fn reads_and_writes_count_separately() {
    let (mut hemem, mut view) = (policy(&[]), machine());
    reads(&mut hemem, &mut view, &[30, 30, 30], 1);
    assert_eq!(writes(&mut hemem, &mut view, &[30, 30, 30], 2), [], "three of each are not four of one");
    assert_eq!(writes(&mut hemem, &mut view, &[30], 3), [(0, 1), (30, 0)]);
}

#[test]
fn written_pages_are_promoted_before_read_ones_and_those_in_turn() {
    let (mut hemem, mut view) = (policy(&[]), machine());
    let batch = |page| [page; 4];
    reads(&mut hemem, &mut view, &[batch(31), batch(30)].concat(), 0);
    let moves = writes(&mut hemem, &mut view, &batch(35), 1);
    let promoted: Vec<u32> = moves.iter().filter(|step| step.1 == 0).map(|step| step.0).collect();
    assert_eq!(promoted, [35, 31, 30]);
}

#[test]
fn a_count_at_the_cooling_threshold_halves_all_counts() {
    let (mut hemem, mut view) = (policy(&[]), machine());
    reads(&mut hemem, &mut view, &[30, 30, 30, 30, 30, 31, 31, 31, 31, 31], 1);
    assert_eq!(hemem.clock, 0);
    assert!(hemem.is_hot(PageId(31)));
    reads(&mut hemem, &mut view, &[30; 5], 2);
    assert_eq!(hemem.clock, 1, "page 30 has ten");
    assert_eq!(hemem.lists.list_of(PageId(31)), Some(FAST_COLD), "the walk found 31 cold: 5 / 2");
    assert_eq!(hemem.lists.list_of(PageId(30)), Some(FAST_HOT), "30 keeps 5");
}

#[test]
fn the_walk_after_a_tick_takes_turns() {
    let (mut hemem, mut view) = (policy(&[("cooling_pages", "1")]), machine());
    let hot: Vec<u32> = [0, 1, 2].iter().flat_map(|&page| [page; 4]).collect();
    reads(&mut hemem, &mut view, &hot, 1);
    reads(&mut hemem, &mut view, &[3; 10], 2);
    assert_eq!(hemem.lists.len(FAST_HOT), 3, "one of 0 to 2 was looked at; 3 is hot");
    reads(&mut hemem, &mut view, &[], 3);
    reads(&mut hemem, &mut view, &[], 4);
    assert_eq!(hemem.lists.len(FAST_HOT), 1, "two rounds later all were");
}

#[test]
fn nothing_moves_while_every_fast_page_is_hot() {
    let (mut hemem, mut view) = (policy(&[]), machine());
    let hot: Vec<u32> = (0..10).chain([30]).flat_map(|page| [page; 4]).collect();
    assert_eq!(reads(&mut hemem, &mut view, &hot, 1), []);
    assert_eq!(hemem.lists.len(SLOW_HOT), 1, "it waits");
}

#[test]
fn a_round_promotes_no_more_than_the_rate_allows() {
    // 2 pages in 10 ms.
    let rate = (2 * 4096 * 100u64).to_string();
    let (mut hemem, mut view) = (policy(&[("migration_rate", &rate)]), machine());
    let hot: Vec<u32> = (30..35).flat_map(|page| [page; 4]).collect();
    assert_eq!(reads(&mut hemem, &mut view, &hot, 1).len(), 4, "two up, two down");
    assert_eq!(reads(&mut hemem, &mut view, &[], 1).len(), 0, "10 ms have not passed");
    assert_eq!(reads(&mut hemem, &mut view, &[], 2).len(), 4);
    assert_eq!(reads(&mut hemem, &mut view, &[], 3).len(), 2);
}

#[test]
fn a_refused_promotion_waits_in_the_hot_list() {
    let (mut hemem, mut view) = (policy(&[]), machine());
    view.reserve = FAST;
    reads(&mut hemem, &mut view, &[30; 4], 1);
    assert_eq!(hemem.lists.list_of(PageId(30)), Some(SLOW_HOT));
    view.reserve = 0;
    assert_eq!(reads(&mut hemem, &mut view, &[], 2), [(30, 0)], "into the room of the first victim");
}

#[test]
fn the_page_table_is_read_only_while_pages_are_unlisted() {
    let (mut hemem, mut view) = (policy(&[]), machine());
    for page in 20..36 {
        reads(&mut hemem, &mut view, &[page; 4], u64::from(page));
    }
    assert_eq!(view.walks.len(), 1);
}

proptest! {
    /// Counts that cool when a page is touched read as if each tick had halved all of them at once.
    #[test]
    fn lazy_cooling_equals_eager_cooling(pages in prop::collection::vec((0..6u32, any::<bool>()), 1..400)) {
        let (mut hemem, view) = (policy(&[]), machine());
        let mut eager = [[0u16; 2]; 6];
        for (page, store) in pages {
            let before = hemem.clock;
            let mut batch = batch_of(&view, &[page], (0, 0));
            batch.samples[0].operation = if store { Operation::Store } else { Operation::Load };
            hemem.count(&batch.samples[0], view.tier_of(batch.samples[0].page));
            eager[page as usize][usize::from(store)] += 1;
            let tick = eager[page as usize][usize::from(store)] >= 10;
            prop_assert_eq!(hemem.clock - before, u32::from(tick));
            if tick {
                eager.iter_mut().flatten().for_each(|count| *count /= 2);
            }
            for (page, &[reads, writes]) in (0..).zip(&eager) {
                let mut now = hemem.counts[page as usize];
                let missed = hemem.clock - now.clock;
                (now.reads, now.writes) = (now.reads >> missed.min(15), now.writes >> missed.min(15));
                prop_assert_eq!((now.reads, now.writes), (reads, writes));
            }
        }
    }
}
