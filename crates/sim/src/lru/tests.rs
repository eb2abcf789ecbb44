use isotherm_core::{Allocation, MoveStatus};
use proptest::prelude::*;

use super::*;
use crate::page_table::{Locator, PageTable};

/// Returns a page table whose fast tier has taken the pages below `pages` at their first access.
fn touched(pages: u32) -> PageTable {
    let capacity = vec![u64::from(pages), 1000];
    let mut table = PageTable::new(pages as usize, capacity, 0.0, Allocation::FastFirst).with_lists(0.0);
    (0..pages).for_each(|page| _ = table.serve(0, page));
    table
}

/// Demotes at most `wanted` pages of the fast tier in one pass; returns them.
fn reclaim(table: &mut PageTable, wanted: usize) -> Vec<u32> {
    let mut pass = Pass::new(TierId::FAST, Pages(wanted as u64));
    let mut demoted = Vec::new();
    while demoted.len() < wanted
        && let Some(page) = table.next_victim(&mut pass, &mut 0)
    {
        assert_eq!(table.relocate(page, TierId(1)), MoveStatus::Moved);
        demoted.push(page.0);
    }
    demoted
}

#[test]
fn a_page_used_once_is_demoted_before_pages_used_twice() {
    let mut table = touched(8);
    assert!(reclaim(&mut table, 1).is_empty(), "each was just touched; the pass marks the first seven");
    [0, 2].into_iter().for_each(|page| _ = table.serve(0, page));
    assert_eq!(reclaim(&mut table, 2), [1, 3], "0 and 2 are older, but were used again");
    assert_eq!(reclaim(&mut table, 3), [4, 5], "a half of the list at most in a pass, and no active page");
}

#[test]
fn what_is_used_between_passes_outlasts_what_is_not() {
    let mut table = touched(128);
    let mut demoted = Vec::new();
    while demoted.len() < 60 {
        demoted.extend(reclaim(&mut table, 4));
        (0..128).step_by(2).for_each(|page| _ = table.serve(0, page));
    }
    assert!(demoted.iter().all(|page| page % 2 == 1), "{demoted:?}");
    assert!(table.lru().len(TierId::FAST, List::Active) > 0, "those used were activated");
}

proptest! {
    /// Each page is on one list of its tier, and pages that leave were not used since the last look.
    #[test]
    fn every_page_is_on_a_list_of_its_tier(steps in prop::collection::vec((0..3, 0..40_u32), 1..60)) {
        let mut table = touched(40);
        for (step, number) in steps {
            if step < 2 {
                table.serve(0, number);
                continue;
            }
            let mut pass = Pass::new(TierId::FAST, Pages(u64::from(number)));
            let victim = table.next_victim(&mut pass, &mut 0);
            if let Some(page) = victim {
                prop_assert!(!table.referenced(page));
                table.relocate(page, TierId(1));
            }
            for (tier, size) in [(TierId::FAST, 40), (TierId(1), 1000)] {
                let listed = table.lru().len(tier, List::Inactive) + table.lru().len(tier, List::Active);
                prop_assert_eq!(Pages(listed), Pages(size) - table.free(tier));
            }
        }
    }
}

/// Returns lists of a tier with that many inactive and active pages.
fn lists(inactive: u32, active: u32, gib_per_page: f64) -> Lru {
    let mut lru = Lru::new((inactive + active) as usize, gib_per_page);
    (0..inactive).for_each(|page| lru.put(PageId(page), TierId::FAST, List::Inactive));
    (inactive..inactive + active).for_each(|page| lru.put(PageId(page), TierId::FAST, List::Active));
    lru
}

#[test]
fn active_pages_age_only_while_inactive_ones_are_few_for_the_size() {
    let low = |inactive, active, gib| lists(inactive, active, gib).inactive_is_low(TierId::FAST);
    assert!(low(40, 41, 0.0) && !low(40, 40, 0.0));
    // 100 pages that stand for 10 GiB: the ratio is the root of 100.
    assert!(low(10, 90, 0.0) && !low(10, 90, 0.1) && low(9, 91, 0.1));
}

#[test]
fn a_pass_takes_turns_between_the_lists_and_ends() {
    let mut lru = lists(64, 4096, 0.0);
    let mut pass = Pass::new(TierId::FAST, Pages(1000));
    let mut looked = Vec::new();
    while let Some((page, list)) = pass.next(&lru) {
        looked.push(list);
        lru.put(page, TierId::FAST, List::Inactive);
    }
    let turns: Vec<(List, usize)> = looked.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
    // With few inactive pages there is nothing to examine before active ones have aged.
    assert_eq!(turns[0].0, List::Active, "{turns:?}");
    assert!(turns.contains(&(List::Inactive, CLUSTER as usize)), "{turns:?}");
    assert!(looked.len() < 2 * 4160, "each page once or twice: {}", looked.len());
}

#[test]
fn a_pass_over_an_empty_tier_is_over() {
    assert_eq!(Pass::new(TierId(1), Pages(1)).next(&lists(3, 3, 0.0)), None);
}

#[test]
fn migration_keeps_a_page_active() {
    let mut lru = lists(1, 1, 0.0);
    (0..2).for_each(|page| lru.migrate(PageId(page), TierId(1)));
    assert_eq!([List::Inactive, List::Active].map(|list| lru.len(TierId(1), list)), [1, 1]);
    assert_eq!(lru.oldest(TierId(1), List::Active), Some(PageId(1)));
    assert_eq!(lru.len(TierId::FAST, List::Active), 0);
}
