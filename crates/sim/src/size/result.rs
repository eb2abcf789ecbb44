//! Defines what sizing reports: plain data, from which tables, JSON and HTML are made.

use std::collections::BTreeMap;

use isotherm_core::parameters::Parameters;
use isotherm_core::{Bytes, Nanos, PageSize};
use serde::Serialize;

use isotherm_machine::MachineSummary;

/// How much fast memory one input needs, under each policy and bound.
#[derive(Debug, Clone, Serialize)]
pub struct SizeReport {
    /// Isotherm's version.
    pub version: String,
    /// What was replayed.
    pub input: SizedInput,
    /// The machine profile, every number with its source.
    pub machine: MachineSummary,
    /// The slowdown that is allowed: 0.05 for 5 %.
    pub budget: f64,
    /// How the input was thinned out.
    pub sampling: Sampling,
    /// Modelled time with all memory fast, in full.
    pub all_fast_ns: Nanos,
    /// Slowdown with all memory slow, in full.
    pub all_slow: f64,
    /// One entry for each policy and bound, in the order asked for.
    pub policies: Vec<PolicySize>,
    /// The policy that needs least among those that a full simulation confirmed; none where no policy was.
    pub best: Option<String>,
    /// Time that all of it took, in seconds. The only field that differs between two equal calls.
    pub wall_s: f64,
}

/// The replayed accesses.
#[derive(Debug, Clone, Serialize)]
pub struct SizedInput {
    /// The workload's name or the trace's path.
    pub name: String,
    /// `"workload"` or `"trace"`.
    pub kind: &'static str,
    /// The workload's parameters; none for a trace.
    pub parameters: Option<Parameters>,
    /// Where the input comes from, as key and value.
    pub provenance: BTreeMap<String, String>,
    /// The random generator's seed.
    pub seed: u64,
    /// By what factor sample counts of policies are divided in a full simulation.
    pub scale: f64,
    /// By what factor their time constants are divided in a full simulation.
    pub time_scale: f64,
    /// Accesses that missed the last-level cache.
    pub accesses: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// Threads.
    pub threads: usize,
    /// The page size.
    pub page_size: PageSize,
    /// Bytes of the pages touched.
    pub footprint_bytes: Bytes,
}

/// The sub-samples.
#[derive(Debug, Clone, Serialize)]
pub struct Sampling {
    /// One page in so many is in a sub-sample; 1 for all, where sub-samples differ in their seed only.
    pub one_in: u32,
    /// Accesses of each sub-sample.
    pub accesses: Vec<u64>,
    /// Pages of each sub-sample.
    pub pages: Vec<u64>,
}

/// What became of one policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A full simulation at the recommended size met the budget.
    Confirmed,
    /// The recommended size was not simulated in full: it is an estimate.
    Estimated,
    /// Full simulations met the budget at no size that was tried, although the estimate did.
    Unconfirmed,
    /// Even with the whole footprint fast the budget is exceeded: what the policy itself costs.
    Never,
}

/// One policy or bound.
#[derive(Debug, Clone, Serialize)]
pub struct PolicySize {
    /// Its name.
    pub policy: String,
    /// Whether it is a bound, which no machine can run.
    pub bound: bool,
    /// Its parameters in force in a full simulation.
    pub parameters: Parameters,
    /// What became of it.
    pub outcome: Outcome,
    /// The smallest size from which on the budget holds; none if there is none.
    pub recommended: Option<Recommended>,
    /// Where the curve bends; none where it hardly falls or has no bend beyond its interval.
    pub knee: Option<Knee>,
    /// The largest difference between an estimate and its full simulation, as slowdown; none without one.
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
    /// The slowdown, from the sub-samples and corrected by the full simulations.
    pub slowdown: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
    /// The slowdown of each sub-sample, uncorrected.
    pub samples: Vec<f64>,
}

/// How much fast memory suffices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommended {
    /// The size.
    pub fast_bytes: Bytes,
    /// The lower end of its interval.
    pub low_bytes: Bytes,
    /// The upper end of its interval; none where it reaches beyond the footprint.
    pub high_bytes: Option<Bytes>,
    /// Bytes of the footprint that need not be fast.
    pub saved_bytes: Bytes,
    /// The slowdown there: simulated in full where confirmed, else estimated.
    pub slowdown: f64,
}

/// The knee of a curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Knee {
    /// Its size.
    pub fast_bytes: Bytes,
    /// The slowdown there.
    pub slowdown: f64,
}

/// One simulation of the whole input, against what was expected of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FullRun {
    /// The size.
    pub fast_bytes: Bytes,
    /// The slowdown expected before it ran.
    pub expected: f64,
    /// The lower end of the interval expected.
    pub low: f64,
    /// The upper end of the interval expected.
    pub high: f64,
    /// The slowdown.
    pub slowdown: f64,
    /// Whether it is at most the budget.
    pub meets: bool,
    /// Whether it is in the interval.
    pub within: bool,
}
