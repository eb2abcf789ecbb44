//! The second chance: marked with the count, looked at again after a minute, demoted if unchanged.

use proptest::prelude::*;

use super::*;

const REVISIT: u64 = 60 * SECOND;

/// Returns a full fast tier of pages that stay, but for `marked`: of high frequency, without momentum.
fn marked(marked: &[u32], frequency: u32, changes: &[(&str, &str)]) -> (HybridTier, TestView) {
    let (mut policy, mut view) = (policy(changes), machine());
    for page in 0..FAST as u32 {
        let chance = marked.contains(&page);
        policy.hotness.put(page, if chance { counts(frequency, 0) } else { counts(9, 15) });
    }
    let (plan, _) = act_at(&mut policy, &mut view, &[], SECOND);
    assert!(!plan.moves_pages(), "marked, not demoted");
    assert_eq!(policy.chances.len(), marked.len());
    (policy, view)
}

#[test]
fn a_marked_page_is_demoted_after_a_minute_if_its_count_is_unchanged_and_not_before() {
    let (mut policy, mut view) = marked(&[7, 9], 6, &[]);
    assert!(!act_at(&mut policy, &mut view, &[], REVISIT).0.moves_pages(), "59 seconds");
    let (plan, _) = act_at(&mut policy, &mut view, &[], SECOND + REVISIT);
    assert_eq!(demoted(&plan), [7, 9]);
    assert_eq!(policy.chances.len(), 0);
}

#[test]
fn a_page_that_was_accessed_meanwhile_is_kept() {
    let (mut policy, mut view) = marked(&[7, 9], 6, &[]);
    act_at(&mut policy, &mut view, &[9], 30 * SECOND);
    let (plan, _) = act_at(&mut policy, &mut view, &[], SECOND + REVISIT);
    assert_eq!(demoted(&plan), [7]);
}

#[test]
fn a_kept_page_can_be_marked_again() {
    let (mut policy, mut view) = marked(&[9], 6, &[]);
    act_at(&mut policy, &mut view, &[9], 30 * SECOND);
    act_at(&mut policy, &mut view, &[], SECOND + REVISIT);
    assert_eq!(policy.chances.len(), 1, "met by the scan of the same step");
    let (plan, _) = act_at(&mut policy, &mut view, &[], SECOND + 2 * REVISIT);
    assert_eq!(demoted(&plan), [9]);
}

#[test]
fn a_page_whose_momentum_is_high_again_stays() {
    let (mut policy, mut view) = marked(&[7], 15, &[]);
    act_at(&mut policy, &mut view, &samples([7], 3), 30 * SECOND);
    assert!(!act_at(&mut policy, &mut view, &[], SECOND + REVISIT).0.moves_pages(), "15 cannot rise");
}

#[test]
fn at_a_counters_largest_value_momentum_shows_an_access() {
    let (mut policy, mut view) = marked(&[7, 9], 15, &[]);
    act_at(&mut policy, &mut view, &[9], 30 * SECOND);
    let (plan, _) = act_at(&mut policy, &mut view, &[], SECOND + REVISIT);
    assert_eq!(demoted(&plan), [7]);
}

#[test]
fn cooling_is_no_access_and_hides_none() {
    let (mut policy, mut view) = marked(&[7, 9], 12, &[("frequency_cooling", "100")]);
    act_at(&mut policy, &mut view, &samples([999], 100), 20 * SECOND);
    assert_eq!(policy.hotness.counts(7).frequency, 6, "cooled");
    act_at(&mut policy, &mut view, &[9], 30 * SECOND);
    let (plan, _) = act_at(&mut policy, &mut view, &[], SECOND + REVISIT);
    assert_eq!(demoted(&plan), [7], "9 has 7, less than it had, but more than half of it");
}

#[test]
fn a_page_that_left_the_fast_tier_or_was_unmapped_is_forgotten() {
    let (mut policy, mut view) = marked(&[7, 8, 9], 6, &[]);
    view.put(7, TierId(1));
    view.unmap(8);
    // Others take their room.
    (FAST as u32..FAST as u32 + 2).for_each(|page| view.put(page, TierId::FAST));
    let (plan, _) = act_at(&mut policy, &mut view, &[], SECOND + REVISIT);
    assert_eq!(demoted(&plan), [9]);
}

#[test]
fn a_second_look_waits_until_room_is_wanted() {
    let (mut policy, mut view) = marked(&[7, 9], 6, &[]);
    view.unmap(8);
    view.unmap(6);
    assert!(!act_at(&mut policy, &mut view, &[], SECOND + REVISIT).0.moves_pages(), "two pages are free");
    (FAST as u32..FAST as u32 + 2).for_each(|page| view.put(page, TierId::FAST));
    let (plan, _) = act_at(&mut policy, &mut view, &[], 2 * SECOND + REVISIT);
    assert_eq!(demoted(&plan), [7, 9]);
}

#[test]
fn a_cohort_is_taken_in_parts() {
    let mut chances = SecondChances::new(9, Nanos(REVISIT), 9);
    (0..5).for_each(|page| chances.mark(PageId(page), page, Nanos(0)));
    let mut due = Vec::new();
    let mut taken = |limit| {
        chances.take_due(Nanos(REVISIT), limit, &mut due);
        due.iter().map(|mark| mark.page.0).collect::<Vec<_>>()
    };
    assert_eq!([taken(2), taken(2), taken(2), taken(2)], [vec![0, 1], vec![2, 3], vec![4], vec![]]);
}

#[test]
fn only_so_many_pages_are_marked_as_the_bound_says() {
    let mut chances = SecondChances::new(2, Nanos(REVISIT), 4);
    (0..4).for_each(|page| chances.mark(PageId(page), 6, Nanos(0)));
    let mut due = Vec::new();
    chances.take_due(Nanos(REVISIT), 9, &mut due);
    assert_eq!(due, [Mark { page: PageId(0), count: 6 }, Mark { page: PageId(1), count: 6 }]);
}

proptest! {
    /// Compares with a plain list: each page is marked once at a time and comes back in order, in time.
    #[test]
    fn marks_come_back_in_order_after_their_time(
        steps in prop::collection::vec((0u64..40, prop::collection::vec(0u32..200, 0..20), prop::bool::ANY), 0..60),
    ) {
        let mut chances = SecondChances::new(50, Nanos(100), 64);
        let (mut model, mut now, mut due): (Vec<(u64, Mark)>, u64, _) = (Vec::new(), 0, Vec::new());
        for (time, pages, cooled) in steps {
            now += time;
            if cooled {
                chances.cool();
                model.iter_mut().for_each(|(_, mark)| mark.count /= 2);
            }
            chances.take_due(Nanos(now), usize::MAX, &mut due);
            let (ready, rest) = model.into_iter().partition(|&(marked, _)| now - marked >= 100);
            model = rest;
            let ready: Vec<(u64, Mark)> = ready;
            prop_assert_eq!(&due, &ready.into_iter().map(|entry| entry.1).collect::<Vec<_>>());
            for page in pages {
                chances.mark(PageId(page), page, Nanos(now));
                if model.len() < 50 && model.iter().all(|(_, mark)| mark.page.0 != page) {
                    model.push((now, Mark { page: PageId(page), count: page as u16 }));
                }
            }
            prop_assert_eq!(chances.len(), model.len());
        }
    }
}
