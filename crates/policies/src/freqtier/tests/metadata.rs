//! The memory that FreqTier takes (section VII-C).

use isotherm_core::parameters::Parameters;

use super::*;

/// Bytes of 512 KiB perf rings for 16 cores with 2 counters each: the host's, counted here as the paper does.
const RINGS: u64 = 16 * 2 * (512 << 10);
/// The papers' footprint of CacheLib's CDN.
const FOOTPRINT: u64 = 267_000_000_000;

fn metadata(fast_bytes: u64, changes: &[(&str, &str)]) -> u64 {
    let pages = |bytes: u64| bytes / PageSize::Base.bytes().0;
    let setup = Setup { pages: pages(FOOTPRINT) as usize, fast: Pages(pages(fast_bytes)), ..setup() };
    let mut parameters = Parameters::new("freqtier", Settings::SPECS);
    changes.iter().for_each(|(key, text)| parameters.set(key, text).expect("valid"));
    let mut policy = FreqTier::new(&parameters, &setup).expect("it fits");
    // A full batch of distinct pages and a scan make every buffer as large as it gets.
    let mut view = machine();
    let batch = batch_of(&view, &(0..100_000).collect::<Vec<_>>(), (0, 0));
    turn(&mut policy, &mut view, &batch, Nanos(0));
    policy.metadata().0
}

#[test]
fn it_stays_below_0_04_percent_of_the_footprint_at_1_to_32() {
    // 1:32 of the footprint, and the paper's 16 GB of local DRAM for that ratio.
    for fast in [FOOTPRINT / 33, 16 << 30] {
        let bytes = metadata(fast, &[]) + RINGS;
        assert!((bytes as f64) < 0.0004 * FOOTPRINT as f64, "{bytes} bytes at {fast}");
        assert!(bytes < 100_000_000, "below the paper's 100 MB: {bytes}");
    }
}

#[test]
fn it_is_the_size_of_what_is_really_there() {
    let small = metadata(1 << 30, &[]);
    let larger = metadata(1 << 30, &[("filter_bytes", "64M")]);
    let filter = metadata(1 << 30, &[("filter_bytes", "1M")]);
    assert_eq!(larger - filter, 63 << 20);
    // 28.5 counters of 4 bits for each of 262,144 pages; the rest are the batch's buffers.
    let design = 28.47 * 0.5 * 262_144.0;
    assert!((small as f64 - (filter - (1 << 20)) as f64 - design).abs() < 0.001 * design, "{small}");
    assert!(filter - (1 << 20) >= 100_000 * 16, "the batch itself is counted");
}
