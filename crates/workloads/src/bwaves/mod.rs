//! `bwaves`: a blast wave in three dimensions, stepped implicitly, after SPEC CPU 2017's 603.bwaves_s (Kremenetsky).
//!
//! **Kept.** What SPEC's description says of the program: the compressible flow of a gas, five equations a point, an
//! implicit time step linearised to a block-heptadiagonal system, solved by BiCGstab.
//! Seven arrays of 5 x 5 blocks of doubles (1,400 of 1,760 bytes a point) are filled in each time step
//! and read twice in each iteration; vectors of five doubles a point are read at the point and its six neighbours. The
//! first index runs fastest, edges are periodic, threads take planes as OpenMP's static schedule hands them out and take
//! turns every 8 points.
//!
//! **Reduced.** Central differences and one constant viscosity instead of the original's viscous terms; a cube instead of
//! its grids; tolerance 1e-6. Values are computed in one thread's order and each loop's accesses reported after.

mod flow;
mod grid;
mod solver;

use isotherm_core::Bytes;
use isotherm_core::parameters::{Kind, Parameters, Preset, Spec};

use self::grid::Grid;
use self::solver::{POINT_BYTES, Solver};
use crate::random::Random;
use crate::registry::{ObjectSize, Workload};
use crate::specs::{footprint, operations, paper, spec, test, threads};
use crate::{Memory, Program, WorkloadError};

const SPECS: &[Spec] = &[
    footprint(
        "128M",
        "ours; HybridTier Table 2: 150 GB, NeoMem VI-A: 10 to 20 GB, PACT 5.1: 6.6 to 40 GB",
        "Memory of the blocks and vectors; the cube's side follows from it.",
    ),
    operations("2", "time steps", "ours: enough that each page is read some dozen times", "Time steps."),
    spec(
        "tolerance",
        Kind::Number(1e-14, 0.5),
        "0.000001",
        "of the right-hand side",
        "ours: as usual for an implicit step",
        "Where BiCGstab stops.",
    ),
    threads(
        256,
        "16",
        "HybridTier 5.3 (PACT 5.1: 8, NeoMem VI-A: 32)",
        "Threads, each with planes of its own.",
    ),
];

const PRESETS: &[Preset] = &[
    test(&[("footprint", "3M"), ("operations", "2")]),
    paper(
        "HybridTier Table 2, 5.3: 150 GB",
        "The footprint of the largest of the papers' runs.",
        &[("footprint", "150G")],
    ),
];

pub(crate) static WORKLOAD: Workload = Workload {
    name: "bwaves",
    title: "blast wave: BiCGstab on a block-heptadiagonal system",
    source: "SPEC CPU 2017 603.bwaves_s, as run by HybridTier 5.3, Jenga 3.1, NeoMem VI-A and PACT 5.1",
    object_size: ObjectSize::Large,
    objects: "5 x 5 blocks and vectors of 5 doubles, in 17 arrays",
    hot_set_changes: false,
    hot_set: "none: streams through blocks, vectors several times as often",
    accesses: 106_833_473,
    specs: SPECS,
    presets: PRESETS,
    reference_footprint: None,
    reference_cache: None,
    builder: build,
};

struct Bwaves {
    side: usize,
    steps: u64,
    tolerance: f64,
    threads: usize,
    seed: u64,
}

fn build(parameters: &Parameters, seed: u64) -> Result<Box<dyn Program>, WorkloadError> {
    let points = parameters.size("footprint").0 / POINT_BYTES;
    Ok(Box::new(Bwaves {
        side: (points as f64).cbrt() as usize,
        steps: parameters.count("operations"),
        tolerance: parameters.number("tolerance"),
        threads: parameters.count("threads") as usize,
        seed,
    }))
}

impl Program for Bwaves {
    fn footprint(&self) -> Bytes {
        Bytes((self.side as u64).pow(3) * POINT_BYTES)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let grid = Grid::new(self.side, self.threads);
        let mut solver = Solver::new(grid, &mut Random::new(self.seed), memory);
        for _ in 0..self.steps {
            if memory.finished() {
                return;
            }
            solver.advance(self.tolerance, memory);
        }
    }
}
