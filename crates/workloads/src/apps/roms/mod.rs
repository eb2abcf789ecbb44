//! `roms`: an ocean model with terrain-following levels, after SPEC CPU 2017's 654.roms_s.
//!
//! Loops go level by level, or (vertical integrals, implicit tridiagonal solves) row by row through all
//! levels; threads take bands of rows. The original's scratch rows (in a core's cache) are not reported.

mod grid;
mod ocean;
mod stencils;

use isotherm_core::{Bytes, parameters};

use self::grid::Grid;
use self::ocean::{Ocean, column_bytes};
use crate::{Built, Memory, ObjectSize, Program, Random, Workload, XEON_4314, paper, test};

/// Columns east for each column north: the shape of ROMS' benchmark (2,048 x 256).
const ASPECT: u64 = 8;

parameters! {
    struct Settings {
        /// Memory of the fields; the columns follow from it.
        footprint: Bytes = size(2 << 20, 1 << 42, "128M")
            .source("ours; HybridTier Table 2: 150 GB, NeoMem VI-A: 10 to 20 GB"),
        /// Time steps.
        operations: u64 = count(1, 1 << 40, "7").unit("time steps")
            .source("ours: some dozen passes over each field"),
        /// Levels of a column.
        levels: usize = count(2, 1000, "30").source("ROMS' benchmark application: N = 30"),
        /// Threads, each with a band of rows.
        threads: u64 = count(1, 256, "16").source("HybridTier 5.3 (NeoMem VI-A: 32)"),
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "roms",
    title: "ocean model: stencils, tracers, vertical solves",
    source: "SPEC CPU 2017 654.roms_s, as run by HybridTier 5.3, Jenga 3.1 and NeoMem VI-A",
    object_size: ObjectSize::Mixed,
    objects: "16 fields with levels, 7 without, of doubles",
    hot_set_changes: true,
    hot_set: "alternates between the flat fields and each few of the deep ones",
    accesses: 77_300_654,
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

struct Roms {
    grid: Grid,
    steps: u64,
    seed: u64,
}

fn build(settings: Settings, seed: u64) -> Built {
    let levels = settings.levels;
    let columns = settings.footprint.0 / column_bytes(levels);
    let north = (columns / ASPECT).isqrt();
    if north < 2 {
        return Err(
            "footprint leaves less than two rows of columns; expected a larger one or fewer levels".into()
        );
    }
    let grid = Grid {
        east: (columns / north) as usize,
        north: north as usize,
        levels,
        threads: settings.threads.min(north) as usize,
    };
    Ok(Box::new(Roms { grid, steps: settings.operations, seed }))
}

impl Program for Roms {
    fn footprint(&self) -> Bytes {
        Bytes(self.grid.columns() as u64 * column_bytes(self.grid.levels))
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let mut ocean = Ocean::new(self.grid, &mut Random::new(self.seed), memory);
        for _ in 0..self.steps {
            if memory.finished() {
                return;
            }
            ocean.advance(memory);
        }
    }
}
