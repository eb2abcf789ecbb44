//! The filters' error rates against the formulas, and the cost of blocking.

use isotherm_trackers::{
    Blocked, Coalescer, DenseTable, Filter, FilterShape, Layout, ShapeError, Tracker, testing,
};

const KEYS: u32 = 200_000;
const PROBES: u32 = 4_000_000;

/// Returns the share of keys never counted that have an estimate above 0.
fn measured_rate(shape: FilterShape, layout: Layout, keys: u32) -> f64 {
    let mut filter = shape.build(layout).expect("memory for a filter");
    let items: Vec<(u32, u32)> = (0..keys).map(|key| (key, 1)).collect();
    filter.increase_batch(&items, &mut Vec::new());
    let mut counts = Vec::new();
    filter.get_batch(&(keys..keys + PROBES).collect::<Vec<_>>(), &mut counts);
    counts.iter().filter(|&&count| count > 0).count() as f64 / f64::from(PROBES)
}

/// Returns the expected false-positive rate with `keys` keys in the filter, by the formulas of
/// `src/shape.rs`.
fn expected_rate(shape: FilterShape, layout: Layout, keys: u32) -> f64 {
    let (k, keys) = (f64::from(shape.hashes()), f64::from(keys));
    match layout {
        Layout::Standard => (1.0 - (-k * keys / shape.counters() as f64).exp()).powf(k),
        Layout::Blocked => {
            let zero = 1.0 - k / shape.width().per_block() as f64;
            poisson_mean(keys / shape.blocks() as f64, |load| (1.0 - zero.powf(load)).powf(k))
        }
    }
}

/// Returns the mean of `value(i)` over a Poisson distribution, within 12 standard deviations.
fn poisson_mean(mean: f64, value: impl Fn(f64) -> f64) -> f64 {
    let reach = 12.0 * mean.sqrt() + 40.0;
    let first = (mean - reach).max(0.0).floor() as u64;
    let mut log_factorial: f64 = (1..=first).map(|i| (i as f64).ln()).sum();
    let mut sum = 0.0;
    for i in first..=(mean + reach).ceil() as u64 {
        if i > first {
            log_factorial += (i as f64).ln();
        }
        let load = i as f64;
        let log_probability =
            if mean > 0.0 { load * mean.ln() - mean - log_factorial } else { -load * f64::MAX };
        sum += log_probability.exp() * value(load);
    }
    sum
}

fn assert_within(measured: f64, expected: f64, share: f64, what: &str) {
    println!("{what}: measured {measured:.6}, formula {expected:.6}");
    assert!((measured / expected - 1.0).abs() <= share, "{what}: measured {measured}, formula {expected}");
}

#[test]
fn false_positives_at_the_design_point_follow_the_formula_of_each_layout() {
    for (bits, hashes) in [(4, 3), (4, 4), (2, 4), (8, 4), (8, 3), (16, 4)] {
        let shape = FilterShape::for_keys(u64::from(KEYS), 0.001, bits, hashes).expect("a valid shape");
        for layout in [Layout::Standard, Layout::Blocked] {
            let expected = expected_rate(shape, layout, KEYS);
            let what = format!("{layout:?}, {bits} bits, k = {hashes}");
            assert_within(measured_rate(shape, layout, KEYS), expected, 0.1, &what);
        }
        assert_within(expected_rate(shape, Layout::Standard, KEYS), 0.001, 0.01, "design rate");
    }
}

#[test]
fn false_positives_follow_the_formula_away_from_the_design_point_too() {
    let shape = FilterShape::for_keys(u64::from(KEYS), 0.001, 4, 4).expect("a valid shape");
    for keys in [KEYS / 2, KEYS * 2, KEYS * 4] {
        for layout in [Layout::Standard, Layout::Blocked] {
            let expected = expected_rate(shape, layout, keys);
            assert_within(
                measured_rate(shape, layout, keys),
                expected,
                0.1,
                &format!("{layout:?}, {keys} keys"),
            );
        }
    }
}

/// Returns the share of the pages in a stream whose estimate differs from the clipped exact count.
fn share_of_wrong_estimates(layout: Layout, stream: &[u32], shape: FilterShape) -> f64 {
    let mut filter = shape.build(layout).expect("memory for a filter");
    let mut exact = DenseTable::<u32>::new(0);
    for &page in stream {
        filter.increment(page);
        exact.increment(page);
    }
    let seen: Vec<u32> = (0..1 << 20).filter(|&page| exact.get(page) > 0).collect();
    let wrong = |&&page: &&u32| filter.get(page) != exact.get(page).min(filter.maximum());
    seen.iter().filter(wrong).count() as f64 / seen.len() as f64
}

#[test]
fn blocking_costs_a_stated_share_of_wrong_estimates() {
    let stream = testing::zipf(1 << 20, 0.9, 2_000_000, 5);
    let distinct = stream.iter().collect::<std::collections::HashSet<_>>().len() as u64;
    for hashes in [3, 4] {
        let shape = FilterShape::for_keys(distinct, 0.001, 4, hashes).expect("a valid shape");
        let standard = share_of_wrong_estimates(Layout::Standard, &stream, shape);
        let blocked = share_of_wrong_estimates(Layout::Blocked, &stream, shape);
        println!(
            "k = {hashes}, {distinct} pages: wrong estimates: standard {standard:.6}, blocked {blocked:.6}"
        );
        // While it fills up, a filter errs less often than at the end.
        assert!(standard > 0.0 && standard < 0.001, "{standard}");
        assert!(blocked > standard && blocked < 0.003, "{blocked}");
    }
}

#[test]
fn sizes_follow_the_papers_formula() {
    // 20.4 counters (10.2 bytes) a key: HybridTier's k = 4 at 0.1 %; 28.5 with FreqTier's k = 3.
    for (hashes, counters) in [(4, 20.43), (3, 28.47)] {
        let shape = FilterShape::for_keys(1 << 20, 0.001, 4, hashes).expect("a valid shape");
        assert!(
            (shape.counters() as f64 / f64::from(1 << 20) - counters).abs() < 0.01,
            "{}",
            shape.counters()
        );
        assert_eq!(shape.bytes() as u64 * 2, shape.counters());
    }
    let odd = FilterShape::with_bytes(1_000_000, 8, 3).expect("a valid shape");
    assert_eq!((odd.blocks(), odd.bytes(), odd.hashes(), odd.width().bits()), (15625, 1_000_000, 3, 8));
    assert_eq!(odd.build(Layout::Blocked).expect("memory for a filter").bytes(), 1_000_000);
}

/// HybridTier, sections 4.2 and 4.4: base pages have 4-bit counters, huge pages 16-bit ones; the momentum
/// filter is 128 times smaller.
#[test]
fn hybridtier_s_two_filters_take_coalesced_batches() {
    for (bits, pages) in [(4, 100_000), (16, 20_000)] {
        let frequency = FilterShape::for_keys(pages, 0.001, bits, 4).expect("a valid shape");
        let momentum =
            FilterShape::with_bytes(frequency.bytes() as u64 / 128, bits, 4).expect("a valid shape");
        let exact = pages as f64 * 20.43 * f64::from(bits) / 8.0;
        let mut coalescer = Coalescer::default();
        let stream = testing::zipf(pages as u32, 0.9, 100_000, 6);
        let items = coalescer.coalesce(stream.iter().copied());
        for (shape, bytes) in [(frequency, exact), (momentum, exact / 128.0)] {
            let mut filter = shape.build(Layout::Blocked).expect("memory for a filter");
            assert_eq!(filter.bytes(), shape.bytes());
            assert!(
                (shape.bytes() as f64 - bytes).abs() < 128.0 + bytes / 1000.0,
                "{} {bytes}",
                shape.bytes()
            );
            let mut changes = Vec::new();
            filter.increase_batch(items, &mut changes);
            assert_eq!(changes.len(), items.len());
            for &(page, count) in items {
                assert!(filter.get(page) >= count.min(filter.maximum()), "{page}");
            }
        }
    }
}

#[test]
fn a_filter_type_takes_its_own_shapes_only() {
    let shape = FilterShape::with_bytes(4096, 4, 4).expect("a valid shape");
    let (mut typed, mut boxed) = (
        Filter::<Blocked, 4, 4>::new(shape).expect("memory for a filter"),
        shape.build(Layout::Blocked).expect("memory for a filter"),
    );
    for key in 0..3000 {
        assert_eq!(typed.increment(key % 700), boxed.increment(key % 700));
    }
    let error = Filter::<Blocked, 3, 8>::new(shape).expect_err("another shape").to_string();
    let expected = "a filter type of 3 hash functions and 8-bit counters cannot take a shape of 4 and 4";
    assert_eq!(error, expected);
}

#[test]
fn impossible_shapes_are_refused_in_one_line() {
    assert_eq!(FilterShape::with_bytes(64, 5, 4), Err(ShapeError::Bits(5)));
    assert_eq!(FilterShape::with_bytes(64, 4, 0), Err(ShapeError::Hashes(0)));
    assert_eq!(FilterShape::for_keys(64, 0.1, 4, 9), Err(ShapeError::Hashes(9)));
    for rate in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(FilterShape::for_keys(64, rate, 4, 4), Err(ShapeError::Rate(_))));
    }
    for bytes in [0, u64::MAX] {
        let error = FilterShape::with_bytes(bytes, 4, 4).expect_err("no such size").to_string();
        assert!(error.starts_with("a filter has 1 byte to 256 GiB"), "{error}");
    }
    assert!(matches!(FilterShape::for_keys(0, 0.1, 4, 4), Err(ShapeError::Size(_))));
    assert!(matches!(FilterShape::for_keys(u64::MAX, 0.1, 4, 4), Err(ShapeError::Size(_))));
}
