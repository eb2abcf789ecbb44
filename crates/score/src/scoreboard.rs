//! Defines the scoreboard: plain data, from which the page, JSON and HTML are made.

use isotherm_core::Bytes;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// Everything that was compared.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scoreboard {
    /// Isotherm's version.
    pub version: String,
    /// Whether streams were shorter and sizes fewer.
    pub quick: bool,
    /// Whether comparisons were left out.
    pub partial: bool,
    /// The seed of every random choice.
    pub seed: u64,
    /// All orderings of all papers.
    pub tally: Tally,
    /// One entry a paper.
    pub papers: Vec<PaperScore>,
}

/// How many orderings came out how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Ours has the paper's order.
    pub kept: usize,
    /// Ours does not tell the two apart.
    pub tie: usize,
    /// Ours has the opposite order.
    pub not_kept: usize,
    /// Not kept, in the number of experiments that the paper itself exempts.
    pub exempt: usize,
    /// Not judged yet.
    pub not_yet: usize,
}

/// What became of an ordering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// See [`Tally::kept`].
    Kept,
    /// See [`Tally::tie`].
    Tie,
    /// See [`Tally::not_kept`].
    NotKept,
    /// See [`Tally::exempt`].
    Exempt,
    /// See [`Tally::not_yet`].
    NotYet,
}

/// One paper.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PaperScore {
    /// Its kebab-case name.
    pub name: String,
    /// Its name in print.
    pub title: String,
    /// The machine profile.
    pub machine: String,
    /// What its ratios mean and how they are translated.
    pub sizes: String,
    /// The share of each run left out, and why.
    pub after: f64,
    /// Why that share.
    pub after_why: String,
    /// Its orderings.
    pub tally: Tally,
    /// Relative spread over seeds by metric; what is not there was not measured.
    pub noise: Vec<(Metric, f64)>,
    /// Figures and tables.
    pub comparisons: Vec<Scored>,
    /// Effects of model and scale.
    pub effects: Vec<EffectScore>,
}

/// One figure or table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scored {
    /// Paper and place.
    pub id: String,
    /// Where it stands in the paper.
    pub place: String,
    /// What is compared.
    pub title: String,
    /// What is measured.
    pub metric: Metric,
    /// The machine profile.
    pub machine: String,
    /// Whether pages are of 2 MiB.
    pub huge: bool,
    /// The share of each run left out.
    pub after: f64,
    /// Values this near each other are a tie: a share of them.
    pub margin: f64,
    /// What a reader must know.
    pub note: String,
    /// Why it cannot be run.
    pub not_yet: Option<String>,
    /// With which version and seed it was run by itself, later than the rest of the board.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<Updated>,
    /// The systems, in the columns' order.
    pub systems: Vec<System>,
    /// A row a workload and size.
    pub rows: Vec<Row>,
    /// Figures of a system against another.
    pub gains: Vec<Gain>,
    /// The paper's orderings, judged.
    pub orderings: Vec<Judged>,
    /// Their sums.
    pub tally: Tally,
}

/// What a part that was run later than the rest of its board was run with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Updated {
    /// Isotherm's version.
    pub version: String,
    /// The day, as `2026-11-22`.
    pub date: String,
    /// The seed of every random choice.
    pub seed: u64,
}

/// A system of a paper in our terms.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct System {
    /// The paper's.
    pub id: String,
    /// In print.
    pub title: String,
    /// Ours, with settings.
    pub policy: String,
    /// Why these settings.
    pub why: String,
}

/// A workload at a size.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The paper's workload.
    pub workload: String,
    /// Ours, with settings.
    pub ours: String,
    /// The paper's size.
    pub size: String,
    /// Ours, as `--fast` takes it.
    pub fast: String,
    /// Why that size.
    pub why: String,
    /// The stream, if one was run.
    pub run: Option<RunFacts>,
    /// One a system.
    pub cells: Vec<Cell>,
}

/// What stands behind a row.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RunFacts {
    /// Accesses that missed the last-level cache.
    pub accesses: u64,
    /// Bytes of the pages touched.
    pub footprint_bytes: Bytes,
    /// Size of the fast tier.
    pub fast_bytes: Bytes,
    /// By what sample counts were divided.
    pub scale: f64,
    /// By what time constants were divided.
    pub time_scale: f64,
}

/// A system's figure, the paper's and ours.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cell {
    /// The paper's system.
    pub system: String,
    /// The paper's figure.
    pub paper: Option<f64>,
    /// Whether the paper's figure is a bound or approximate.
    pub about: bool,
    /// Ours; infinite (null in JSON) for a steady state that is not reached.
    pub ours: Option<f64>,
    /// Ours over the paper's.
    pub ratio: Option<f64>,
    /// Why there is none of ours.
    pub missing: Option<String>,
}

/// A figure of one system against another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Gain {
    /// The figure in words: systems, cases, how they are gathered.
    pub words: String,
    /// Percent or times.
    pub unit: String,
    /// The paper's.
    pub paper: f64,
    /// Whether the paper's is a bound or approximate.
    pub about: bool,
    /// Ours.
    pub ours: Option<f64>,
    /// Cases that ours is gathered from, and cases that there are.
    pub cases: (usize, usize),
}

/// One ordering, judged.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Judged {
    /// Comparison, systems, workload and size: what evidence refers to.
    pub id: String,
    /// The better one, says the paper.
    pub better: String,
    /// The other.
    pub than: String,
    /// The workload, or `mean`.
    pub workload: String,
    /// The size; where the other's is another, both.
    pub size: String,
    /// How much better the better one is in ours: a factor, above 1 if better.
    pub advantage: Option<f64>,
    /// What became of it.
    pub verdict: Verdict,
    /// What was tried on one that is not kept.
    pub tried: Vec<Tried>,
    /// Why it is not kept.
    pub evidence: Option<Proof>,
    /// Why it is not judged.
    pub missing: Option<String>,
}

/// The same ordering measured otherwise: in hits, or with something switched off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// What is measured or switched.
    pub what: String,
    /// How much better the better one is then.
    pub advantage: Option<f64>,
}

/// Evidence for why an ordering is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// What is the case.
    pub text: String,
    /// What shows it.
    pub command: String,
}

/// An effect, measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EffectScore {
    /// Paper and name.
    pub id: String,
    /// What is switched.
    pub title: String,
    /// What it stands for.
    pub what: String,
    /// Workload and size.
    pub case: String,
    /// The settings that switch it.
    pub switched: String,
    /// As of a comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<Updated>,
    /// What is measured.
    pub metric: Metric,
    /// One a system.
    pub rows: Vec<EffectRow>,
}

/// A system with and without an effect.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EffectRow {
    /// The paper's system.
    pub system: String,
    /// As everywhere else on the page.
    pub with: Option<f64>,
    /// Switched.
    pub without: Option<f64>,
    /// Why there are no figures.
    pub missing: Option<String>,
}

impl Tally {
    /// Counts one more.
    pub fn count(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Kept => &mut self.kept,
            Verdict::Tie => &mut self.tie,
            Verdict::NotKept => &mut self.not_kept,
            Verdict::Exempt => &mut self.exempt,
            Verdict::NotYet => &mut self.not_yet,
        } += 1;
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            kept: self.kept + other.kept,
            tie: self.tie + other.tie,
            not_kept: self.not_kept + other.not_kept,
            exempt: self.exempt + other.exempt,
            not_yet: self.not_yet + other.not_yet,
        }
    }

    /// The orderings that were judged: kept or not, ties included, exempted ones left out.
    pub fn judged(self) -> usize {
        self.kept + self.tie + self.not_kept
    }
}
