//! DLRM's embedding bags: for each sample, rows of each table are looked up and summed.
//!
//! The tables are those of MLPerf's recommendation model (DLRM with Criteo's terabyte data set), each smaller
//! by the same factor, with as many look-ups in each. Ranks follow a power law and rows are a seeded
//! permutation of them, since their numbers are hashes.

use isotherm_core::parameters::Preset;
use isotherm_core::{Bytes, parameters};

use crate::{Memory, ObjectSize, Permutation, Program, Random, Token, Workload, mix, paper, test};

/// Rows of each table of MLPerf's model, without a limit on the largest.
const ROWS: [u64; 26] = [
    40_000_000, 39_060, 17_295, 7_424, 20_265, 3, 7_122, 1_543, 63, 40_000_000, 3_067_956, 405_282, 10,
    2_209, 11_938, 155, 4, 976, 14, 40_000_000, 40_000_000, 40_000_000, 590_152, 12_973, 108, 36,
];
/// Look-ups in each table for one sample.
const LOOKUPS: [u64; 26] =
    [3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1];
/// Bytes of a row: 128 numbers of four bytes.
const ROW: u64 = 512;
/// Instructions of a look-up beside its loads: the index, and an addition for each of eight vector registers.
const LOOKUP_INSTRUCTIONS: u32 = 12;

parameters! {
    struct Settings {
        /// Size of all tables.
        footprint: Bytes = size(1 << 20, 1 << 42, "64M")
            .source("ours; MLPerf's has 105 GB: preset paper"),
        /// Samples, over all threads.
        operations: u64 = count(1, 1 << 40, "150k").unit("samples")
            .source("ours: about 260 million loads of lines"),
        /// Exponent of the power law by which rows are looked up.
        alpha: f64 = number(0.0, 3.0, "1.1")
            .source("HugeCTR's data generator: 'medium'; 'long' is 0.9, 'short' 1.3"),
        /// Threads; they take turns sample by sample.
        threads: u64 = count(1, 1024, "16").source("ours: as many as the others have"),
    }
}

struct Dlrm {
    settings: Settings,
    tables: Vec<Table>,
    seed: u64,
}

struct Table {
    rows: u64,
    lookups: u64,
    ranks: PowerLaw,
    places: Permutation,
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "dlrm",
    title: "embedding bags of a recommendation model",
    source: "MLPerf's DLRM-DCNv2 (tables and look-ups), HugeCTR's data generator (power law)",
    object_size: ObjectSize::Large,
    objects: "rows of 512 bytes",
    hot_set_changes: false,
    hot_set: "scattered rows",
    accesses: 257_858_664,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "4M"), ("operations", "200")]),
        paper("MLPerf: DLRM-DCNv2", "All rows of MLPerf's tables.", &[("footprint", "104542509056")]),
        Preset {
            name: "long",
            source: "HugeCTR's data generator: alpha 0.9",
            help: "A long tail.",
            values: &[("alpha", "0.9")],
        },
        Preset {
            name: "short",
            source: "HugeCTR's data generator: alpha 1.3",
            help: "A short tail.",
            values: &[("alpha", "1.3")],
        },
    ],
    reference_footprint: None,
    reference_cache: None,
    peak: 0.0,
    builder: |parameters, seed| Ok(Box::new(Dlrm::new(Settings::read(parameters), seed))),
};

/// Ranks from 0 on, with a density of `(rank + 1)^-alpha`.
#[derive(Debug, Clone, Copy)]
struct PowerLaw {
    ranks: u64,
    alpha: f64,
}

impl PowerLaw {
    /// Draws a rank by the inverse of the distribution function.
    #[inline]
    fn rank(self, random: &mut Random) -> u64 {
        let (uniform, end, power) = (random.unit(), (self.ranks + 1) as f64, 1.0 - self.alpha);
        let drawn = if power.abs() < 1e-9 {
            end.powf(uniform)
        } else {
            ((end.powf(power) - 1.0) * uniform + 1.0).powf(1.0 / power)
        };
        (drawn as u64).clamp(1, self.ranks) - 1
    }
}

impl Dlrm {
    fn new(settings: Settings, seed: u64) -> Self {
        let all: u64 = ROWS.iter().sum();
        let factor = settings.footprint.0 as f64 / (all * ROW) as f64;
        let table = |(index, (&rows, lookups)): (usize, (&u64, u64))| {
            let rows = ((rows as f64 * factor) as u64).max(1);
            Table {
                rows,
                lookups,
                ranks: PowerLaw { ranks: rows, alpha: settings.alpha },
                places: Permutation::new(rows, mix(seed ^ index as u64)),
            }
        };
        let tables = ROWS.iter().zip(LOOKUPS).enumerate().map(table).collect();
        Self { settings, tables, seed }
    }
}

impl Program for Dlrm {
    fn footprint(&self) -> Bytes {
        Bytes(self.tables.iter().map(|table| table.rows * ROW).sum())
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let starts: Vec<u64> =
            self.tables.iter().map(|table| memory.allocate(table.rows * ROW, "dlrm table")).collect();
        for (table, &start) in self.tables.iter().zip(&starts) {
            memory.store_range(start, table.rows * ROW, Token::NONE);
        }
        let mut random = Random::new(self.seed);
        for sample in 0..self.settings.operations {
            memory.thread((sample % self.settings.threads) as u16);
            for (table, &start) in self.tables.iter().zip(&starts) {
                for _ in 0..table.lookups {
                    let row = table.places.at(table.ranks.rank(&mut random));
                    memory.compute(LOOKUP_INSTRUCTIONS);
                    memory.load_range(start + row * ROW, ROW, Token::NONE);
                }
            }
            if memory.finished() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_their_proportions_and_fill_the_footprint() {
        let mut parameters = WORKLOAD.parameters();
        parameters.set("footprint", "1G").expect("a size");
        let dlrm = Dlrm::new(Settings::read(&parameters), 1);
        let bytes = dlrm.footprint().0 as f64 / f64::from(1 << 30);
        assert!((0.99..1.01).contains(&bytes), "{bytes}");
        let [largest, third] = [0, 10].map(|table: usize| dlrm.tables[table].rows as f64);
        assert!((largest / third - 40.0 / 3.067_956).abs() < 0.01, "{largest} and {third} rows");
        assert_eq!(dlrm.tables.iter().map(|table| table.lookups).sum::<u64>(), 214);
    }

    #[test]
    fn ranks_follow_the_power_law() {
        for alpha in [0.9, 1.0, 1.1, 1.3] {
            let law = PowerLaw { ranks: 1000, alpha };
            let mut random = Random::new(7);
            let below = (0..1_000_000).filter(|_| law.rank(&mut random) < 9).count() as f64 / 1e6;
            let within = |end: f64| {
                if alpha == 1.0 { end.ln() } else { (end.powf(1.0 - alpha) - 1.0) / (1.0 - alpha) }
            };
            let expected = within(10.0) / within(1001.0);
            assert!((below - expected).abs() < 0.002, "{alpha}: {below}, expected {expected}");
        }
        let one = PowerLaw { ranks: 1, alpha: 1.1 };
        assert!((0..1000).all(|seed| one.rank(&mut Random::new(seed)) == 0));
    }
}
