//! `silo`: an in-memory transactional store under YCSB.
//!
//! **Left out.** Masstree's permutation word (keys arrive in order) and key suffixes, epochs and logging,
//! snapshots and version chains (updates write in place), Silo's arenas by size (allocations follow each
//! other in time, as with Jenga's allocator), and transaction buffers, which stay in the core's cache. The
//! load commits each key at once instead of in batches. As in the benchmark, aborted ones are not retried.

mod transaction;
pub(crate) mod tree;
mod ycsb;

use isotherm_core::parameters::Preset;
use isotherm_core::{Bytes, parameters};

use self::transaction::{Operation, Store, TUPLE, Transaction};
use self::tree::{NODE, WIDTH};
use self::ycsb::{Core, Distribution, Ycsb};
use crate::{Built, Memory, ObjectSize, Program, Random, Workload, paper, test};

const AHEAD: u64 = tree::AHEAD as u64;
/// Instructions of a transaction beside index and commit: drawing the key, setting up, copying the value.
const TRANSACTION_INSTRUCTIONS: u32 = 400;

parameters! {
    struct Settings {
        /// Memory of tuples and index; sets the number of keys.
        footprint: Bytes = size(1 << 20, 1 << 42, "64M").source("ours: 445,000 keys"),
        /// Transactions, over all threads.
        operations: u64 = count(1, 1 << 40, "5M").unit("transactions")
            .source("ours: eleven for each key, a run of seconds (Jenga 3.1: 36)"),
        /// YCSB's core workload.
        ycsb: Core = choice("c")
            .source("HybridTier Table 2, Jenga 3.1, NeoMem VI-A"),
        /// How keys are drawn; zipfian: constant 0.99, scrambled.
        distribution: Distribution = choice("uniform")
            .source("Silo's benchmark, as run by Memtis; YCSB's own default is the Zipfian"),
        /// Threads that run transactions, in turn; one thread loads.
        threads: u64 = count(1, 1024, "16").source("HybridTier 5.3"),
    }
}

macro_rules! ycsb {
    ($core:literal, $help:literal) => {
        Preset {
            name: concat!("ycsb-", $core),
            source: "YCSB core workloads (Cooper et al., SoCC 2010)",
            help: $help,
            values: &[("ycsb", $core), ("distribution", "zipfian")],
        }
    };
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "silo",
    title: "an in-memory transactional store under YCSB",
    source: "Silo and its YCSB benchmark, as run in HybridTier 5.3, Jenga 3.1 and NeoMem VI-A",
    object_size: ObjectSize::Small,
    objects: "128-byte tuples, 320-byte index nodes",
    hot_set_changes: false,
    hot_set: "stable: the index; with zipfian the popular keys",
    accesses: 131_819_944,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "4M"), ("operations", "40k")]),
        paper(
            "Jenga 3.1: 70 million keys, 2.5 billion reads (HybridTier Table 2: 208 GB)",
            "The size of Jenga's run.",
            &[("footprint", "10550M"), ("operations", "2500M")],
        ),
        ycsb!("a", "Half updates, Zipfian."),
        ycsb!("b", "5 % updates, Zipfian."),
        ycsb!("c", "Reads only, Zipfian."),
        ycsb!("d", "5 % insertions, the latest are read."),
        ycsb!("e", "95 % scans, 5 % insertions, Zipfian."),
        ycsb!("f", "Half read-modify-writes, Zipfian."),
    ],
    reference_footprint: Some(Bytes(10_550 << 20)),
    reference_cache: Some(Bytes((55 << 20) / 2)),
    peak: 1.4,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

struct Silo {
    settings: Settings,
    keys: u64,
    seed: u64,
}

/// Returns bytes that each key takes, its part of the full index nodes included.
fn bytes_per_key() -> f64 {
    TUPLE as f64 + NODE as f64 / (WIDTH as f64 - 1.0)
}

fn build(settings: Settings, seed: u64) -> Built {
    let keys = (settings.footprint.0 as f64 / bytes_per_key()) as u64;
    Ok(Box::new(Silo { settings, keys, seed }))
}

impl Program for Silo {
    fn footprint(&self) -> Bytes {
        let inserted = self.settings.operations * self.settings.ycsb.insertions() / 100;
        Bytes(((self.keys + inserted) as f64 * bytes_per_key()) as u64)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let Settings { operations: transactions, threads, ycsb, distribution, .. } = self.settings;
        memory.thread(0);
        let mut store = Store::new(self.footprint().0 + self.footprint().0 / 8, memory);
        for key in 0..self.keys {
            if key % 1024 == 0 && memory.finished() {
                return;
            }
            let transaction = store.execute(Operation::Insert(key), key, memory);
            store.commit(&transaction, memory);
            store.recycle(transaction);
        }
        let mut random = Random::new(self.seed);
        let mut ycsb = Ycsb::new(ycsb, distribution, self.keys);
        let mut pending: Vec<Option<Transaction>> = (0..threads).map(|_| None).collect();
        let (mut coming, mut sum) = (Vec::new(), 0u64);
        // One round more than there are transactions: the last ones commit in it.
        for turn in 0..transactions + threads {
            if turn % 1024 == 0 && memory.finished() {
                return;
            }
            let thread = turn % threads;
            memory.thread(thread as u16);
            if let Some(transaction) = pending[thread as usize].take() {
                sum = sum.wrapping_add(transaction.sum);
                store.commit(&transaction, memory);
                store.recycle(transaction);
            }
            if turn < transactions {
                memory.compute(TRANSACTION_INSTRUCTIONS);
                let place = (turn % AHEAD) as usize;
                if place == 0 {
                    let batch = turn..transactions.min(turn + AHEAD);
                    coming.clear();
                    coming.extend(batch.map(|_| ycsb.next(&mut random)));
                    store.read_ahead(&coming, memory);
                }
                pending[thread as usize] = Some(store.execute(coming[place], turn, memory));
            }
        }
        std::hint::black_box(sum);
    }
}
