//! The memory that HybridTier takes, from the real structures, beside the paper's Table 4.

use super::*;

/// The paper's footprint of CacheLib (Table 2).
const FOOTPRINT: u64 = 267_000_000_000;
const PAGE: u64 = 4096;

/// HybridTier over `total` bytes of which `fast` are in the fast tier.
fn build(total: u64, fast: u64, changes: &[(&str, &str)]) -> HybridTier {
    let setup = Setup { pages: (total / PAGE) as usize, fast: Pages(fast / PAGE), ..setup() };
    HybridTier::new(&parameters(changes), &setup).expect("it fits")
}

/// Per cent of `total`.
fn percent(bytes: usize, total: u64) -> f64 {
    100.0 * bytes as f64 / total as f64
}

#[test]
fn table_4_in_closed_form() {
    // A fast page takes 20.4 counters of half a byte, and 1/128 of that for its momentum.
    let per_page = 4.0 / -(1.0 - 0.001f64.powf(0.25)).ln() * 0.5 * (1.0 + 1.0 / 128.0);
    for (slow, printed, ours) in [(16, 0.050, 0.0148), (8, 0.097, 0.0280), (4, 0.192, 0.0503)] {
        let fast = FOOTPRINT / (1 + slow);
        let filters = percent(build(FOOTPRINT, fast, &[]).hotness.tracker_bytes(), FOOTPRINT);
        let closed = 100.0 * per_page / PAGE as f64 / (1 + slow) as f64;
        assert!((filters / closed - 1.0).abs() < 1e-4, "1:{slow}: {filters} {closed}");
        assert!((filters - ours).abs() < 0.0001, "1:{slow}: {filters}");
        assert!(filters < printed / 2.0);
    }
}

/// The paper's machine: 512 GB slow, and a filter rounded up to section 6.4.2's 128 MB for 1:16.
#[test]
fn twice_the_stated_filter_is_what_table_4_prints() {
    let slow = 512u64 << 30;
    for (ratio, printed) in [(16, 0.050), (8, 0.097), (4, 0.192)] {
        let [(_, filter), _] =
            build(slow / 4, slow / ratio, &[("filter_rounding", "power-of-two")]).hotness.shapes();
        assert_eq!(filter as u64, (128 << 20) * 16 / ratio);
        let twice = percent(2 * filter, slow);
        assert!((twice / printed - 1.0).abs() < 0.03, "1:{ratio}: {twice} for {printed}");
    }
}

/// All that is allocated, at its largest: a full batch of distinct pages, and as many marks as there may be;
/// by default and with every fast page marked.
#[test]
fn all_structures_at_their_largest_stay_below_table_4() {
    let mut seen = Vec::new();
    for (slow, printed) in [(16, 0.050), (8, 0.097), (4, 0.192)] {
        let fast = FOOTPRINT / (1 + slow);
        let largest = |bound| {
            let mut policy = build(FOOTPRINT, fast, &[("second_chances", bound)]);
            let mut view = machine();
            let batch = batch_of(&view, &(0..100_000).collect::<Vec<_>>(), (0, 0));
            turn(&mut policy, &mut view, &batch, Nanos(0));
            (0..(fast / PAGE) as u32).for_each(|page| policy.chances.mark(PageId(page), 9, Nanos(0)));
            percent(policy.metadata().0 as usize, FOOTPRINT)
        };
        seen.push((largest("10k"), largest("4G")));
        assert!(
            seen.last().is_some_and(|&(bounded, unbounded)| bounded < unbounded && unbounded < printed),
            "{seen:?}"
        );
    }
    let expected = [(0.0200, 0.0325), (0.0331, 0.0582), (0.0554, 0.1057)];
    for (seen, expected) in seen.iter().zip(expected) {
        assert!(
            (seen.0 - expected.0).abs() < 0.0003 && (seen.1 - expected.1).abs() < 0.0003,
            "{seen:?} {expected:?}"
        );
    }
}

#[test]
fn huge_pages_take_128_times_less() {
    let fast = FOOTPRINT / 9;
    let base = build(FOOTPRINT, fast, &[]).hotness.tracker_bytes();
    let huge = Setup {
        pages: (FOOTPRINT >> 21) as usize,
        fast: Pages(fast >> 21),
        page_size: PageSize::Huge,
        ..setup()
    };
    let huge = HybridTier::new(&parameters(&[]), &huge).expect("it fits").hotness.tracker_bytes();
    assert!((base as f64 / huge as f64 / 128.0 - 1.0).abs() < 0.02, "section 4.4: {base} {huge}");
}
