//! `xsbench`: cross-section lookups of neutron transport, after XSBench 20 (Tramm et al., PHYSOR 2014).
//!
//! A lookup draws energy and material after the result before; threads take particles from a common counter,
//! in turns of a lookup. Grid points shrink with the footprint, not the nuclides.

mod grids;
mod materials;

use isotherm_core::{Bytes, parameters};

use self::grids::{CHANNELS, Grids, NUCLIDES, POINT_BYTES};
use self::materials::SHARES;
use crate::{AliasTable, Built, Memory, ObjectSize, Program, Random, Token, Workload, mix, paper, test};

parameters! {
    struct Settings {
        /// Memory of the three grids; grid points a nuclide follow from it.
        footprint: Bytes = size(2 << 20, 1 << 42, "128M")
            .source("ours: 256 grid points a nuclide; Memtis' artifact: 130,000 (-g 130000), 63 GiB; NeoMem VI-A: 10 to 20 GB"),
        /// Macroscopic lookups over all threads.
        operations: u64 = count(1, 1 << 40, "400k").unit("lookups")
            .source("ours: about 1,500 misses a page; Memtis' artifact: 1,020 million (-p 30000000)"),
        /// Lookups a particle.
        lookups: u64 = count(1, 1 << 20, "34").source("XSBench's default of the history-based simulation"),
        /// Threads; they take turns lookup by lookup.
        threads: u16 = count(1, 256, "16").source("Memtis' artifact (-t 16); HybridTier 5.3"),
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "xsbench",
    title: "lookups in a unionised grid of neutron cross sections",
    source: "XSBench 20 (Tramm et al., PHYSOR 2014), as run by Memtis, Jenga 3.1 and NeoMem VI-A",
    object_size: ObjectSize::Large,
    objects: "48-byte points and 1,420-byte rows of indices, in three arrays",
    hot_set_changes: false,
    hot_set: "stable: the grids allocated first",
    accesses: 62_732_028,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "4M"), ("operations", "4k")]),
        paper(
            "Memtis' artifact: -g 130000 -p 30000000",
            "130,000 grid points a nuclide.",
            &[("footprint", "63.45G"), ("operations", "1020M")],
        ),
    ],
    reference_footprint: Some(Bytes(355 * 130_000 * POINT_BYTES)),
    reference_cache: Some(Bytes(27 << 20 | 512 << 10)),
    peak: 1.15,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

struct XsBench {
    settings: Settings,
    points: u64,
    seed: u64,
}

fn build(settings: Settings, seed: u64) -> Built {
    let points = (settings.footprint.0 / (NUCLIDES as u64 * POINT_BYTES)).max(3);
    Ok(Box::new(XsBench { settings, points, seed }))
}

struct Particle {
    random: Random,
    left: u64,
    after: Token,
}

impl Particle {
    fn next(&mut self, materials: &AliasTable, grids: &Grids, memory: &mut dyn Memory) -> [f64; CHANNELS] {
        let (energy, material) = (self.random.unit(), materials.draw(&mut self.random));
        let (sections, token) = grids.lookup(energy, material as usize, memory, self.after);
        // The result decides how far the particle's random numbers advance.
        (0..sections.iter().filter(|&&section| section > 1.0).count()).for_each(|_| {
            self.random.bits();
        });
        (self.after, self.left) = (token, self.left - 1);
        sections
    }
}

impl Program for XsBench {
    fn footprint(&self) -> Bytes {
        Bytes(self.points * NUCLIDES as u64 * POINT_BYTES)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let Settings { operations, lookups, threads, .. } = self.settings;
        let grids = Grids::new(self.points as usize, &mut Random::new(self.seed), memory);
        let materials = AliasTable::new(&SHARES);
        let mut started = 0;
        let mut start = || {
            started += 1;
            let random = Random::new(mix(self.seed ^ mix(started)));
            Particle { random, left: lookups, after: Token::NONE }
        };
        let mut particles: Vec<Particle> = (0..threads).map(|_| start()).collect();
        for lookup in 0..operations {
            if lookup % 64 == 0 && memory.finished() {
                return;
            }
            let thread = (lookup % u64::from(threads)) as u16;
            let particle = &mut particles[usize::from(thread)];
            if particle.left == 0 {
                *particle = start();
            }
            memory.thread(thread);
            particle.next(&materials, &grids, memory);
        }
    }
}
