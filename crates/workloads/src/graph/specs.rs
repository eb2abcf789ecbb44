//! Defines the parameters that the graph workloads share.

use isotherm_core::parameters::{Kind, Preset, Spec};

use crate::registry::{PAPER_PRESET, TEST_PRESET};

/// A preset's values.
type Values = &'static [(&'static str, &'static str)];

/// The number of vertices.
pub(crate) const fn scale(default: &'static str) -> Spec {
    Spec {
        name: "scale",
        kind: Kind::Count(4, 31),
        default,
        unit: "log2 of vertices",
        source: "ours: about 100 MiB, a run of seconds",
        help: "Vertices of the graph: two to this power.",
        scaled: false,
    }
}

/// The number of edges.
pub(crate) const fn degree(default: &'static str) -> Spec {
    Spec {
        name: "degree",
        kind: Kind::Count(1, 1024),
        default,
        unit: "edges a vertex",
        source: "4: FreqTier VI-C and HybridTier's artifact (-k4); 16: GAPBS' benchmark graphs and Graph500",
        help: "Undirected edges that are generated for each vertex; loops and duplicates are then removed.",
        scaled: false,
    }
}

/// The number of repetitions.
pub(crate) const fn trials(default: &'static str, source: &'static str) -> Spec {
    Spec {
        name: "trials",
        kind: Kind::Count(1, 1 << 20),
        default,
        unit: "",
        source,
        help: "How often the kernel runs, each time from other sources.",
        scaled: false,
    }
}

/// The number of threads.
pub(crate) const THREADS: Spec = Spec {
    name: "threads",
    kind: Kind::Count(1, 1024),
    default: "16",
    unit: "",
    source: "HybridTier 5.3",
    help: "Threads; they take turns chunk by chunk of a parallel loop.",
    scaled: false,
};

/// The preset for tests.
pub(crate) const fn test(values: Values) -> Preset {
    Preset { name: TEST_PRESET, source: "ours", help: "Small enough for tests.", values }
}

/// The preset of the papers' size.
pub(crate) const fn paper(values: Values) -> Preset {
    Preset {
        name: PAPER_PRESET,
        source: "FreqTier VI-C and HybridTier 5.3: 2 billion vertices, 8 billion edges",
        help: "The graph and the number of runs of the paper.",
        values,
    }
}

/// The preset of GAPBS' own benchmark.
pub(crate) const fn gap(values: Values) -> Preset {
    Preset {
        name: "gap",
        source: "GAPBS' benchmark graphs, used in PACT 5.2: 134.2 million vertices, 2,111.6 million edges",
        help: "The graph and the number of runs of GAPBS' own benchmark.",
        values,
    }
}

/// The same as the preset of the papers' size, where none of them says how it ran the kernel.
pub(crate) const fn gap_as_paper(values: Values) -> Preset {
    Preset { name: PAPER_PRESET, ..gap(values) }
}
