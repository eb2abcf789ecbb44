//! `flexkvs`: a key-value store as a log of items, with a contiguous hot set that moves.
//!
//! **Left out.** The network, responses (they stay in the cache), segment cleaning (nothing is overwritten),
//! and parallel loading: one thread loads, so that a range of keys is a range of the log. The number of
//! buckets is unpublished; here the power of two that gives 1.25 to 2.5 items for each.

mod store;

use isotherm_core::{Bytes, parameters};

use self::store::{BUCKET, HEADER, KEY, SEGMENT, Store};
use crate::{Built, Memory, ObjectSize, Probability, Program, Random, Workload, paper, test};

/// Items for each two buckets, at most.
const ITEMS_PER_BUCKET_PAIR: u64 = 5;

parameters! {
    struct Settings {
        /// Memory of items and hash table; sets the number of items.
        footprint: Bytes = size(1 << 20, 1 << 42, "128M").source("ours: 120,000 items"),
        /// Reads, over all threads.
        operations: u64 = count(1, 1 << 40, "5M").unit("reads")
            .source("ours: a run of seconds (Jenga Fig. 3: 100 s)"),
        /// Size of a value; a multiple of 8.
        value: Bytes = size(8, 1 << 20, "1K")
            .source("kvsbench's usual setting; neither HeMem's nor Jenga's text gives it"),
        /// Share of reads that go to the hot items.
        hot_share: f64 = number(0.0, 1.0, "0.9").source("Jenga 3.1"),
        /// Share of the items that are hot; they lie together.
        hot_items: f64 = number(0.001, 0.5, "0.2").unit("of the items")
            .source("Jenga 3.1: 20 % of the elements, 4 GB"),
        /// How often the hot set moves, at equal distances in the run.
        moves: u64 = count(0, 1000, "1").source("Jenga 3.1: midway through its run"),
        /// Threads that read, in turn; one thread loads.
        threads: u64 = count(1, 1024, "16").source("ours: as the other workloads (Jenga does not say)"),
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "flexkvs",
    title: "a log-structured key-value store with a contiguous hot set that moves",
    source: "FlexKVS and kvsbench, as run in Jenga 3.1",
    object_size: ObjectSize::Large,
    objects: "1 KB items in 2 MiB segments",
    hot_set_changes: true,
    hot_set: "contiguous fifth, moves at mid-run",
    accesses: 110_746_346,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "8M"), ("operations", "20k")]),
        paper(
            "Jenga 3.1: 20 % of the elements are 4 GB",
            "The footprint of Jenga's run.",
            &[("footprint", "20G"), ("operations", "800M")],
        ),
    ],
    reference_footprint: Some(Bytes(20 << 30)),
    reference_cache: Some(Bytes((55 << 20) / 2)),
    peak: 1.15,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

const AHEAD: u64 = 8;

struct FlexKvs {
    items: u64,
    buckets: u64,
    value: u64,
    reads: u64,
    hot_items: u64,
    hot_share: Probability,
    moves: u64,
    threads: u64,
    seed: u64,
}

fn build(settings: Settings, seed: u64) -> Built {
    let value = settings.value.0.next_multiple_of(8);
    let items = settings.footprint.0 / (HEADER + KEY + value + BUCKET / 2);
    if items < 10 {
        return Err("footprint holds fewer than ten items; expected a larger one or a smaller value".into());
    }
    Ok(Box::new(FlexKvs {
        items,
        buckets: (items * 2 / ITEMS_PER_BUCKET_PAIR).next_power_of_two(),
        value,
        reads: settings.operations,
        hot_items: ((items as f64 * settings.hot_items) as u64).max(1),
        hot_share: Probability::new(settings.hot_share),
        moves: settings.moves,
        threads: settings.threads,
        seed,
    }))
}

impl FlexKvs {
    /// Returns the first hot key at a read: each move goes to the next range, and from the last to the first.
    fn hot_start(&self, read: u64) -> u64 {
        let phase = (u128::from(read) * u128::from(self.moves + 1) / u128::from(self.reads)) as u64;
        phase % (self.items / self.hot_items) * self.hot_items
    }

    fn draw(&self, read: u64, random: &mut Random) -> u64 {
        let start = self.hot_start(read);
        if random.chance(self.hot_share) {
            return start + random.below(self.hot_items);
        }
        let cold = random.below(self.items - self.hot_items);
        if cold < start { cold } else { cold + self.hot_items }
    }
}

impl Program for FlexKvs {
    fn footprint(&self) -> Bytes {
        let item = HEADER + KEY + self.value;
        Bytes(self.items.div_ceil((SEGMENT / item).max(1)) * SEGMENT + self.buckets * BUCKET)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        memory.thread(0);
        let mut store = Store::new(self.buckets, self.value, self.footprint().0, memory);
        for key in 0..self.items {
            if key % 256 == 0 && memory.finished() {
                return;
            }
            store.put(key, key, memory);
        }
        let (mut random, mut sum) = (Random::new(self.seed), 0u64);
        for first in (0..self.reads).step_by(AHEAD as usize) {
            if first % 256 == 0 && memory.finished() {
                return;
            }
            let batch = first..self.reads.min(first + AHEAD);
            let keys: Vec<u64> = batch.clone().map(|read| self.draw(read, &mut random)).collect();
            store.read_ahead(&keys, memory);
            for (read, key) in batch.zip(keys) {
                memory.thread((read % self.threads) as u16);
                sum = sum.wrapping_add(store.get(key, memory).unwrap_or(0));
            }
        }
        std::hint::black_box(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_tenths_of_reads_go_to_a_fifth_that_is_another_one_after_the_turn() {
        let flexkvs = FlexKvs {
            items: 1000,
            buckets: 512,
            value: 64,
            reads: 100_000,
            hot_items: 200,
            hot_share: Probability::new(0.9),
            moves: 1,
            threads: 1,
            seed: 1,
        };
        let mut random = Random::new(1);
        let keys: Vec<u64> = (0..100_000).map(|read| flexkvs.draw(read, &mut random)).collect();
        let share = |keys: &[u64], range: std::ops::Range<u64>| {
            keys.iter().filter(|key| range.contains(key)).count() as f64 / keys.len() as f64
        };
        let (before, after) = keys.split_at(50_000);
        assert!((share(before, 0..200) - 0.9).abs() < 0.01);
        assert!((share(after, 200..400) - 0.9).abs() < 0.01);
        assert!((share(after, 0..200) - 0.025).abs() < 0.005);
        assert!(keys.iter().all(|&key| key < 1000));
    }
}
