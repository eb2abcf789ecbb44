//! `bwaves`: a blast wave in three dimensions, after SPEC CPU 2017's 603.bwaves_s (Kremenetsky).
//!
//! Blocks take 1,400 of 1,760 bytes for each point. The first index runs fastest, edges are periodic, and
//! threads take planes as in OpenMP's static schedule, in turns of 8 points.

mod flow;
mod grid;
mod solver;

use isotherm_core::{Bytes, parameters};

use self::grid::Grid;
use self::solver::{POINT_BYTES, Solver};
use crate::{Built, Memory, ObjectSize, Program, Random, Workload, XEON_4314, paper, test};

parameters! {
    struct Settings {
        /// Memory of the blocks and vectors; the cube's side follows from it.
        footprint: Bytes = size(2 << 20, 1 << 42, "128M")
            .source("ours; HybridTier Table 2: 150 GB, NeoMem VI-A: 10 to 20 GB, PACT 5.1: 6.6 to 40 GB"),
        /// Time steps.
        operations: u64 = count(1, 1 << 40, "2").unit("time steps")
            .source("ours: enough that each page is read some dozen times"),
        /// Where BiCGstab stops.
        tolerance: f64 = number(1e-14, 0.5, "0.000001").unit("of the right-hand side")
            .source("ours: as usual for an implicit step"),
        /// Threads, each with planes of its own.
        threads: usize = count(1, 256, "16").source("HybridTier 5.3 (PACT 5.1: 8, NeoMem VI-A: 32)"),
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "bwaves",
    title: "blast wave: BiCGstab on a block-heptadiagonal system",
    source: "SPEC CPU 2017 603.bwaves_s, as run by HybridTier 5.3, Jenga 3.1, NeoMem VI-A and PACT 5.1",
    object_size: ObjectSize::Large,
    objects: "5 x 5 blocks and vectors of 5 doubles, in 17 arrays",
    hot_set_changes: false,
    hot_set: "none: streams through blocks, vectors several times as often",
    accesses: 106_833_473,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "3M"), ("operations", "2")]),
        paper(
            "HybridTier Table 2, 5.3: 150 GB",
            "The footprint of the largest of the papers' runs.",
            &[("footprint", "150G")],
        ),
    ],
    reference_footprint: Some(Bytes(150 << 30)),
    reference_cache: Some(XEON_4314),
    peak: 1.15,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

struct Bwaves {
    settings: Settings,
    side: usize,
    seed: u64,
}

fn build(settings: Settings, seed: u64) -> Built {
    let points = settings.footprint.0 / POINT_BYTES;
    let side = (points as f64).cbrt() as usize;
    Ok(Box::new(Bwaves { settings, side, seed }))
}

impl Program for Bwaves {
    fn footprint(&self) -> Bytes {
        Bytes((self.side as u64).pow(3) * POINT_BYTES)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let grid = Grid::new(self.side, self.settings.threads);
        let mut solver = Solver::new(grid, &mut Random::new(self.seed), memory);
        for _ in 0..self.settings.operations {
            if memory.finished() {
                return;
            }
            solver.advance(self.settings.tolerance, memory);
        }
    }
}
