//! `liblinear`: training of L1-regularised logistic regression on sparse data of many features.
//!
//! The samples lie in liblinear's layout (`feature_node`, 16 bytes, an end mark after each sample, an array
//! of pointers), the solver's arrays in their order of allocation. The result is that of one thread.

mod data;
mod solver;

use isotherm_core::{Bytes, parameters};

use self::data::{bytes_per_sample, features, samples, transpose};
use self::solver::Solver;
use crate::{Built, Memory, ObjectSize, Program, Random, Workload, mix, paper, test};

parameters! {
    struct Settings {
        /// Memory of the samples, their transposed copy and the solver; the samples follow from it.
        footprint: Bytes = size(2 << 20, 1 << 42, "128M")
            .source("ours: 290,000 samples; KDD12: 149.6 million, in Memtis' artifact 78 GiB"),
        /// Newton iterations, at most.
        operations: u64 = count(1, 1 << 40, "3").unit("iterations").source("ours; liblinear: at most 100"),
        /// Where training stops.
        tolerance: f64 = number(0.0, 1.0, "0.01").unit("of the first gradient")
            .source("liblinear's default for -s 6"),
        /// Threads that share a long column.
        threads: usize = count(1, 256, "16").source("Memtis' artifact (-m 16)"),
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "liblinear",
    title: "L1-regularised logistic regression on sparse samples",
    source: "liblinear 2.45 (newGLMNET, -s 6) on KDD12, as run by Memtis and Jenga 3.1, 7.1.7",
    object_size: ObjectSize::Large,
    objects: "16-byte entries in two arrays, a few arrays of doubles",
    hot_set_changes: true,
    hot_set: "arrays by sample; which of them changes between gradient, descent and line search; rows go cold",
    accesses: 73_323_763,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "4M"), ("operations", "2")]),
        paper(
            "Memtis' artifact, Jenga 3.1: KDD12",
            "149.6 million samples.",
            &[("footprint", "64G"), ("operations", "100")],
        ),
    ],
    reference_footprint: Some(Bytes(64 << 30)),
    reference_cache: Some(Bytes(27 << 20 | 512 << 10)),
    peak: 1.15,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

struct LibLinear {
    settings: Settings,
    samples: usize,
    seed: u64,
}

fn build(settings: Settings, seed: u64) -> Built {
    let samples = (settings.footprint.0 as f64 / bytes_per_sample()) as usize;
    Ok(Box::new(LibLinear { settings, samples, seed }))
}

impl Program for LibLinear {
    fn footprint(&self) -> Bytes {
        Bytes((self.samples as f64 * bytes_per_sample()) as u64)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let (rows, labels) = samples(self.samples, self.seed, memory);
        if memory.finished() {
            return;
        }
        let columns = transpose(&rows, features(self.samples as u64) as usize, memory);
        let Settings { operations: iterations, tolerance, threads, .. } = self.settings;
        let mut solver = Solver::new(&columns, &labels, threads, memory);
        solver.solve(iterations, tolerance, &mut Random::new(mix(self.seed)), memory);
    }
}
