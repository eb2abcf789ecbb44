//! Memtis on a small machine: classes, rounds of moves, splits.

use isotherm_core::{PageSize, Pages};

use super::*;
use crate::support::test_view::{TestView, batch_of, parameters, setup, turn};

const FAST: u64 = 100;

/// Memtis on a fast tier of `fast` pages; thresholds are fitted every 64 samples.
fn policy(pages: usize, fast: u64, settings: &[(&str, &str)]) -> Memtis {
    let fixed = [("adaptation_samples", "64"), ("smallest_reserve", "0"), ("promotion_reserve", "0")];
    <Memtis>::new(&parameters(Settings::SPECS, &[&fixed, settings].concat()), &setup(pages, fast))
}

fn machine(fast: u64, mapped: usize) -> TestView {
    TestView::new(&[Pages(fast), Pages(4096)], mapped)
}

/// Samples of `pages`, each `times` times in turn.
fn rounds(pages: impl Iterator<Item = u32> + Clone, times: usize) -> Vec<u32> {
    (0..times).flat_map(|_| pages.clone()).collect()
}

/// Feeds samples and carries out one round of migration at the `round`-th half second.
fn migrate(memtis: &mut Memtis, view: &mut TestView, samples: &[u32], round: u64) -> Plan {
    let batch = batch_of(view, samples, (0, 0));
    turn(memtis, view, &batch, Nanos(round * Nanos::SECOND.0 / 2)).0
}

#[test]
fn hot_slow_pages_take_the_place_of_cold_fast_ones() {
    let (mut memtis, mut view) = (policy(400, FAST, &[("demotion_watermark", "0")]), machine(FAST, 400));
    let samples = rounds(300..350, 4);
    migrate(&mut memtis, &mut view, &samples, 1);
    let fast = view.pages_in(TierId::FAST);
    assert!((300..350).all(|page| fast.contains(&page)), "{fast:?}");
    assert_eq!(view.free(TierId::FAST), Pages(0), "no more than needed was demoted");
}

#[test]
fn the_threshold_fits_the_fast_tier() {
    let (mut memtis, mut view) = (policy(400, FAST, &[]), machine(FAST, 400));
    // 50 pages with 16 samples, 100 more with 4, 200 more with 1: only the first bin fits.
    let mut samples = rounds(0..50, 12);
    samples.extend(rounds(0..150, 3));
    samples.extend(rounds(0..350, 1));
    samples.resize(samples.len().next_multiple_of(64), 0);
    migrate(&mut memtis, &mut view, &samples, 1);
    assert_eq!(memtis.thresholds.hot, bin_of(4 * 512) + 1);
    assert_eq!(memtis.thresholds.warm, memtis.thresholds.hot - 1, "50 of 100 are less than 75 %");
}

#[test]
fn the_warm_class_exists_only_while_the_hot_set_is_small() {
    let derived = policy(400, FAST, &[]).derived;
    let fit = |hot: u64| {
        let mut histogram = Histogram::new();
        histogram.shift(0, 12, hot);
        histogram.shift(0, 10, 200);
        Thresholds::fit(&histogram, &derived)
    };
    assert_eq!(fit(74), Thresholds { hot: 11, warm: 10 });
    assert_eq!(fit(75), Thresholds { hot: 11, warm: 11 });
}

#[test]
fn warm_pages_stay_unless_hot_ones_need_their_room() {
    let settings = [("demotion_watermark", "0"), ("adaptation_samples", "10M")];
    let (mut memtis, mut view) = (policy(400, FAST, &settings), machine(FAST, 400));
    memtis.thresholds = Thresholds { hot: 11, warm: 10 };
    // All fast pages are warm (2 samples), slow ones warm (2) or hot (4).
    let mut samples = rounds(0..FAST as u32, 2);
    samples.extend(rounds(200..250, 2));
    let plan = migrate(&mut memtis, &mut view, &samples, 1);
    assert!(plan.moves.is_empty(), "warm pages are neither promoted nor demoted");
    let plan = migrate(&mut memtis, &mut view, &rounds(300..310, 4), 2);
    assert_eq!(plan.moves.len(), 20, "ten hot pages take the place of ten warm ones");
    assert!((300..310).all(|page| view.tier_of(PageId(page)) == Some(TierId::FAST)));
}

#[test]
fn cold_pages_leave_before_warm_ones() {
    let settings = [("demotion_watermark", "0"), ("adaptation_samples", "10M")];
    let (mut memtis, mut view) = (policy(400, FAST, &settings), machine(FAST, 400));
    memtis.thresholds = Thresholds { hot: 11, warm: 10 };
    let mut samples = rounds(0..90, 2);
    samples.extend(rounds(300..320, 4));
    migrate(&mut memtis, &mut view, &samples, 1);
    let left: Vec<u32> = (0..100).filter(|&page| view.tier_of(PageId(page)) != Some(TierId::FAST)).collect();
    assert_eq!(left.len(), 20);
    assert!((90..100).all(|page| left.contains(&page)), "the ten cold pages are among {left:?}");
}

#[test]
fn a_round_moves_no_more_than_the_rate_allows() {
    // 20 pages in half a second.
    let rate = (20 * 2 * 4096u64).to_string();
    let (mut memtis, mut view) = (policy(400, FAST, &[("migration_rate", &rate)]), machine(FAST, 400));
    let samples = rounds(200..260, 4);
    for round in 1..=3u64 {
        let plan = migrate(&mut memtis, &mut view, if round == 1 { &samples } else { &[] }, round);
        let up = plan.moves.iter().filter(|step| step.to == TierId::FAST).count();
        assert!(plan.moves.len() - up <= 20 && up <= 20, "{up} of {}", plan.moves.len());
        let promoted = (200..260).filter(|&page| view.tier_of(PageId(page)) == Some(TierId::FAST)).count();
        assert!(promoted as u64 >= 20 * round - 2, "{promoted} after {round} rounds: 2 % stay free");
    }
    let again = migrate(&mut memtis, &mut view, &[], 3);
    assert!(again.moves.is_empty(), "half a second has not passed");
}

#[test]
fn the_rate_limits_promotions_into_free_room_too() {
    let rate = (20 * 2 * 4096u64).to_string();
    let (mut memtis, mut view) = (policy(400, FAST, &[("migration_rate", &rate)]), machine(FAST, 400));
    (0..90).for_each(|page| view.unmap(page));
    let plan = migrate(&mut memtis, &mut view, &rounds(200..260, 4), 1);
    assert_eq!(plan.moves.len(), 20);
}

#[test]
fn demotion_keeps_its_watermark_free() {
    let (mut memtis, mut view) = (policy(400, FAST, &[("demotion_watermark", "5%")]), machine(FAST, 400));
    migrate(&mut memtis, &mut view, &[], 1);
    assert_eq!(view.free(TierId::FAST), Pages(5));
}

#[test]
fn a_refused_promotion_is_repeated_in_the_next_round() {
    let (mut memtis, mut view) = (policy(400, FAST, &[("demotion_watermark", "0")]), machine(FAST, 400));
    view.reserve = FAST;
    migrate(&mut memtis, &mut view, &rounds(300..305, 4), 1);
    assert_eq!(memtis.lists.len(PROMOTED), 5);
    view.reserve = 0;
    migrate(&mut memtis, &mut view, &[], 2);
    assert!((300..305).all(|page| view.tier_of(PageId(page)) == Some(TierId::FAST)));
}

#[test]
fn cooling_makes_room_for_a_new_hot_set() {
    let settings = [("cooling_samples", "400"), ("demotion_watermark", "0")];
    let (mut memtis, mut view) = (policy(400, FAST, &settings), machine(FAST, 400));
    for round in 1..=10 {
        migrate(&mut memtis, &mut view, &rounds(100..200, 4), round);
    }
    assert!((100..200).all(|page| view.tier_of(PageId(page)) == Some(TierId::FAST)));
    for round in 11..=25 {
        migrate(&mut memtis, &mut view, &rounds(300..400, 4), round);
    }
    let moved = (300..400).filter(|&page| view.tier_of(PageId(page)) == Some(TierId::FAST)).count();
    assert!(moved > 95, "{moved} of the new hot set");
}

#[test]
fn of_stores_only_each_nth_counts_where_they_have_a_period() {
    let mut memtis = policy(400, FAST, &[("store_period", "10")]);
    let view = machine(FAST, 400);
    let mut batch = batch_of(&view, &[7; 10], (0, 0));
    for sample in &mut batch.samples {
        (sample.operation, sample.weight) = (Operation::Store, 4);
    }
    let taken = batch.samples.iter().filter(|&sample| memtis.takes(sample)).count();
    assert_eq!(taken, 4, "40 stores");
    assert!(
        batch_of(&view, &[7], (0, 0)).samples.iter().all(|sample| memtis.takes(sample)),
        "all loads count"
    );
}

#[test]
fn a_busy_interval_lengthens_the_period() {
    let (mut memtis, mut view) = (policy(400, FAST, &[("period_interval", "1ms")]), machine(FAST, 400));
    let batch = batch_of(&view, &[7; 640], (0, 0));
    let (plan, _) = turn(&mut memtis, &mut view, &batch, Nanos::MILLISECOND);
    let rate = plan.sampling.expect("640 samples of 220 ns are 14 % of 1 ms").rate;
    assert!(matches!(rate, SamplingRate::Period(period) if period > 199), "{rate:?}");
}

#[test]
fn lost_samples_count_as_sampling_too() {
    let (mut memtis, mut view) = (policy(400, FAST, &[("period_interval", "1ms")]), machine(FAST, 400));
    let mut batch = batch_of(&view, &[7], (0, 0));
    batch.lost = 640;
    assert!(turn(&mut memtis, &mut view, &batch, Nanos::MILLISECOND).0.sampling.is_some());
}

/// Two ranges in a fast tier that holds one: `hot` gives the pages of the slow one that are accessed.
fn two_ranges(hot: impl Iterator<Item = u32> + Clone) -> (Memtis, TestView) {
    let settings = [
        ("huge_pages", "true"),
        ("cooling_samples", "8192"),
        ("adaptation_samples", "1024"),
        ("demotion_watermark", "0"),
        ("promotion_reserve", "0"),
    ];
    let (mut memtis, mut view) = (policy(2048, 600, &settings), machine(600, 2048));
    for round in 1..=40 {
        // The first range is accessed evenly and often, the third at the pages of `hot`.
        let even = (0..512u32).map(|page| page * 3 % 512);
        let samples: Vec<u32> = even.zip(hot.clone().cycle()).flat_map(|(a, b)| [a, b]).collect();
        migrate(&mut memtis, &mut view, &samples, round);
    }
    (memtis, view)
}

#[test]
fn a_skewed_range_is_split_and_its_hot_pages_are_placed_singly() {
    let (memtis, view) = two_ranges(1024..1032);
    assert_eq!(memtis.units.pages(PageId(1024)), 1024..1025, "the skewed range is split");
    assert_eq!(memtis.units.pages(PageId(0)), 0..512, "the even one is not");
    assert!((1024..1032).all(|page| view.tier_of(PageId(page)) == Some(TierId::FAST)));
    assert_eq!(view.tier_of(PageId(1040)), Some(TierId(1)), "its cold pages stay slow");
}

#[test]
fn a_uniform_range_is_not_split() {
    let (memtis, _) = two_ranges(1024..1536);
    assert_eq!(memtis.splits, 0);
}

#[test]
fn the_pages_of_a_range_move_together() {
    let settings = [("huge_pages", "true"), ("demotion_watermark", "0")];
    let (mut memtis, mut view) = (policy(2048, 1024, &settings), machine(1024, 2048));
    migrate(&mut memtis, &mut view, &rounds(1100..1101, 64), 1);
    let fast = view.pages_in(TierId::FAST);
    assert!((1024..1536).all(|page| fast.contains(&page)), "one page of the range was sampled, all moved");
}

#[test]
fn in_a_run_of_huge_pages_nothing_is_split() {
    let setup = Setup { pages: 8, fast: Pages(2), page_size: PageSize::Huge, tiers: 2, seed: 1 };
    let mut parameters = Parameters::new("memtis", Settings::SPECS);
    parameters.set("huge_pages", "true").expect("a flag");
    let memtis = <Memtis>::new(&parameters, &setup);
    assert!(memtis.splitter.is_none());
    assert_eq!(memtis.derived.weight, 1, "a huge page counts 1 where a base page counts 512");
}

#[test]
fn quick_cooling_differs_in_its_cooling_only() {
    let (plain, quick) =
        (Parameters::new("memtis", Settings::SPECS), Parameters::new("memtis-qc", QuickSettings::SPECS));
    assert_eq!(Settings::read(&plain).cooling_samples, 2_000_000);
    assert_eq!(QuickSettings::read(&quick).cooling_samples, 120_000);
    assert_eq!(plain.iter().zip(quick.iter()).filter(|(a, b)| a.1 != b.1).count(), 1);
}

#[test]
fn metadata_is_about_what_memtis_keeps_a_page() {
    let memtis = policy(1 << 20, FAST, &[]);
    let per_page = memtis.metadata().0 as f64 / f64::from(1 << 20);
    assert!((16.0..=18.0).contains(&per_page), "{per_page} B a page");
}
