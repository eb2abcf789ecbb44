//! The workload: its description, its parameters, and how it is built.

use isotherm_core::Bytes;
use isotherm_core::cache::Geometry;
use isotherm_core::parameters::{Parameters, Preset, Spec, Value};

use crate::pace::{FACTOR, Pace};
use crate::{Layout, LayoutSettings, Program};

/// Cache that filters a workload's accesses if its source names none: 2 MiB, the recorder's default.
const DEFAULT_CACHE: Bytes = Bytes(2 << 20);
/// Ways of the modelled cache: the recorder's default.
pub const WAYS: u32 = 16;
/// Smallest cache after scaling: one set for each of the papers' 16 threads.
const MIN_CACHE: Bytes = Bytes(16 << 10);

/// Bytes for each byte of footprint by which objects are found in another layout; measured.
const TRANSLATED: f64 = 1.0;

/// A workload that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// No workload has that name.
    #[error("there is no workload '{name}'; {advice}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The nearest names, or all of them if none is near.
        advice: String,
    },
    /// Parameters that are valid each by itself but not together.
    #[error("{workload}: {problem}")]
    Inconsistent {
        /// The workload.
        workload: &'static str,
        /// The mismatch, and what was expected.
        problem: String,
    },
}

/// Size of a program's objects against a page of 4 KiB (Jenga 3.2, Table 1).
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
    /// Returns its word in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
            Self::Mixed => "mixed",
        }
    }
}

/// A workload's description, parameters and builder.
#[derive(Debug)]
pub struct Workload {
    /// Name in kebab case.
    pub name: &'static str,
    /// Title, one line.
    pub title: &'static str,
    /// Benchmark or paper that it comes from.
    pub source: &'static str,
    /// Size class of the objects that it allocates.
    pub object_size: ObjectSize,
    /// Sizes of its objects, for people.
    pub objects: &'static str,
    /// Whether its hot set changes during a run at the defaults.
    pub hot_set_changes: bool,
    /// Behaviour of its hot set, for people.
    pub hot_set: &'static str,
    /// Loads and stores, at most one of each per line, of a run at the defaults with seed 42; measured.
    pub accesses: u64,
    /// Table of its parameters.
    pub specs: &'static [Spec],
    /// Other published sets of defaults.
    pub presets: &'static [Preset],
    /// Footprint in its source: a run's scale is this over its own footprint.
    pub reference_footprint: Option<Bytes>,
    /// Last-level cache of the machine in its source.
    pub reference_cache: Option<Bytes>,
    /// Bytes of this machine that a run takes at most for each byte of its footprint; measured.
    pub peak: f64,
    /// Builder of its program.
    pub(crate) builder: Builder,
}

/// A program, or the reason why the parameters do not fit together.
pub(crate) type Built = Result<Box<dyn Program>, String>;
/// Builds a program from parameters and a seed.
pub(crate) type Builder = fn(&Parameters, u64) -> Built;

impl Workload {
    /// Returns its parameters at their defaults.
    pub fn parameters(&self) -> Parameters {
        Parameters::with_presets(self.name, self.specs, self.presets)
            .and(LayoutSettings::SPECS)
            .and(self.pace().factor)
    }

    /// Returns what is known of the original's pace, and what ours is set to.
    pub fn pace(&self) -> &'static Pace {
        Pace::of(self.name)
    }

    /// Returns how many instructions of the original stand behind each one that the run reports.
    pub fn instruction_factor(&self, parameters: &Parameters) -> f64 {
        match parameters.value(FACTOR) {
            Some(Value::Number(factor)) => factor,
            _ => 1.0,
        }
    }

    /// Builds the program for `parameters`, which [`Self::parameters`] made, and a seed.
    ///
    /// # Errors
    /// [`WorkloadError::Inconsistent`] if the parameters do not fit together.
    pub fn build(&self, parameters: &Parameters, seed: u64) -> Result<Box<dyn Program>, WorkloadError> {
        (self.builder)(parameters, seed)
            .map_err(|problem| WorkloadError::Inconsistent { workload: self.name, problem })
    }

    /// Returns about how much of this machine's memory a run of this footprint takes at most.
    pub fn memory(&self, parameters: &Parameters, footprint: Bytes) -> Bytes {
        let translated = Layout::of(parameters) != Layout::Sequential;
        let share = self.peak + if translated { TRANSLATED } else { 0.0 };
        // Conversion from floating point saturates.
        Bytes((footprint.0 as f64 * share) as u64)
    }

    /// Returns the last-level cache for a run of this footprint.
    ///
    /// If the source names its machine and footprint, the cache shrinks with the footprint: in a run a
    /// thousand times smaller, a cache of full size would hold every index and header that misses on the real
    /// machine.
    pub fn cache(&self, footprint: Bytes) -> Geometry {
        let size = match (self.reference_cache, self.reference_footprint) {
            (Some(cache), Some(reference)) => {
                let scaled = cache.0 as f64 * footprint.0 as f64 / reference.0 as f64;
                Bytes((scaled as u64).clamp(MIN_CACHE.0, cache.0))
            }
            _ => DEFAULT_CACHE,
        };
        Geometry::new(size, WAYS).unwrap_or(Geometry { sets: 16, ways: WAYS })
    }
}
