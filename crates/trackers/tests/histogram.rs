//! The histogram counts what its tracker counts, and its threshold fits the capacity.

use isotherm_trackers::{Change, CountHistogram, DenseTable, FilterShape, Layout, Tracker, testing};

/// Returns the bins that the pages' counts give.
fn counted(tracker: &dyn Tracker, pages: u32) -> Vec<u64> {
    let mut bins = vec![0; tracker.maximum() as usize + 1];
    (0..pages)
        .map(|page| tracker.get(page))
        .filter(|&count| count > 0)
        .for_each(|count| bins[count as usize] += 1);
    bins
}

#[test]
fn beside_an_exact_table_the_histogram_is_exact_through_ageings() {
    let (mut table, mut histogram, mut changes) =
        (DenseTable::<u8>::new(5000), CountHistogram::new(255), Vec::new());
    for (index, batch) in testing::zipf(5000, 0.9, 100_000, 3).chunks(10_000).enumerate() {
        let items: Vec<(u32, u32)> = batch.iter().map(|&key| (key, 1)).collect();
        table.increase_batch(&items, &mut changes);
        histogram.record_all(&changes);
        if index % 3 == 2 {
            table.age();
            histogram.age();
        }
        assert_eq!(histogram.bins(), counted(&table, 5000));
    }
}

#[test]
fn beside_a_filter_at_its_design_point_the_histogram_is_off_by_the_filter_s_own_errors() {
    let shape = FilterShape::for_keys(50_000, 0.001, 4, 3).expect("a valid shape");
    let mut filter = shape.build(Layout::Blocked).expect("memory for a filter");
    let (mut histogram, mut changes) = (CountHistogram::new(filter.maximum()), Vec::new());
    for (index, batch) in testing::zipf(50_000, 0.9, 600_000, 4).chunks(50_000).enumerate() {
        let items: Vec<(u32, u32)> = batch.iter().map(|&key| (key, 1)).collect();
        filter.increase_batch(&items, &mut changes);
        histogram.record_all(&changes);
        if index % 4 == 3 {
            filter.age();
            histogram.age();
        }
    }
    let expected = counted(&*filter, 50_000);
    let pages: u64 = expected.iter().sum();
    let wrong: u64 = histogram.bins().iter().zip(&expected).map(|(&bin, &truth)| bin.abs_diff(truth)).sum();
    assert!(wrong * 100 < pages, "{wrong} of {pages}: {:?} {expected:?}", histogram.bins());
}

#[test]
fn the_threshold_is_the_smallest_whose_pages_fit() {
    let mut histogram = CountHistogram::new(15);
    for (count, pages) in [(1, 100), (4, 20), (9, 5), (15, 2)] {
        (0..pages).for_each(|_| histogram.record(Change { before: 0, after: count }));
    }
    let thresholds =
        [0, 1, 2, 6, 7, 26, 27, 126, 127, u64::MAX].map(|capacity| histogram.threshold_for(capacity));
    assert_eq!(thresholds, [16, 16, 10, 10, 5, 5, 2, 2, 1, 1]);
    for capacity in 0..130 {
        let threshold = histogram.threshold_for(capacity);
        assert!(histogram.at_least(threshold) <= capacity);
        assert!(threshold == 1 || histogram.at_least(threshold - 1) > capacity);
    }
}

#[test]
fn sixteen_bit_counts_have_a_bin_each() {
    let shape = FilterShape::for_keys(100, 0.001, 16, 4).expect("a valid shape");
    let mut filter = shape.build(Layout::Blocked).expect("memory for a filter");
    let (mut histogram, mut changes) = (CountHistogram::new(filter.maximum()), Vec::new());
    let items: Vec<(u32, u32)> = (0..100).map(|page| (page, 700 * (page + 1))).collect();
    filter.increase_batch(&items, &mut changes);
    histogram.record_all(&changes);
    assert_eq!((histogram.maximum(), histogram.bins().len()), (65_535, 65_536));
    assert_eq!(
        [0, 7, 10, 100].map(|capacity| histogram.threshold_for(capacity)),
        [65_536, 65_101, 63_001, 1]
    );
    filter.age();
    histogram.age();
    assert_eq!([7, 10].map(|capacity| histogram.threshold_for(capacity)), [32_551, 31_501]);
}
