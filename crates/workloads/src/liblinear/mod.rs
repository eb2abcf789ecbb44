//! `liblinear`: training of L1-regularised logistic regression on sparse data of many features.
//!
//! Memtis' artifact runs multi-core liblinear 2.45 with `-s 6 -m 16` on KDD12, and Jenga (3.1) took KDD12 over. `-s 6` is
//! newGLMNET (Yuan, Ho and Lin, JMLR 2012), which `solver` holds.
//!
//! **Kept.** The samples in liblinear's layout (`feature_node`: a 4-byte index and a double, 16 bytes; an end mark after each
//! sample; an array of pointers); the transposed copy that the solver works on, after which the rows stay cold; the
//! solver's arrays by feature and by sample in their order of allocation; gradient pass, random order of features in each
//! cycle of coordinate descent, shrinking, line search, stopping rules and tolerance (0.01). Long columns are divided
//! among the threads, short ones stay with one (Zhuang et al., CIKM 2018); the result is that of one thread.
//!
//! **Data.** Generated in KDD12's form: 11 fields with as many categories as there (54.7 million in 149.6 million samples,
//! scaled with the samples), one non-zero each, categories of a field popular by Zipf's law, all values 1 / sqrt(11), about
//! one label in twenty positive.
//!
//! **Left out.** The reading of the file (rows are written in order), and the arrays of pointers that `train` permutes.

mod data;
mod solver;

use isotherm_core::Bytes;
use isotherm_core::parameters::{Kind, Parameters, Preset, Spec};

use self::data::{bytes_a_sample, features, samples, transpose};
use self::solver::Solver;
use crate::random::{Random, mix};
use crate::registry::{ObjectSize, Workload};
use crate::specs::{footprint, operations, paper, spec, test, threads};
use crate::{Memory, Program, WorkloadError};

const SPECS: &[Spec] = &[
    footprint(
        "128M",
        "ours: 290,000 samples; KDD12: 149.6 million, in Memtis' artifact 78 GiB",
        "Memory of the samples, their transposed copy and the solver; the samples follow from it.",
    ),
    operations("3", "iterations", "ours; liblinear: at most 100", "Newton iterations, at most."),
    spec(
        "tolerance",
        Kind::Number(0.0, 1.0),
        "0.01",
        "of the first gradient",
        "liblinear's default for -s 6",
        "Where training stops.",
    ),
    threads(256, "16", "Memtis' artifact (-m 16)", "Threads that share a long column."),
];

const PRESETS: &[Preset] = &[
    test(&[("footprint", "4M"), ("operations", "2")]),
    paper(
        "Memtis' artifact, Jenga 3.1: KDD12",
        "149.6 million samples.",
        &[("footprint", "64G"), ("operations", "100")],
    ),
];

pub(crate) static WORKLOAD: Workload = Workload {
    name: "liblinear",
    title: "L1-regularised logistic regression on sparse samples",
    source: "liblinear 2.45 (newGLMNET, -s 6) on KDD12, as run by Memtis and Jenga 3.1, 7.1.7",
    object_size: ObjectSize::Large,
    objects: "16-byte entries in two arrays, a few arrays of doubles",
    hot_set_changes: true,
    hot_set: "arrays by sample; which of them changes between gradient, descent and line search; rows go cold",
    accesses: 73_323_763,
    specs: SPECS,
    presets: PRESETS,
    reference_footprint: Some(Bytes(64 << 30)),
    reference_cache: Some(Bytes(27 << 20 | 512 << 10)),
    builder: build,
};

struct LibLinear {
    samples: usize,
    iterations: u64,
    tolerance: f64,
    threads: usize,
    seed: u64,
}

fn build(parameters: &Parameters, seed: u64) -> Result<Box<dyn Program>, WorkloadError> {
    Ok(Box::new(LibLinear {
        samples: (parameters.size("footprint").0 as f64 / bytes_a_sample()) as usize,
        iterations: parameters.count("operations"),
        tolerance: parameters.number("tolerance"),
        threads: parameters.count("threads") as usize,
        seed,
    }))
}

impl Program for LibLinear {
    fn footprint(&self) -> Bytes {
        Bytes((self.samples as f64 * bytes_a_sample()) as u64)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let (rows, labels) = samples(self.samples, self.seed, memory);
        if memory.finished() {
            return;
        }
        let columns = transpose(&rows, features(self.samples as u64) as usize, memory);
        let mut solver = Solver::new(&columns, &labels, self.threads, memory);
        solver.solve(self.iterations, self.tolerance, &mut Random::new(mix(self.seed)), memory);
    }
}
