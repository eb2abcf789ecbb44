//! `gapbs-KERNEL-GRAPH`: the six kernels of the GAP Benchmark Suite (GAPBS) on its two synthetic graphs.
//!
//! The graph (8-byte pointers, 4-byte vertices, 8 with a weight) comes from a file: one thread writes
//! neighbours front to back, then all write the pointers. Arrays are allocated once: anew in each trial, they
//! would return to the same addresses.

mod bc;
mod bfs;
mod bins;
mod cc;
mod csr;
mod frontier;
mod generator;
mod graph500;
mod intersect;
mod kernel;
mod neighbour;
mod pr;
mod schedule;
mod settings;
mod sssp;
mod stored;
mod tc;
#[cfg(test)]
mod testing;

use std::marker::PhantomData;

use isotherm_core::Bytes;
use isotherm_core::parameters::Parameters;

use self::csr::Graph;
use self::generator::{Generator, Shape};
use self::kernel::{Kernel, Size, Sources};
use self::schedule::Threads;
use self::settings::{Common, Parallel};
use self::stored::Stored;
use crate::{Built, Memory, ObjectSize, Program, Random, Workload, mix};

/// The last-level cache of PACT's machine: 13.75 MiB.
const XEON_4114: Bytes = Bytes(55 << 18);

struct Gapbs<K> {
    generator: Generator,
    trials: u64,
    parameters: Parameters,
    threads: Threads,
    kernel: PhantomData<fn() -> K>,
}

impl<K: Kernel> Program for Gapbs<K> {
    fn footprint(&self) -> Bytes {
        let size = Size {
            shape: self.generator.shape,
            vertices: self.generator.vertices() as f64,
            directed_edges: self.generator.distinct_edges() * 2.0,
        };
        let graph = size.vertices * 8.0 + size.directed_edges * size_of::<K::Neighbour>() as f64;
        Bytes((graph + K::bytes(size)) as u64)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let mut stored = Stored::generate(&self.generator);
        if memory.reads_ahead() {
            stored.made_with.clear();
        }
        let graph = Graph::load(memory, &mut stored, self.threads);
        let mut kernel = K::new(memory, &graph, &self.parameters, self.threads);
        let mut sources = Sources(Random::new(mix(self.generator.seed ^ 0x50c)));
        for _ in 0..self.trials {
            if memory.finished() {
                return;
            }
            kernel.trial(memory, &graph, &mut sources);
        }
    }
}

fn build<K: Kernel + 'static, const UNIFORM: bool>(parameters: &Parameters, seed: u64) -> Built {
    let shape = if UNIFORM { Shape::Uniform } else { Shape::Kronecker };
    let Common { scale, degree, trials } = Common::read(parameters);
    Ok(Box::new(Gapbs::<K> {
        generator: Generator { shape, scale, degree, seed },
        trials,
        threads: Threads(Parallel::read(parameters).threads),
        parameters: parameters.clone(),
        kernel: PhantomData,
    }))
}

const fn workload<K: Kernel + 'static, const UNIFORM: bool>(name: &'static str, accesses: u64) -> Workload {
    Workload {
        name,
        title: K::TITLE,
        source: "GAP Benchmark Suite, as run in FreqTier VI-C, HybridTier 5.3, Jenga 3.2 and PACT 5.2",
        object_size: ObjectSize::Large,
        objects: "arrays of the graph's size",
        hot_set_changes: false,
        hot_set: if UNIFORM {
            "none but the small arrays"
        } else {
            "well-connected vertices in the small arrays"
        },
        accesses,
        specs: K::SPECS,
        presets: K::PRESETS,
        reference_footprint: Some(K::REFERENCE.footprints[UNIFORM as usize]),
        reference_cache: Some(K::REFERENCE.cache),
        peak: 3.0,
        builder: build::<K, UNIFORM>,
    }
}

pub(crate) use self::graph500::WORKLOAD as GRAPH500;

pub(crate) static BFS_KRON: Workload = workload::<bfs::Bfs, false>("gapbs-bfs-kron", 172_496_270);
pub(crate) static BFS_URAND: Workload = workload::<bfs::Bfs, true>("gapbs-bfs-urand", 364_821_301);
pub(crate) static CC_KRON: Workload = workload::<cc::Components, false>("gapbs-cc-kron", 166_433_013);
pub(crate) static CC_URAND: Workload = workload::<cc::Components, true>("gapbs-cc-urand", 400_804_091);
pub(crate) static PR_KRON: Workload = workload::<pr::PageRank, false>("gapbs-pr-kron", 127_081_777);
pub(crate) static PR_URAND: Workload = workload::<pr::PageRank, true>("gapbs-pr-urand", 158_719_117);
pub(crate) static BC_KRON: Workload = workload::<bc::Betweenness, false>("gapbs-bc-kron", 131_010_982);
pub(crate) static BC_URAND: Workload = workload::<bc::Betweenness, true>("gapbs-bc-urand", 179_509_103);
pub(crate) static SSSP_KRON: Workload = workload::<sssp::ShortestPaths, false>("gapbs-sssp-kron", 45_983_773);
pub(crate) static SSSP_URAND: Workload =
    workload::<sssp::ShortestPaths, true>("gapbs-sssp-urand", 52_395_044);
pub(crate) static TC_KRON: Workload = workload::<tc::Triangles, false>("gapbs-tc-kron", 245_021_260);
pub(crate) static TC_URAND: Workload = workload::<tc::Triangles, true>("gapbs-tc-urand", 73_271_499);

#[cfg(test)]
mod tests {
    use crate::ALL;
    use crate::PAPER_PRESET;

    #[test]
    fn the_reference_is_the_footprint_at_the_papers_size() {
        for workload in
            ALL.iter().filter(|workload| workload.name.starts_with("gapbs") || workload.name == "graph500")
        {
            let Some(reference) = workload.reference_footprint else { continue };
            let mut parameters = workload.parameters();
            parameters.set("preset", PAPER_PRESET).expect("every workload has it");
            let footprint = workload.build(&parameters, 1).expect("consistent").footprint();
            assert!(
                (footprint.0 as f64 / reference.0 as f64 - 1.0).abs() < 0.01,
                "{}: {footprint}",
                workload.name
            );
        }
    }
}
