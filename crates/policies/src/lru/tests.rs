//! LRU on a small machine, against a plain model of it.

use isotherm_core::{PageSize, Pages, SamplingRate};
use proptest::prelude::*;

use super::*;
use crate::support::test_view::{TestView, batch_of, turn};

const FAST: u64 = 4;

fn policy(pages: usize) -> Lru {
    let setup = Setup { pages, fast: Pages(FAST), page_size: PageSize::Base, tiers: 2, seed: 1 };
    let mut parameters = Parameters::new("lru", Settings::SPECS);
    parameters.set("free_reserve", "0").expect("in range");
    Lru::new(&parameters, &setup)
}

fn machine(mapped: usize) -> TestView {
    TestView::new(&[Pages(FAST), Pages(64)], mapped)
}

#[test]
fn a_sampled_slow_page_takes_the_place_of_the_least_recent_fast_one() {
    let (mut lru, mut view) = (policy(8), machine(8));
    let batch = batch_of(&view, &[0, 1, 2, 3, 1, 0, 7], (0, 0));
    turn(&mut lru, &mut view, &batch, Nanos(0));
    assert_eq!(view.pages_in(TierId::FAST), [0, 1, 3, 7], "2 was the least recent");
}

#[test]
fn fast_pages_that_were_never_sampled_leave_first() {
    let (mut lru, mut view) = (policy(8), machine(8));
    let batch = batch_of(&view, &[0, 3, 6, 7], (0, 0));
    turn(&mut lru, &mut view, &batch, Nanos(0));
    assert_eq!(view.pages_in(TierId::FAST), [0, 3, 6, 7]);
}

#[test]
fn of_more_pages_than_fit_the_most_recent_stay() {
    let (mut lru, mut view) = (policy(16), machine(16));
    let batch = batch_of(&view, &[4, 5, 6, 7, 8, 9, 10, 11], (0, 0));
    turn(&mut lru, &mut view, &batch, Nanos(0));
    assert_eq!(view.pages_in(TierId::FAST), [8, 9, 10, 11]);
}

#[test]
fn once_all_fast_pages_are_listed_the_page_table_is_not_read_again() {
    let (mut lru, mut view) = (policy(16), machine(16));
    for page in 4..16 {
        let batch = batch_of(&view, &[page], (0, 0));
        turn(&mut lru, &mut view, &batch, Nanos(0));
    }
    assert_eq!(view.pages_in(TierId::FAST), [12, 13, 14, 15]);
    assert_eq!(view.walks.len(), 1);
}

#[test]
fn a_promotion_without_room_may_be_repeated() {
    let (mut lru, mut view) = (policy(8), machine(8));
    view.reserve = FAST;
    let batch = batch_of(&view, &[7], (0, 0));
    let (_, outcome) = turn(&mut lru, &mut view, &batch, Nanos(0));
    assert!(outcome.moves.contains(&MoveStatus::NoRoom));
    view.reserve = 0;
    let batch = batch_of(&view, &[7], (0, 0));
    turn(&mut lru, &mut view, &batch, Nanos(1));
    assert!(view.pages_in(TierId::FAST).contains(&7));
}

#[test]
fn a_pinned_victim_counts_as_just_used() {
    let (mut lru, mut view) = (policy(16), machine(16));
    view.pinned = Some(PageId(0));
    for page in [8, 9] {
        let batch = batch_of(&view, &[page], (0, 0));
        turn(&mut lru, &mut view, &batch, Nanos(0));
    }
    assert_eq!(view.pages_in(TierId::FAST), [0, 2, 3, 9], "8 found no room, then 1 made room for 9");
}

#[test]
fn the_reserve_stays_free() {
    let (mut lru, mut view) = (policy(8), machine(8));
    lru.settings.free_reserve = 0.25;
    let batch = batch_of(&view, &[7, 6, 5, 4], (0, 0));
    turn(&mut lru, &mut view, &batch, Nanos(0));
    assert_eq!(view.pages_in(TierId::FAST), [4, 5, 6]);
}

#[test]
fn a_period_replaces_the_frequency() {
    let setup = Setup { pages: 1, fast: Pages(1), page_size: PageSize::Base, tiers: 2, seed: 1 };
    let mut parameters = Parameters::new("lru", Settings::SPECS);
    assert_eq!(Lru::new(&parameters, &setup).sampling().rate, SamplingRate::Frequency(100_000));
    parameters.set("sampling_period", "7").expect("in range");
    assert_eq!(Lru::new(&parameters, &setup).sampling().rate, SamplingRate::Period(7));
}

proptest! {
    /// With one sample a batch the fast tier holds exactly the pages sampled last, however long ago.
    #[test]
    fn the_fast_tier_holds_the_pages_sampled_last(stream in prop::collection::vec(0..12u32, 40..200)) {
        let (mut lru, mut view) = (policy(12), machine(12));
        for &page in &stream {
            let batch = batch_of(&view, &[page], (0, 0));
            turn(&mut lru, &mut view, &batch, Nanos(0));
        }
        let mut recent: Vec<u32> = Vec::new();
        for &page in stream.iter().rev() {
            if !recent.contains(&page) && recent.len() < FAST as usize {
                recent.push(page);
            }
        }
        prop_assert!(recent.iter().all(|page| view.pages_in(TierId::FAST).contains(page)));
        prop_assert_eq!(view.free(TierId::FAST), Pages(0));
    }
}
