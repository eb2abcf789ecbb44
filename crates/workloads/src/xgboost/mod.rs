//! `xgboost`: training of boosted trees by histograms on a log of clicks.
//!
//! FreqTier (VI-C) trains XGBoost on part of Criteo's click logs for 400 rounds with 16 threads, HybridTier (5.3) the same.
//! **Kept.** XGBoost's `hist` method for sparse data with its defaults (depth 6, learning rate 0.3, logistic loss): the input
//! pages (8 bytes an entry), read for quantiles and bins and cold from then on; the matrix of global bins by row (4 bytes an
//! entry, with offsets) that histograms are built from; the matrix of bins by column (a byte a row and feature) that rows
//! are partitioned by; gradient pairs, margins, row numbers by node with a buffer. In each node the smaller child's
//! histogram is built and the other one subtracted; blocks of 256 (histograms) and 2,048 rows (partitions) go to the threads
//! in turn. Margins are updated through the leaves' row sets, so that no tree is walked.
//!
//! **Data.** 13 counts and 26 hashed categories of skewed popularity as in Criteo's logs, a sixth of them missing; clicks
//! depend on some of them. **Scale.** Rows shrink with the footprint, and bins from 256 to 32 a feature (`bins`), so that a
//! histogram stays small beside a node's rows. **Left out.** Each thread's copy of a histogram, which lies in its core's
//! cache (20 KB here, 160 KB there): only the node's is reported. Quantiles come from the first 20,000 rows.

mod data;
mod tree;

use isotherm_core::Bytes;
use isotherm_core::parameters::{Kind, Parameters, Preset, Spec};

use self::data::{Data, FEATURES, row_bytes};
use self::tree::State;
use crate::registry::{ObjectSize, Workload};
use crate::specs::{footprint, operations, paper, spec, test, threads};
use crate::{Memory, Program, WorkloadError};

const SPECS: &[Spec] = &[
    footprint(
        "128M",
        "ours: 270,000 rows; FreqTier Table I, HybridTier Table 2: 248 GB",
        "Memory of the data and the training; the rows follow from it.",
    ),
    operations("12", "rounds", "ours; FreqTier VI-C: 400", "Boosting rounds, a tree each."),
    spec("depth", Kind::Count(1, 16), "6", "levels", "XGBoost's default (max_depth)", "Depth of a tree."),
    spec(
        "bins",
        Kind::Count(2, 254),
        "32",
        "a feature",
        "ours: a histogram stays small beside a node's rows; XGBoost's max_bin: 256",
        "Bins of a feature, at most.",
    ),
    threads(256, "16", "FreqTier VI-C, HybridTier 5.3", "Threads; blocks of rows go to them in turn."),
];

const PRESETS: &[Preset] = &[
    test(&[("footprint", "4M"), ("operations", "2"), ("depth", "4"), ("bins", "16")]),
    paper(
        "FreqTier Table I, VI-C: 248 GB, 400 rounds",
        "The footprint and rounds of the paper; 254 bins, one less than a byte tells from a missing value.",
        &[("footprint", "248G"), ("operations", "400"), ("bins", "254")],
    ),
];

pub(crate) static WORKLOAD: Workload = Workload {
    name: "xgboost",
    title: "boosted trees by histograms on a log of clicks",
    source: "XGBoost (tree_method=hist) on Criteo's click logs, as run by FreqTier VI-C and HybridTier 5.3",
    object_size: ObjectSize::Large,
    objects: "matrices of bins, arrays by row; histograms of 20 KB",
    hot_set_changes: true,
    hot_set: "by level: all rows, then half of them; columns of the splits; the input pages go cold",
    accesses: 53_895_073,
    specs: SPECS,
    presets: PRESETS,
    reference_footprint: None,
    reference_cache: None,
    builder: build,
};

struct XgBoost {
    histograms: u64,
    rows: usize,
    rounds: u64,
    depth: u64,
    bins: usize,
    threads: usize,
    seed: u64,
}

fn build(parameters: &Parameters, seed: u64) -> Result<Box<dyn Program>, WorkloadError> {
    // Nodes of the last level but one and the two children that are being made.
    let histograms = (1 << (parameters.count("depth") - 1)) + 2;
    let histograms = histograms * parameters.count("bins") * FEATURES as u64 * 16;
    let left = parameters.size("footprint").0.saturating_sub(histograms);
    let rows = (left as f64 / row_bytes()) as usize;
    if rows < 1000 {
        let problem =
            format!("footprint leaves {rows} rows; expected 1,000, with less depth or bins for example");
        return Err(WorkloadError::Inconsistent { workload: "xgboost", problem });
    }
    Ok(Box::new(XgBoost {
        histograms,
        rows,
        rounds: parameters.count("operations"),
        depth: parameters.count("depth"),
        bins: parameters.count("bins") as usize,
        threads: parameters.count("threads") as usize,
        seed,
    }))
}

impl Program for XgBoost {
    fn footprint(&self) -> Bytes {
        Bytes((self.rows as f64 * row_bytes()) as u64 + self.histograms)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let data = Data::new(self.rows, self.bins, self.seed, memory);
        let mut state = State::new(self.rows, memory);
        for _ in 0..self.rounds {
            if memory.finished() {
                return;
            }
            state.differentiate(&data, self.threads, memory);
            state.grow(&data, self.depth, self.threads, memory);
        }
    }
}
