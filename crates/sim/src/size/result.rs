//! Results of sizing: plain data, from which tables, JSON and HTML are made.

use std::collections::BTreeMap;

use isotherm_core::manifest::Manifest;
use isotherm_core::parameters::Parameters;
use isotherm_core::{Bytes, Nanos, PageSize};
use isotherm_machine::MachineSummary;
use serde::Serialize;

/// Fast memory that one input needs, under each policy and bound.
#[derive(Debug, Clone, Serialize)]
pub struct SizeReport {
    /// Isotherm's version.
    pub version: String,
    /// Where the result comes from.
    pub manifest: Manifest,
    /// The input.
    pub input: SizedInput,
    /// The machine profile, every number with its source.
    pub machine: MachineSummary,
    /// Allowed slowdown: 0.05 for 5 %.
    pub budget: f64,
    /// The run whose last rounds are meant; `None` for a single replay.
    pub length: Option<RunLength>,
    /// Sub-samples of the input.
    pub sampling: Sampling,
    /// Modelled time of the whole with all memory fast.
    pub all_fast_ns: Nanos,
    /// Slowdown of the whole with all memory slow.
    pub all_slow: f64,
    /// One entry per policy and bound, in the order asked for.
    pub policies: Vec<PolicySize>,
    /// The policy that needs least among those that a full simulation confirmed, if any.
    pub best: Option<String>,
    /// Duration in seconds. The only field that differs between two equal calls.
    pub wall_s: f64,
}

/// Rounds of a run.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RunLength {
    /// Rounds asked for.
    pub rounds: u64,
    /// Rounds that each simulation has at most.
    pub simulated: u64,
}

/// Summary of the replayed accesses.
#[derive(Debug, Clone, Serialize)]
pub struct SizedInput {
    /// Workload's name or trace's path.
    pub name: String,
    /// `"workload"` or `"trace"`.
    pub kind: &'static str,
    /// The workload's parameters; `None` for a trace.
    pub parameters: Option<Parameters>,
    /// Origin, as key and value.
    pub provenance: BTreeMap<String, String>,
    /// The random generator's seed.
    pub seed: u64,
    /// Divisor of policies' sample counts in a full simulation.
    pub scale: f64,
    /// Largest divisor of policies' time constants in a full simulation.
    pub time_scale: f64,
    /// Accesses that missed the last-level cache.
    pub accesses: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// Number of threads.
    pub threads: usize,
    /// The page size.
    pub page_size: PageSize,
    /// Bytes of the pages touched.
    pub footprint_bytes: Bytes,
}

/// The sub-samples.
#[derive(Debug, Clone, Serialize)]
pub struct Sampling {
    /// Number of pages of which a sub-sample has one; 1 for all, where sub-samples differ only in their seed.
    pub one_in: u32,
    /// Accesses of each sub-sample.
    pub accesses: Vec<u64>,
    /// Pages of each sub-sample.
    pub pages: Vec<u64>,
}

/// Outcome of sizing for one policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A full simulation at the recommended size met the budget.
    Confirmed,
    /// The recommended size is an estimate that was not simulated in full.
    Estimated,
    /// Full simulations met the budget at no tried size, although the estimate did.
    Unconfirmed,
    /// The budget is exceeded even with the whole footprint fast, by the policy's own cost.
    Never,
}

/// One policy or bound.
#[derive(Debug, Clone, Serialize)]
pub struct PolicySize {
    /// Name.
    pub policy: String,
    /// Whether it is a bound, which no machine can run.
    pub bound: bool,
    /// Its scaled parameters in a full simulation.
    pub parameters: Parameters,
    /// Divisor of its times there.
    pub time_scale: f64,
    /// Outcome of its sizing.
    pub outcome: Outcome,
    /// The smallest size from which on the budget holds, if any.
    pub recommended: Option<Recommended>,
    /// Where the curve bends; `None` if it hardly falls or has no bend beyond its interval.
    pub knee: Option<Knee>,
    /// The largest difference between an estimate and its full simulation, as slowdown.
    pub error: Option<f64>,
    /// Slowdown against size, ascending.
    pub curve: Vec<Point>,
    /// Every full simulation, in the order in which they were made.
    pub full: Vec<FullRun>,
}

/// One size of the fast tier.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    /// The size.
    pub fast_bytes: Bytes,
    /// Slowdown of the sub-samples, corrected by the full simulations.
    pub slowdown: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Slowdown of each sub-sample, uncorrected.
    pub samples: Vec<f64>,
}

/// A recommended size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommended {
    /// The size.
    pub fast_bytes: Bytes,
    /// Lower end of its interval.
    pub low_bytes: Bytes,
    /// Upper end of its interval; `None` if it lies beyond the footprint.
    pub high_bytes: Option<Bytes>,
    /// Bytes of the footprint that need not be fast.
    pub saved_bytes: Bytes,
    /// Slowdown at this size: simulated in full if confirmed, else estimated.
    pub slowdown: f64,
}

/// The knee of a curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Knee {
    /// Its size.
    pub fast_bytes: Bytes,
    /// Slowdown at the knee.
    pub slowdown: f64,
}

/// One simulation of the whole input, beside its expectation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FullRun {
    /// The size.
    pub fast_bytes: Bytes,
    /// Slowdown expected before it ran.
    pub expected: f64,
    /// Lower end of the expected interval.
    pub low: f64,
    /// Upper end of the expected interval.
    pub high: f64,
    /// The slowdown.
    pub slowdown: f64,
    /// Whether it is within the budget.
    pub meets: bool,
    /// Whether it is in the expected interval.
    pub within: bool,
}
