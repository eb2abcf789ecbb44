//! Faults of published trackers that must not occur here; each test is named for one.

use isotherm_trackers::{Change, CountHistogram, DenseTable, FilterShape, Layout, Tracker};

/// HybridTier's published filter decrements without a check for zero, so that a page never seen has 15 and
/// the borrow takes one from the neighbouring counter. Here only ageing lowers counts.
#[test]
fn an_unseen_key_never_wraps_to_the_maximum_nor_borrows_from_its_neighbour() {
    for layout in [Layout::Standard, Layout::Blocked] {
        for bits in [2, 4, 8, 16] {
            let shape = FilterShape::with_bytes(4096, bits, 4).expect("a valid shape");
            let mut filter = shape.build(layout).expect("memory for a filter");
            // Every second key is counted, so others keep counters at zero beside them.
            (0..200).step_by(2).for_each(|key| {
                filter.increase(key, 1 + key);
            });
            for _ in 0..20 {
                let before: Vec<u32> = (0..200).map(|key| filter.get(key)).collect();
                filter.age();
                for (key, before) in (0..200).zip(before) {
                    assert_eq!(filter.get(key), before / 2, "{layout:?}, {bits} bits, key {key}");
                }
            }
        }
    }
}

#[test]
fn ageing_an_empty_tracker_leaves_it_empty() {
    let shape = FilterShape::with_bytes(4096, 4, 4).expect("a valid shape");
    let trackers: [Box<dyn Tracker>; 2] =
        [shape.build(Layout::Blocked).expect("memory for a filter"), Box::new(DenseTable::<u8>::new(100))];
    for mut tracker in trackers {
        tracker.age();
        assert!((0..100).all(|key| tracker.get(key) == 0), "{tracker:?}");
    }
}

/// Memtis-like bookkeeping in the artifact ages in the middle of an increase: the page's old bin, read
/// earlier, is then empty, and its index or its count underflows.
#[test]
fn ageing_inside_an_increase_does_not_underflow_a_histogram_bin() {
    let mut histogram = CountHistogram::new(15);
    histogram.record(Change { before: 0, after: 9 });
    histogram.age();
    histogram.record(Change { before: 9, after: 10 });
    assert_eq!(histogram.bins().iter().sum::<u64>(), 1, "{histogram:?}");
    assert_eq!(histogram.at_least(10), 1);

    histogram.record(Change { before: 15, after: 1 });
    histogram.age();
    histogram.age();
    assert_eq!(histogram.bins(), [0; 16]);
    histogram.record(Change { before: 3, after: 4 });
    histogram.record(Change { before: 14, after: 2000 });
    assert_eq!((histogram.at_least(1), histogram.at_least(15)), (1, 1), "{histogram:?}");
}
