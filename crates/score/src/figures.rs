//! The papers' comparisons as they stand in `figures/`, one file per paper.

use std::collections::BTreeMap;

use isotherm_core::names;
use serde::Deserialize;

use crate::metric::Metric;

/// Settings by name, as `--set` takes them.
pub(crate) type Settings = BTreeMap<String, String>;

macro_rules! figures {
    ($($name:literal),+) => { [$(($name, include_str!(concat!("../figures/", $name, ".toml")))),+] };
}

const FILES: [(&str, &str); 5] = figures!["freqtier", "hybridtier", "jenga", "neomem", "pact"];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    pub name: String,
    pub title: String,
    pub machine: String,
    pub sizes: String,
    /// Share of each run that its measurements leave out as warm-up, unless a comparison says otherwise.
    pub after: f64,
    pub after_why: String,
    pub workload: BTreeMap<String, WorkloadRef>,
    pub system: BTreeMap<String, SystemRef>,
    pub comparison: Vec<Comparison>,
    #[serde(default)]
    pub effect: Vec<Effect>,
    /// Runs repeated with other seeds: their spread is the noise.
    pub noise: Noise,
}

/// Name that stands for every workload of the registry.
pub(crate) const EVERY: &str = "*";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadRef {
    pub name: String,
    #[serde(default)]
    pub set: Settings,
    #[serde(default)]
    pub quick: Settings,
    /// Numbers of the machine beside it, as `--set machine.` takes them: the traffic of other programs.
    #[serde(default)]
    pub machine: Settings,
    /// Maximum number of accesses; the mode's own limit if absent.
    pub accesses: Option<u64>,
    pub quick_accesses: Option<u64>,
    /// `--fast` for each size of the paper.
    pub sizes: Settings,
    pub why: String,
    /// Whether its threads are independent: each runs at its own pace in slow memory.
    #[serde(default)]
    pub own_pace: bool,
    /// When the hot set changes, as a share of the run's accesses, loading included.
    pub change_at: Option<f64>,
    /// The same in the quick run, where loading is a larger share; `change_at` if absent.
    pub quick_change_at: Option<f64>,
    /// The paper's footprint, for the run's scale; the workload's own reference if absent.
    pub reference: Option<String>,
    /// The paper's threads, which the scale of time constants follows too. 16 if absent.
    pub reference_threads: Option<u32>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemRef {
    pub policy: String,
    pub title: String,
    /// Its settings. `N*fast` is N for each page of the fast tier.
    #[serde(default)]
    pub set: Settings,
    pub predictor: Option<Predictor>,
    /// Allocator of the programs that run on it, in place of the one that a workload names. Workloads that
    /// name none make objects larger than a page, which every allocator places alike.
    pub allocator: Option<String>,
    #[serde(default)]
    pub why: String,
}

/// Predictor of the stalls of a workload, without the factor `k`, or of the MLP of its windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Predictor {
    /// PACT's Equation 1: misses / MLP, by the queue's occupancy, T1 / T2.
    Equation,
    /// MLP by bandwidth and latency.
    LittlesLaw,
    Misses,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    pub id: String,
    pub place: String,
    pub title: String,
    pub metric: Metric,
    pub workloads: Vec<String>,
    pub sizes: Vec<String>,
    /// Sizes of the quick run; the first one if absent.
    pub quick_sizes: Option<Vec<String>>,
    pub systems: Vec<String>,
    pub machine: Option<String>,
    #[serde(default)]
    pub huge: bool,
    pub after: Option<f64>,
    /// Divisor that turns the paper's values into the metric's.
    pub divide: Option<f64>,
    pub not_yet: Option<String>,
    #[serde(default)]
    pub note: String,
    #[serde(default)]
    pub values: Vec<Value>,
    #[serde(default)]
    pub orderings: Vec<Ordering>,
}

/// A figure of a paper: of a cell, or of a system against another.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    pub system: String,
    /// Workload of a cell; averaged over if absent.
    pub workload: Option<String>,
    /// Size of a cell; averaged over if absent.
    pub size: Option<String>,
    pub value: f64,
    /// Whether the paper gives a bound or an approximate value, or leaves open which case it is of.
    #[serde(default)]
    pub about: bool,
    /// The system that the figure is relative to; `best` is the best of the others in each case.
    pub baseline: Option<String>,
    pub stat: Option<Stat>,
    /// Whether it is a factor rather than a percentage gained.
    #[serde(default)]
    pub factor: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stat {
    Mean,
    Geomean,
    Max,
    Min,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ordering {
    pub better: String,
    pub than: Vec<String>,
    /// Workloads of the claim; all of the comparison if absent.
    pub workloads: Option<Vec<String>>,
    /// Sizes of the claim; all if absent.
    pub sizes: Option<Vec<String>>,
    /// Size of the others, if it differs.
    pub than_size: Option<String>,
    /// Whether only the mean over the workloads is claimed.
    #[serde(default)]
    pub mean: bool,
    #[serde(default)]
    pub claim: Claim,
    /// Number of experiments that the paper itself exempts, without saying which.
    #[serde(default)]
    pub exceptions: usize,
}

/// Relation of one system to another that a paper claims.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    #[default]
    Better,
    NotWorse,
    AboutEqual,
}

/// An effect of the model or the scale, measured with and without it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    pub id: String,
    pub title: String,
    #[serde(default)]
    pub what: String,
    #[serde(default)]
    pub workload: String,
    #[serde(default)]
    pub size: String,
    #[serde(default)]
    pub systems: Vec<String>,
    #[serde(default)]
    pub metric: Metric,
    #[serde(default)]
    pub machine: Settings,
    #[serde(default)]
    pub set: Settings,
    #[serde(default)]
    pub workload_set: Settings,
    /// Scale of time constants and sample counts, in place of the automatic one.
    pub scale: Option<u32>,
    #[serde(default)]
    pub huge: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    pub workload: String,
    pub size: String,
    pub systems: Vec<String>,
}

impl WorkloadRef {
    pub(crate) fn change(&self, quick: bool) -> Option<f64> {
        self.quick_change_at.filter(|_| quick).or(self.change_at)
    }
}

impl Comparison {
    pub(crate) fn machine<'a>(&'a self, paper: &'a Paper) -> &'a str {
        self.machine.as_deref().unwrap_or(&paper.machine)
    }

    pub(crate) fn after(&self, paper: &Paper) -> f64 {
        self.after.unwrap_or(paper.after)
    }

    pub(crate) fn sizes(&self, quick: bool) -> &[String] {
        match (&self.quick_sizes, quick) {
            (Some(sizes), true) => sizes,
            (None, true) => &self.sizes[..self.sizes.len().min(1)],
            (_, false) => &self.sizes,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} '{name}'; {advice}")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    advice: String,
}

impl UnknownName {
    pub(crate) fn new<'a>(what: &'static str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self { what, name: name.into(), advice: names::advice(name, known) }
    }
}

/// # Panics
/// A malformed file of `figures/`: a mistake in the source, found by the first test that reads it.
pub fn papers() -> Vec<Paper> {
    let read = |(name, text): &(&str, &str)| {
        toml::from_str(text).unwrap_or_else(|error| panic!("figures/{name}.toml: {error}"))
    };
    FILES.iter().map(read).collect()
}
