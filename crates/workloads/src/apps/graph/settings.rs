//! The parameters and presets that the graph workloads share.

use isotherm_core::parameters;
use isotherm_core::parameters::Preset;
use isotherm_core::parameters::build::{Builder, count};

use crate::{PAPER_PRESET, Values, paper};

pub(crate) const fn scale(default: &'static str) -> Builder<u32> {
    count(4, 31, default)
        .unit("log2 of vertices")
        .source("ours: about 100 MiB, a run of seconds")
        .help("Vertices of the graph: two to this power.")
}

pub(crate) const fn degree(default: &'static str) -> Builder<u64> {
    count(1, 1024, default)
        .unit("edges a vertex")
        .source("4: FreqTier VI-C and HybridTier's artifact (-k4); 16: GAPBS' benchmark graphs and Graph500")
        .help("Undirected edges that are generated for each vertex; loops and duplicates are then removed.")
}

pub(crate) const fn trials(default: &'static str, source: &'static str) -> Builder<u64> {
    count(1, 1 << 20, default).source(source).help("How often the kernel runs, each time from other sources.")
}

pub(crate) const THREADS: Builder<usize> = count(1, 1024, "16")
    .source("HybridTier 5.3")
    .help("Threads; they take turns chunk by chunk of a parallel loop.");

parameters! {
    /// Parameters with which every kernel's table begins.
    pub(super) struct Common {
        scale: u32 = scale("20"),
        degree: u64 = degree("4"),
        trials: u64 = trials("1", "ours"),
    }
}

parameters! {
    /// The threads of every kernel.
    pub(super) struct Parallel {
        threads: usize = THREADS,
    }
}

pub(crate) const fn paper_graph(values: Values) -> Preset {
    paper(
        "FreqTier VI-C and HybridTier 5.3: 2 billion vertices, 8 billion edges",
        "The graph and the number of runs of the paper.",
        values,
    )
}

pub(crate) const fn gap(values: Values) -> Preset {
    Preset {
        name: "gap",
        source: "GAPBS' benchmark graphs, used in PACT 5.2: 134.2 million vertices, 2,111.6 million edges",
        help: "The graph and the number of runs of GAPBS' own benchmark.",
        values,
    }
}

/// Returns that preset as the papers' size, for kernels of which no paper says how it ran them.
pub(crate) const fn gap_as_paper(values: Values) -> Preset {
    Preset { name: PAPER_PRESET, ..gap(values) }
}
