//! Both filters are cooled, each at its own period.

use super::*;

#[test]
fn each_filter_is_halved_after_its_own_number_of_samples() {
    let changes = [("frequency_cooling", "300"), ("momentum_cooling", "100")];
    let (mut policy, mut view) = (policy(&changes), machine());
    act(&mut policy, &mut view, &samples([1], 12));
    act(&mut policy, &mut view, &samples([2], 87));
    assert_eq!(policy.hotness.counts(1), counts(12, 12), "99 samples");
    act(&mut policy, &mut view, &[2]);
    assert_eq!(policy.hotness.counts(1), counts(12, 6), "100");
    act(&mut policy, &mut view, &samples([2], 100));
    assert_eq!(policy.hotness.counts(1), counts(12, 3), "200");
    act(&mut policy, &mut view, &samples([2], 99));
    assert_eq!(policy.hotness.counts(1), counts(12, 3), "299");
    act(&mut policy, &mut view, &[2]);
    assert_eq!(policy.hotness.counts(1), counts(6, 1), "300");
}

#[test]
fn what_a_batch_overshoots_counts_for_the_next_period() {
    let (mut policy, mut view) = (policy(&[("momentum_cooling", "100")]), machine());
    act(&mut policy, &mut view, &samples([1], 150));
    assert_eq!(policy.hotness.counts(1).momentum, 7, "once");
    act(&mut policy, &mut view, &samples([2], 49));
    assert_eq!(policy.hotness.counts(1).momentum, 7);
    act(&mut policy, &mut view, &[2]);
    assert_eq!(policy.hotness.counts(1).momentum, 3, "200 samples in all");
    act(&mut policy, &mut view, &samples([2], 1000));
    assert_eq!(policy.hotness.counts(1).momentum, 1, "a batch longer than a period cools once");
}

#[test]
fn the_frequency_period_can_follow_the_fast_tier() {
    let settings = |changes: &[(&str, &str)], setup: &Setup| {
        Settings::read(&parameters(changes)).frequency_period(setup)
    };
    let per_page = [("frequency_cooling_per_page", "160")];
    assert_eq!(settings(&per_page, &setup()), 160 * FAST);
    let huge = Setup { page_size: PageSize::Huge, ..setup() };
    assert_eq!(settings(&per_page, &huge), 160 * 512 * FAST, "by the memory that pages stand for");
    assert_eq!(settings(&[], &huge), 80_000_000);
}

#[test]
fn a_page_that_turned_cold_loses_its_momentum_first_and_then_its_frequency() {
    let changes = [("frequency_cooling", "1000"), ("momentum_cooling", "100")];
    let (mut policy, mut view) = (policy(&changes), machine());
    policy.hotness.put(1, counts(12, 12));
    let mut fates = Vec::new();
    for _ in 0..21 {
        let counts = policy.hotness.counts(1);
        fates.push(policy.hotness.demotion(PageId(1), counts));
        act(&mut policy, &mut view, &samples([2], 100));
    }
    fates.dedup();
    assert_eq!(fates, [Demotion::NoAction, Demotion::SecondChance, Demotion::Demote]);
}
