//! The hot threshold: it follows the distribution of counts and the size of the fast tier.

use proptest::prelude::*;

use super::*;

/// Returns a threshold for `room` hot pages and counts up to 15, over pages with these `(count, pages)`.
fn over(room: u64, ties: &str, counts: &[(u32, u64)]) -> HotThreshold {
    let mut settings = threshold_settings(&policy(&[("ties", ties), ("threshold_warmup", "0")]));
    settings.room = room;
    settings.warmup = 0;
    let mut threshold = HotThreshold::new(settings, 15);
    for &(count, pages) in counts {
        let changes = vec![Change { before: 0, after: count }; pages as usize];
        threshold.follow(&changes, pages);
    }
    threshold
}

#[test]
fn it_starts_at_5() {
    assert_eq!(policy(&[]).threshold.value(), 5.0);
    assert_eq!(policy(&[("counter_bits", "2")]).threshold.value(), 3.0, "a counter's largest value");
}

#[test]
fn more_hot_pages_than_fit_raise_it_and_fewer_lower_it() {
    assert_eq!(over(100, "exclude", &[(6, 150), (9, 100)]).value(), 7.0);
    assert_eq!(over(100, "exclude", &[(2, 60), (3, 30), (1, 500)]).value(), 2.0);
    assert_eq!(over(100, "exclude", &[(1, 40)]).value(), 1.0, "never below 1");
    assert_eq!(over(100, "exclude", &[(15, 500)]).value(), 15.0, "never above the largest count");
}

#[test]
fn the_hot_set_follows_a_fast_tier_that_others_take_from() {
    let mut threshold = over(100, "split", &[(7, 40), (4, 600)]);
    threshold.resize(Pages(40));
    threshold.follow(&[], 1000);
    let reserve = 1;
    assert_eq!(threshold.value(), 8.0 - f64::from(40 - reserve) / 40.0, "of those with 7, all but the reserve");
}

/// HybridTier's published artifact has the rule but never calls it: there the threshold only falls.
#[test]
fn regression_the_threshold_rule_is_called_while_the_policy_runs() {
    let (mut policy, mut view) = (policy(&[("ageing_samples_per_page", "1000")]), machine());
    let mut seen = vec![policy.threshold.value()];
    // Everything is about equally hot: far more pages than fit pass any low threshold.
    for _ in 0..9 {
        act(&mut policy, &mut view, &samples(0..PAGES as u32, 1));
        seen.push(policy.threshold.value());
    }
    assert!(seen[1] < 2.0, "after one sample each, all have 1 and some are hot: {seen:?}");
    assert!(seen[9] > 8.0, "it rose with the counts: {seen:?}");
    for _ in 0..3 {
        policy.age();
    }
    assert!(policy.threshold.value() < 2.0, "it fell with ageing");
}

#[test]
fn it_waits_until_the_distribution_is_known() {
    let (mut policy, mut view) = (policy(&[]), machine());
    act(&mut policy, &mut view, &samples(0..FAST as u32 - 1, 1));
    assert_eq!(policy.threshold.value(), 5.0, "less than one sample per fast page");
    act(&mut policy, &mut view, &[999]);
    assert!(policy.threshold.value() < 5.0);
}

#[test]
fn tied_pages_fill_the_room_that_hotter_ones_leave() {
    let threshold = over(100, "split", &[(7, 40), (4, 600), (2, 1000)]);
    assert!((threshold.value() - 4.9).abs() < 1e-6, "a tenth of those with 4: {}", threshold.value());
    assert_eq!(threshold.hot_pages(), 99, "60 of 600, rounded down");
    let hot = |count| (0..10_000).filter(|&page| threshold.is_hot(PageId(page), count)).count();
    assert_eq!((hot(7), hot(3), hot(0)), (10_000, 0, 0));
    assert!((900..1100).contains(&hot(4)), "{}", hot(4));
}

#[test]
fn saturated_pages_that_do_not_fit_are_split_as_well() {
    let threshold = over(100, "split", &[(15, 400)]);
    assert_eq!(threshold.value(), 15.75);
    assert_eq!(threshold.hot_pages(), 100);
}

#[test]
fn pages_never_counted_are_never_hot() {
    for ties in ["split", "exclude"] {
        assert!(!over(100, ties, &[(1, 10)]).is_hot(PageId(1), 0));
        assert!(!over(0, ties, &[]).is_hot(PageId(1), 0));
    }
}

#[test]
fn a_tier_without_room_has_no_hot_pages() {
    assert_eq!(over(0, "split", &[(3, 10), (15, 10)]).hot_pages(), 0);
}

#[test]
fn adjusting_wide_counters_costs_a_bounded_number_of_operations_per_sample() {
    let mut settings = threshold_settings(&policy(&[]));
    settings.warmup = 0;
    let mut threshold = HotThreshold::new(settings, 65_535);
    let changes = vec![Change { before: 0, after: 3 }; 64];
    let operations: u64 = (0..1000).map(|_| threshold.follow(&changes, 64)).sum();
    assert!(operations <= 64_000 * (1 + 16), "{operations}");
    assert!(threshold.value() < 5.0, "yet it follows");
}

proptest! {
    /// The hot set never exceeds the room, and fills it whenever there are enough pages with a count.
    #[test]
    fn the_hot_set_fits_the_room(room in 0..5000u64, pages in prop::collection::vec(0..800u64, 15)) {
        let counts: Vec<_> = (1..=15).zip(pages.iter().copied()).collect();
        let threshold = over(room, "split", &counts);
        let all: u64 = pages.iter().sum();
        prop_assert!(threshold.hot_pages() <= room);
        prop_assert!(threshold.hot_pages() + 1 >= room.min(all));
    }
}
