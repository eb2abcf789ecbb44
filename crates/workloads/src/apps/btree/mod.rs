//! `btree`: a B+-tree index of records, built in random order and then read at random.
//!
//! **Left out.** The second of an insertion's two descents (all hits), the temporary arrays of a split
//! (always the same lines), the generator's shared state, and the line that glibc leaves free after each key
//! array: these pages hold a fifth more than the original's.

mod slab;
mod tree;

use isotherm_core::{Bytes, parameters};

use self::slab::Slab;
use self::tree::{AHEAD, ARRAY, NODE, Tree};
use crate::{Built, Heap, Memory, ObjectSize, Program, Random, Token, Workload, paper, test};

/// Bytes of an element: key, counter, value and payload.
const ELEMENT: u64 = 64;
const VALUE: u64 = 16;
/// Bytes of a record: the element's address, a link, flags, a counter.
const RECORD: u64 = 32;
const COUNTER: u64 = 24;
/// Keys are this far apart.
const STRIDE: u64 = 2;
/// Keys that a leaf holds after insertions in random order (measured).
const KEYS_PER_LEAF: f64 = 3.70;
/// Nodes for each leaf, inner ones included (measured).
const NODES_PER_LEAF: f64 = 1.298;
/// Instructions of a lookup, the descent aside: two steps of the generator, the remainder, the sum.
const LOOKUP_INSTRUCTIONS: u32 = 60;

parameters! {
    struct Settings {
        /// Memory of elements, records and nodes; sets the number of records.
        footprint: Bytes = size(1 << 20, 1 << 42, "64M").source("ours: 420,000 records"),
        /// Lookups, over all threads.
        operations: u64 = count(1, 1 << 40, "4200k").unit("lookups").source("Jenga 3.1: ten for each record"),
        /// Threads that look up, in turn; one thread builds the tree.
        threads: u64 = count(1, 1024, "16")
            .source("ours: as the other workloads (NeoMem VI-A: 32; Jenga does not say)"),
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "btree",
    title: "random lookups in a B+-tree index of records",
    source: "Mitosis' btree, as run in Jenga 3.1 and NeoMem VI-A",
    object_size: ObjectSize::Small,
    objects: "32 to 64 bytes",
    hot_set_changes: false,
    hot_set: "stable: the upper levels of the tree",
    accesses: 159_481_198,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "4M"), ("operations", "40k")]),
        paper(
            "Jenga 3.1: 200 million records, 2 billion reads",
            "The size of Jenga's run.",
            &[("footprint", "30G"), ("operations", "2G")],
        ),
    ],
    reference_footprint: Some(Bytes(30 << 30)),
    reference_cache: Some(Bytes((55 << 20) / 2)),
    peak: 1.3,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

struct BTree {
    records: u64,
    lookups: u64,
    threads: u64,
    seed: u64,
}

/// Returns bytes that each record takes, its part of the nodes included.
fn bytes_per_record() -> f64 {
    (ELEMENT + RECORD) as f64 + (NODE + 2 * ARRAY) as f64 * NODES_PER_LEAF / KEYS_PER_LEAF
}

fn build(settings: Settings, seed: u64) -> Built {
    let records = (settings.footprint.0 as f64 / bytes_per_record()) as u64;
    Ok(Box::new(BTree { records, lookups: settings.operations, threads: settings.threads, seed }))
}

impl BTree {
    fn make_elements(&self, random: &mut Random, heap: &mut Heap, memory: &mut dyn Memory) -> u64 {
        let elements = heap.allocate(memory, self.records * ELEMENT, "btree elements");
        for index in 0..self.records {
            heap.set_word(elements + index * ELEMENT, index * STRIDE);
            heap.set_word(elements + index * ELEMENT + VALUE, 1);
        }
        memory.store_range(elements, self.records * ELEMENT, Token::NONE);
        for last in (1..self.records).rev() {
            if last % 1024 == 0 && memory.finished() {
                break;
            }
            let (here, there) = (elements + last * ELEMENT, elements + random.below(last + 1) * ELEMENT);
            let (first, token) = heap.load(memory, here, Token::NONE);
            let (second, other) = heap.load(memory, there, Token::NONE);
            heap.store(memory, here, second, other);
            heap.store(memory, there, first, token);
            memory.compute(LOOKUP_INSTRUCTIONS / 2);
        }
        elements
    }

    /// Builds the tree; false if the memory has seen enough before it was done.
    fn load(&self, tree: &mut Tree, random: &mut Random, heap: &mut Heap, memory: &mut dyn Memory) -> bool {
        let elements = self.make_elements(random, heap, memory);
        let mut records = Slab::new(RECORD, "btree record slab");
        for index in 0..self.records {
            if index % 1024 == 0 && memory.finished() {
                return false;
            }
            if index.is_multiple_of(AHEAD as u64) {
                let batch = index..self.records.min(index + AHEAD as u64);
                let keys: Vec<u64> = batch.map(|index| heap.word(elements + index * ELEMENT)).collect();
                tree.read_ahead(&keys, heap, memory);
            }
            let element = elements + index * ELEMENT;
            let key = heap.load(memory, element, Token::NONE).0;
            let record = records.allocate(heap, memory);
            heap.store(memory, record, element, Token::NONE);
            tree.insert(key, record, heap, memory);
        }
        true
    }
}

/// Looks `key` up, counts that in its record and reads its element; returns the element's value.
fn look_up(tree: &Tree, key: u64, heap: &mut Heap, memory: &mut dyn Memory) -> u64 {
    memory.compute(LOOKUP_INSTRUCTIONS);
    let Some((record, token)) = tree.find(key, heap, memory) else { return 0 };
    let (element, token) = heap.load(memory, record, token);
    let count = heap.word(record + COUNTER) + 1;
    heap.store(memory, record + COUNTER, count, token);
    heap.load(memory, element + VALUE, token).0
}

impl Program for BTree {
    fn footprint(&self) -> Bytes {
        let nodes = (self.records as f64 * NODES_PER_LEAF / KEYS_PER_LEAF) as u64;
        let slabs = [self.records * RECORD, nodes * NODE].map(|bytes| bytes.next_multiple_of(slab::SLAB));
        Bytes(self.records * ELEMENT + nodes * 2 * ARRAY + slabs.iter().sum::<u64>())
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let mut random = Random::new(self.seed);
        let mut heap = Heap::new(self.footprint().0 + self.footprint().0 / 16 + slab::SLAB);
        let mut tree = Tree::new();
        memory.thread(0);
        if !self.load(&mut tree, &mut random, &mut heap, memory) {
            return;
        }
        let mut sum = 0;
        let mut keys = Vec::with_capacity(AHEAD);
        for first in (0..self.lookups).step_by(AHEAD) {
            if first % 1024 == 0 && memory.finished() {
                return;
            }
            let batch = first..self.lookups.min(first + AHEAD as u64);
            keys.clear();
            keys.extend(batch.clone().map(|_| random.below(self.records * STRIDE)));
            tree.read_ahead(&keys, &heap, memory);
            for (lookup, &key) in batch.zip(&keys) {
                memory.thread((lookup % self.threads) as u16);
                sum += look_up(&tree, key, &mut heap, memory);
            }
        }
        std::hint::black_box(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn every_other_key_is_found_with_its_element_and_the_lookup_is_counted() {
        let program = BTree { records: 5000, lookups: 0, threads: 1, seed: 1 };
        let (mut memory, mut heap, mut tree) = (CountingMemory::default(), Heap::new(4 << 20), Tree::new());
        assert!(program.load(&mut tree, &mut Random::new(1), &mut heap, &mut memory));
        for key in 0..10_000 {
            assert_eq!(look_up(&tree, key, &mut heap, &mut memory), u64::from(key % 2 == 0));
            let Some((record, _)) = tree.find(key, &heap, &mut memory) else { continue };
            assert_eq!(heap.word(record + COUNTER), 1);
            assert_eq!(heap.word(heap.word(record)), key, "the record names the element of its key");
        }
    }

    #[test]
    fn small_objects_are_allocated_one_by_one_at_sites_of_their_own() {
        let mut memory = CountingMemory::default();
        WORKLOAD.build(&WORKLOAD.parameters(), 1).map(drop).expect("valid defaults");
        Box::new(BTree { records: 5000, lookups: 1, threads: 1, seed: 1 }).run(&mut memory);
        let of = |site| memory.allocations().iter().filter(|found| found.context == site).count() as f64;
        assert_eq!(of("btree elements"), 1.0);
        let (leaves, inner) = (of("btree leaf keys"), of("btree inner pointers"));
        assert!((5000.0 / leaves - KEYS_PER_LEAF).abs() < 0.1, "{leaves}");
        assert!((1.0 + inner / leaves - NODES_PER_LEAF).abs() < 0.02, "{inner}");
    }
}
