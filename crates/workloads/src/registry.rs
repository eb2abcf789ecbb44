//! Defines the table of workloads: adding one touches its file and one line here.

use isotherm_core::cache::Geometry;
use isotherm_core::parameters::{Parameters, Preset, Spec};
use isotherm_core::{Bytes, names};

use crate::{
    Memory, btree, bwaves, cachelib, deepsjeng, flexkvs, gpt2, graph, gups, layout, liblinear, masim, redis,
    roms, silo, social_network, xgboost, xsbench, xz,
};

/// The cache that filters a workload's accesses where its source names none: 2 MiB, as the recorder's default.
const DEFAULT_CACHE: Bytes = Bytes(2 << 20);
/// Ways of the modelled cache.
const WAYS: u32 = 16;
/// The smallest cache that scaling leaves: one set a thread of the papers' 16, so that their working lines survive.
const SMALLEST_CACHE: Bytes = Bytes(16 << 10);

/// A workload that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// No workload has that name.
    #[error("there is no workload '{name}'; {advice}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest names, or all of them where none is near.
        advice: String,
    },
    /// Parameters that are valid each by itself but not together.
    #[error("{workload}: {problem}")]
    Inconsistent {
        /// The workload.
        workload: &'static str,
        /// What does not fit, with what was expected.
        problem: String,
    },
}

/// The preset of every workload whose run takes less than two seconds.
pub const TEST_PRESET: &str = "test";

/// The preset of every workload with the size of its paper, or of the largest of its papers.
pub const PAPER_PRESET: &str = "paper";

/// How large a program's objects are against a page of 4 KiB (Jenga 3.2, Table 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectSize {
    /// Most objects are smaller than a page.
    Small,
    /// Memory is managed in objects larger than a page.
    Large,
    /// Both.
    Mixed,
}

impl ObjectSize {
    /// Its word in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
            Self::Mixed => "mixed",
        }
    }
}

/// An application ready to run once.
pub trait Program: Send {
    /// About how much memory it reserves; what it touches may be up to a fifth less (chunks larger than their items).
    fn footprint(&self) -> Bytes;

    /// How many processes it consists of, each with an address space of its own.
    fn processes(&self) -> usize {
        1
    }

    /// Runs it to its end, or until `memory` has seen enough.
    fn run(self: Box<Self>, memory: &mut dyn Memory);
}

/// A workload: what it is, what can be set and how it is built.
#[derive(Debug)]
pub struct Workload {
    /// A kebab-case name.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// How large the objects that it allocates are.
    pub object_size: ObjectSize,
    /// The size of the objects that it draws from, for people.
    pub objects: &'static str,
    /// Whether its hot set changes during the run at its defaults.
    pub hot_set_changes: bool,
    /// What its hot set does, for people.
    pub hot_set: &'static str,
    /// Loads and stores, at most one of each a line, of a run at its defaults with seed 42; measured.
    pub accesses: u64,
    /// What can be set.
    pub specs: &'static [Spec],
    /// Other published sets of defaults.
    pub presets: &'static [Preset],
    /// The footprint in its source: a run's scale is this over its own footprint.
    pub reference_footprint: Option<Bytes>,
    /// The last-level cache of the machine in its source.
    pub reference_cache: Option<Bytes>,
    /// Builds the program.
    pub(crate) builder: Builder,
}

/// Builds a program from parameters and a seed.
pub(crate) type Builder = fn(&Parameters, u64) -> Result<Box<dyn Program>, WorkloadError>;

impl Workload {
    /// Its parameters at their defaults.
    pub fn parameters(&self) -> Parameters {
        Parameters::with_presets(self.name, self.specs, self.presets).and(layout::SPECS)
    }

    /// The program that these parameters (made by [`Self::parameters`]) and the seed stand for.
    pub fn build(&self, parameters: &Parameters, seed: u64) -> Result<Box<dyn Program>, WorkloadError> {
        (self.builder)(parameters, seed)
    }

    /// The last-level cache for a run of this footprint.
    ///
    /// Where the source names its machine and footprint, the cache shrinks with the footprint: in a run a thousand times
    /// smaller, a cache of full size would hold every index and header that misses on the real machine.
    pub fn cache(&self, footprint: Bytes) -> Geometry {
        let size = match (self.reference_cache, self.reference_footprint) {
            (Some(cache), Some(reference)) => {
                let scaled = cache.0 as f64 * footprint.0 as f64 / reference.0 as f64;
                Bytes((scaled as u64).clamp(SMALLEST_CACHE.0, cache.0))
            }
            _ => DEFAULT_CACHE,
        };
        Geometry::new(size, WAYS).unwrap_or(Geometry { sets: 16, ways: WAYS })
    }
}

/// Every workload, in the order of help texts.
pub static ALL: &[&Workload] = &[
    &masim::WORKLOAD,
    &gups::WORKLOAD,
    &cachelib::CDN_WORKLOAD,
    &cachelib::SOCIAL_WORKLOAD,
    &btree::WORKLOAD,
    &silo::WORKLOAD,
    &flexkvs::WORKLOAD,
    &redis::WORKLOAD,
    &social_network::WORKLOAD,
    &graph::BFS_KRON,
    &graph::BFS_URAND,
    &graph::CC_KRON,
    &graph::CC_URAND,
    &graph::PR_KRON,
    &graph::PR_URAND,
    &graph::BC_KRON,
    &graph::BC_URAND,
    &graph::SSSP_KRON,
    &graph::SSSP_URAND,
    &graph::TC_KRON,
    &graph::TC_URAND,
    &graph::GRAPH500,
    &xsbench::WORKLOAD,
    &xgboost::WORKLOAD,
    &liblinear::WORKLOAD,
    &bwaves::WORKLOAD,
    &roms::WORKLOAD,
    &gpt2::WORKLOAD,
    &deepsjeng::WORKLOAD,
    &xz::WORKLOAD,
];

/// The workload of that name.
pub fn find(name: &str) -> Result<&'static Workload, WorkloadError> {
    ALL.iter().copied().find(|workload| workload.name == name).ok_or_else(|| WorkloadError::Unknown {
        name: name.into(),
        advice: names::advice(name, ALL.iter().map(|workload| workload.name)),
    })
}
