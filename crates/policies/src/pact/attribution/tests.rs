use isotherm_core::{Nanos, PageId};

use super::*;

fn model() -> Model {
    Model { k: 200.0, most_parallelism: 16.0, frequency: false }
}

fn counters(tiers: &[(u64, u64, u64)]) -> Counters {
    let tier = |&(load_misses, load_occupancy, load_busy): &(u64, u64, u64)| TierCounters {
        load_misses,
        load_occupancy,
        load_busy,
        ..TierCounters::default()
    };
    Counters { tiers: tiers.iter().map(tier).collect(), ..Counters::default() }
}

fn sample(page: u32, tier: u8, exposed: u32) -> Sample {
    Sample {
        time: Nanos(0),
        page: PageId(page),
        weight: 400,
        latency: 190,
        exposed,
        tier: TierId(tier),
        operation: Operation::Load,
    }
}

fn batch(samples: &[Sample], tiers: &[(u64, u64, u64)]) -> SampleBatch {
    SampleBatch { samples: samples.to_vec(), counters: counters(tiers), ..SampleBatch::default() }
}

fn slow(weight: Weight) -> Attribution {
    Attribution::new(weight, TierId(1), model())
}

#[test]
fn stalls_are_shared_by_samples_of_the_slow_tier() {
    let mut window = slow(Weight::Accesses);
    let samples = [sample(7, 1, 0), sample(3, 1, 0), sample(7, 1, 0), sample(9, 0, 0), sample(3, 1, 0)];
    // 1000 misses, 4 in flight: 50 us of stall.
    window.observe(&batch(&samples, &[(500, 1000, 1000), (1000, 40_000, 10_000)]));
    assert_eq!(window.close(), [(3, 25_000.0), (7, 25_000.0)]);
    assert_eq!(window.parallelism, 4.0);
    window.observe(&batch(&[sample(5, 1, 0)], &[(500, 1000, 1000), (1100, 50_000, 20_000)]));
    assert_eq!(window.close(), [(5, 100.0 * 200.0)], "the window's counters, not the run's");
}

#[test]
fn stores_count_for_nothing() {
    let mut window = slow(Weight::Accesses);
    let store = Sample { operation: Operation::Store, ..sample(1, 1, 0) };
    window.observe(&batch(&[store, sample(2, 1, 0)], &[(0, 0, 0), (10, 100, 100)]));
    assert_eq!(window.close(), [(2, 2000.0)]);
}

#[test]
fn latencies_weigh_where_they_are_asked_for() {
    let samples = [sample(1, 1, 300), sample(2, 1, 100), sample(3, 1, 0)];
    let tiers = [(0, 0, 0), (10, 100, 100)];
    let shares = |weight| {
        let mut window = slow(weight);
        window.observe(&batch(&samples, &tiers));
        window.close().iter().map(|update| update.1).collect::<Vec<_>>()
    };
    assert_eq!(shares(Weight::Exposed), [1500.0, 500.0, 0.0]);
    let even = shares(Weight::Latency);
    assert!(even.iter().all(|share| (share - 2000.0 / 3.0).abs() < 0.1), "{even:?}");
}

#[test]
fn windows_with_wrong_counters_are_rejected() {
    let good = [(0, 0, 0), (10, 100, 100)];
    let rejected = |tiers: &[(u64, u64, u64)], multiplexed| {
        let mut window = slow(Weight::Accesses);
        window.observe(&batch(&[], &good));
        window.close();
        let mut batch = batch(&[sample(1, 1, 0)], tiers);
        batch.counters.multiplexed = multiplexed;
        window.observe(&batch);
        let nothing = window.close().is_empty();
        assert_eq!(nothing, window.rejected == 1);
        nothing
    };
    let next = [(0, 0, 0), (20, 200, 200)];
    assert!(!rejected(&next, false));
    assert!(rejected(&next, true), "multiplexed");
    assert!(rejected(&[(0, 0, 0), (20, 100, 100)], false), "misses, and nothing in flight");
    assert!(rejected(&[(0, 0, 0), (5, 200, 200)], false), "backwards");
    assert!(rejected(&[(0, 0, 0)], false), "no slow tier");
}

#[test]
fn farther_tiers_have_a_k_in_proportion_to_their_latency() {
    let mut window = slow(Weight::Accesses);
    window.observe(&batch(
        &[sample(1, 1, 0), sample(2, 2, 0)],
        &[(0, 0, 0), (10, 1000, 1000), (10, 3000, 3000)],
    ));
    assert_eq!(window.close(), [(1, 2000.0), (2, 6000.0)]);
}

#[test]
fn the_frequency_variant_counts_samples() {
    let mut window = Attribution::new(Weight::Accesses, TierId(1), Model { frequency: true, ..model() });
    let samples = [sample(7, 1, 0), sample(3, 1, 0), sample(7, 1, 0)];
    window.observe(&batch(&samples, &[(0, 0, 0), (10, 100, 100)]));
    assert_eq!(window.close(), [(3, 1.0), (7, 2.0)]);
}
