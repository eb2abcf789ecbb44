//! `xgboost`: training of boosted trees by histograms on a log of clicks.
//!
//! Threads take blocks of 256 (histograms) and 2,048 rows (partitions) in turn; the leaves' row sets update
//! the margins, so no tree is walked. Quantiles come from the first 20,000 rows. A thread's copy of a
//! histogram stays in its core's cache (20 KB here, 160 KB there): only the node's is reported.

mod data;
mod tree;

use isotherm_core::{Bytes, parameters};

use self::data::{Data, FEATURES, row_bytes};
use self::tree::State;
use crate::{Built, Memory, ObjectSize, Program, Workload, XEON_4314, paper, test};

parameters! {
    struct Settings {
        /// Memory of the data and the training; the rows follow from it.
        footprint: Bytes = size(2 << 20, 1 << 42, "128M")
            .source("ours: 270,000 rows; FreqTier Table I, HybridTier Table 2: 248 GB"),
        /// Boosting rounds, a tree each.
        operations: u64 = count(1, 1 << 40, "12").unit("rounds").source("ours; FreqTier VI-C: 400"),
        /// Depth of a tree.
        depth: u64 = count(1, 16, "6").unit("levels").source("XGBoost's default (max_depth)"),
        /// Bins of a feature, at most.
        bins: u64 = count(2, 254, "32").unit("a feature")
            .source("ours: a histogram stays small beside a node's rows; XGBoost's max_bin: 256"),
        /// Threads; blocks of rows go to them in turn.
        threads: usize = count(1, 256, "16").source("FreqTier VI-C, HybridTier 5.3"),
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "xgboost",
    title: "boosted trees by histograms on a log of clicks",
    source: "XGBoost (tree_method=hist) on Criteo's click logs, as run by FreqTier VI-C and HybridTier 5.3",
    object_size: ObjectSize::Large,
    objects: "matrices of bins, arrays by row; histograms of 20 KB",
    hot_set_changes: true,
    hot_set: "by level: all rows, then half of them; columns of the splits; the input pages go cold",
    accesses: 53_895_073,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "4M"), ("operations", "2"), ("depth", "4"), ("bins", "16")]),
        paper(
            "FreqTier Table I, VI-C: 248 GB, 400 rounds",
            "The footprint and rounds of the paper; 254 bins, one less than a byte tells from a missing value.",
            &[("footprint", "248G"), ("operations", "400"), ("bins", "254")],
        ),
    ],
    reference_footprint: Some(Bytes(248 << 30)),
    reference_cache: Some(XEON_4314),
    peak: 1.15,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

struct XgBoost {
    settings: Settings,
    histograms: u64,
    rows: usize,
    seed: u64,
}

fn build(settings: Settings, seed: u64) -> Built {
    // Nodes of the last level but one and the two children that are being made.
    let histograms = (1 << (settings.depth - 1)) + 2;
    let histograms = histograms * settings.bins * FEATURES as u64 * 16;
    let left = settings.footprint.0.saturating_sub(histograms);
    let rows = (left as f64 / row_bytes()) as usize;
    if rows < 1000 {
        return Err(format!(
            "footprint leaves {rows} rows; expected 1,000, with less depth or bins for example"
        ));
    }
    Ok(Box::new(XgBoost { settings, histograms, rows, seed }))
}

impl Program for XgBoost {
    fn footprint(&self) -> Bytes {
        Bytes((self.rows as f64 * row_bytes()) as u64 + self.histograms)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let Settings { operations: rounds, depth, bins, threads, .. } = self.settings;
        let data = Data::new(self.rows, bins as usize, self.seed, memory);
        let mut state = State::new(self.rows, threads, memory);
        for _ in 0..rounds {
            if memory.finished() {
                return;
            }
            state.differentiate(&data, memory);
            state.grow(&data, depth, memory);
        }
    }
}
