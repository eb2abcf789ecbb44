//! Every tracker's promises on random streams, against a plain model.

use std::collections::HashMap;

use isotherm_trackers::{Change, Coalescer, DenseTable, FilterShape, Layout, Tracker};
use proptest::prelude::*;

const LAYOUTS: [Layout; 2] = [Layout::Standard, Layout::Blocked];

fn filter(layout: Layout, bits: u32, hashes: u32, bytes: u64) -> Box<dyn Tracker> {
    FilterShape::with_bytes(bytes, bits, hashes)
        .expect("a valid shape")
        .build(layout)
        .expect("memory for a filter")
}

/// Returns every kind of tracker; the filters are small enough for their keys to collide.
fn trackers(bits: u32, hashes: u32, bytes: u64) -> Vec<Box<dyn Tracker>> {
    vec![
        filter(Layout::Standard, bits, hashes, bytes),
        filter(Layout::Blocked, bits, hashes, bytes),
        Box::new(DenseTable::<u8>::new(10)),
        Box::new(DenseTable::<u16>::new(0)),
        Box::new(DenseTable::<u32>::new(5000)),
    ]
}

fn shapes() -> impl Strategy<Value = (u32, u32, u64)> {
    (prop::sample::select(vec![2, 4, 8, 16]), 1u32..=8, 1u64..2000)
}

fn streams() -> impl Strategy<Value = Vec<(u32, u32)>> {
    prop::collection::vec((0u32..400, prop_oneof![Just(1), 0u32..40, Just(u32::MAX)]), 0..600)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_estimate_is_never_below_the_true_count((bits, hashes, bytes) in shapes(), stream in streams()) {
        for mut tracker in trackers(bits, hashes, bytes) {
            let mut truth = HashMap::new();
            for &(key, amount) in &stream {
                let count: &mut u32 = truth.entry(key).or_default();
                *count = count.saturating_add(amount).min(tracker.maximum());
                let before = tracker.get(key);
                let change = tracker.increase(key, amount);
                prop_assert_eq!(change.before, before);
                prop_assert_eq!(change.after, before.saturating_add(amount).min(tracker.maximum()));
                prop_assert_eq!(tracker.get(key), change.after);
            }
            for (&key, &count) in &truth {
                prop_assert!(tracker.get(key) >= count, "{key}: {} < {count}", tracker.get(key));
            }
        }
    }

    #[test]
    fn ageing_halves_every_estimate((bits, hashes, bytes) in shapes(), stream in streams()) {
        for mut tracker in trackers(bits, hashes, bytes) {
            tracker.increase_batch(&stream, &mut Vec::new());
            let before: Vec<u32> = (0..500).map(|key| tracker.get(key)).collect();
            tracker.age();
            for (key, count) in (0..500).zip(before) {
                prop_assert_eq!(tracker.get(key), count / 2);
            }
        }
    }

    #[test]
    fn batches_give_what_single_calls_give((bits, hashes, bytes) in shapes(), stream in streams()) {
        for (mut batch, mut single) in trackers(bits, hashes, bytes).into_iter().zip(trackers(bits, hashes, bytes)) {
            let (mut changes, mut counts) = (vec![Change::default(); 3], vec![7; 3]);
            batch.increase_batch(&stream, &mut changes);
            let expected: Vec<Change> = stream.iter().map(|&(key, amount)| single.increase(key, amount)).collect();
            prop_assert_eq!(changes, expected);
            let keys: Vec<u32> = (0..500).collect();
            batch.get_batch(&keys, &mut counts);
            let expected: Vec<u32> = keys.iter().map(|&key| single.get(key)).collect();
            prop_assert_eq!(counts, expected);
        }
    }

    #[test]
    fn an_increment_is_an_increase_by_one((bits, hashes, bytes) in shapes(), stream in streams()) {
        for (mut one, mut other) in trackers(bits, hashes, bytes).into_iter().zip(trackers(bits, hashes, bytes)) {
            for &(key, amount) in &stream {
                one.increase(key, amount.min(3));
                other.increase(key, amount.min(3));
                prop_assert_eq!(one.increment(key), other.increase(key, 1));
            }
            for key in 0..500 {
                prop_assert_eq!(one.get(key), other.get(key));
            }
        }
    }

    #[test]
    fn exact_tables_are_exact(stream in streams(), age_after in 0usize..600) {
        let (mut dense, mut truth) = (DenseTable::<u32>::new(0), HashMap::new());
        for (index, &(key, amount)) in stream.iter().enumerate() {
            let count: &mut u32 = truth.entry(key).or_default();
            *count = count.saturating_add(amount);
            dense.increase(key, amount);
            if index == age_after {
                truth.values_mut().for_each(|count| *count /= 2);
                dense.age();
            }
        }
        for key in 0..500 {
            let count = truth.get(&key).copied().unwrap_or(0);
            prop_assert_eq!(dense.get(key), count);
        }
    }

    #[test]
    fn coalescing_keeps_every_sample_and_the_order_of_first_appearance(
        batches in prop::collection::vec(prop::collection::vec(0u32..1000, 0..1500), 1..6)
    ) {
        let mut coalescer = Coalescer::default();
        for batch in batches {
            let mut expected: Vec<(u32, u32)> = Vec::new();
            let mut position = HashMap::new();
            for &key in &batch {
                let index = *position.entry(key).or_insert(expected.len());
                if index == expected.len() {
                    expected.push((key, 0));
                }
                expected[index].1 += 1;
            }
            prop_assert_eq!(coalescer.coalesce(batch.iter().copied()), &expected[..]);
        }
    }

    #[test]
    fn a_coalesced_batch_gives_what_its_samples_give(keys in prop::collection::vec(0u32..60, 0..300)) {
        // The table has no collisions; with collisions, conservative update depends on the order of the
        // increases.
        let (mut coalesced, mut single) = (DenseTable::<u8>::new(60), DenseTable::<u8>::new(60));
        coalesced.increase_batch(Coalescer::default().coalesce(keys.iter().copied()), &mut Vec::new());
        keys.iter().for_each(|&key| { single.increment(key); });
        for key in 0..60 {
            prop_assert_eq!(coalesced.get(key), single.get(key));
        }
    }
}

#[test]
fn an_increase_never_lowers_and_never_lifts_a_neighbour_above_the_key_itself() {
    for (layout, bits) in LAYOUTS.into_iter().flat_map(|layout| [2, 4, 8, 16].map(|bits| (layout, bits))) {
        let mut filter = filter(layout, bits, 4, 256);
        for round in 0..2000u32 {
            let before: Vec<u32> = (0..300).map(|key| filter.get(key)).collect();
            let raised = filter.increase(round % 300, 1 + round % 3).after;
            for (key, before) in (0..300).zip(before) {
                let now = filter.get(key);
                assert!(
                    now == before || (before < now && now <= raised),
                    "{layout:?} {bits}: {key} {before} {now}"
                );
            }
        }
    }
}

#[test]
fn counters_saturate_without_a_carry_into_the_next_one() {
    for (layout, bits) in LAYOUTS.into_iter().flat_map(|layout| [2, 4, 8, 16].map(|bits| (layout, bits))) {
        let mut tracker = filter(layout, bits, 3, 1 << 16);
        for amount in [u32::MAX, 1, u32::MAX] {
            assert_eq!(tracker.increase(7, amount).after, (1 << bits) - 1);
        }
        let touched = (0..10_000).filter(|&key| key != 7 && tracker.get(key) > 0).count();
        assert_eq!(touched, 0, "{layout:?}, {bits} bits: one key's three counters cover no other key");
    }
}
