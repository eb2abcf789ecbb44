//! The scoreboard: plain data, from which the page, JSON and HTML are made.

use isotherm_core::Bytes;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scoreboard {
    pub version: String,
    pub quick: bool,
    pub partial: bool,
    pub seed: u64,
    pub tally: Tally,
    pub papers: Vec<PaperScore>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Ours has the paper's order.
    pub kept: usize,
    /// Ours does not tell the two apart.
    pub tie: usize,
    /// Ours has the opposite order.
    pub not_kept: usize,
    /// Not kept, within the number of experiments that the paper itself exempts.
    pub exempt: usize,
    pub not_yet: usize,
    /// The workload's pace is not known to be its original's.
    #[serde(default)]
    pub not_comparable: usize,
    /// A run that still changed, and holds too few of its policy's slowest control loop as far as it went.
    #[serde(default)]
    pub too_short: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Kept,
    Tie,
    NotKept,
    Exempt,
    NotYet,
    NotComparable,
    TooShort,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PaperScore {
    pub name: String,
    pub title: String,
    pub machine: String,
    pub sizes: String,
    pub after: f64,
    pub after_why: String,
    pub tally: Tally,
    /// Relative spread over seeds of each metric that was measured.
    pub noise: Vec<(Metric, f64)>,
    pub comparisons: Vec<Scored>,
    pub effects: Vec<EffectScore>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scored {
    pub id: String,
    pub place: String,
    pub title: String,
    pub metric: Metric,
    pub machine: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub huge: bool,
    pub after: f64,
    /// Values that differ by less than this share are a tie.
    pub margin: f64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_yet: Option<String>,
    /// Version, day and seed, if it was run by itself, later than the rest of the board.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<Updated>,
    pub systems: Vec<System>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Row>,
    /// Figures of a system against another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<Gain>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orderings: Vec<Judged>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Proof>,
    pub tally: Tally,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Updated {
    pub version: String,
    pub date: String,
    pub seed: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct System {
    pub id: String,
    pub title: String,
    pub policy: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    pub workload: String,
    pub ours: String,
    pub size: String,
    /// Ours, as `--fast` takes it.
    pub fast: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunFacts>,
    pub cells: Vec<Cell>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RunFacts {
    /// Accesses that missed the last-level cache.
    pub accesses: u64,
    pub footprint_bytes: Bytes,
    pub fast_bytes: Bytes,
    /// Divisor of sample counts.
    pub scale: f64,
    /// Divisor of time constants.
    pub time_scale: f64,
    /// Windows of its slowest control loop that each system had at least; `None` without such a system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cell {
    pub system: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<f64>,
    /// Whether the paper's figure is a bound or approximate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub about: bool,
    /// Our figure; infinite (null in JSON) for a steady state that is not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Gain {
    /// The figure in words: systems, cases, how they are gathered.
    pub words: String,
    /// Percent or times.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    pub paper: f64,
    /// Whether the paper's figure is a bound or approximate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub about: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours: Option<f64>,
    /// Cases that ours is gathered from, and all cases.
    pub cases: (usize, usize),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Judged {
    pub better: String,
    pub than: String,
    pub workload: String,
    /// The size; where the other's is another, both.
    pub size: String,
    /// Factor by which the better system is better in ours: above 1 if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advantage: Option<f64>,
    pub verdict: Verdict,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// Index in [`Scored::evidence`] of why it is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// An ordering measured otherwise: in hits, or with something switched off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    pub what: String,
    /// Factor by which the better system is then better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advantage: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    pub text: String,
    pub command: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EffectScore {
    pub id: String,
    pub title: String,
    pub what: String,
    pub case: String,
    pub switched: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<Updated>,
    pub metric: Metric,
    pub rows: Vec<EffectRow>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EffectRow {
    pub system: String,
    /// Value as everywhere else on the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl Cell {
    /// Returns ours over the paper's, if finite.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.ours? / self.paper?).filter(|ratio| ratio.is_finite())
    }
}

impl Scored {
    pub fn proof(&self, judged: &Judged) -> Option<&Proof> {
        self.evidence.get(judged.evidence?)
    }
}

impl Tally {
    pub fn count(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Kept => &mut self.kept,
            Verdict::Tie => &mut self.tie,
            Verdict::NotKept => &mut self.not_kept,
            Verdict::Exempt => &mut self.exempt,
            Verdict::NotYet => &mut self.not_yet,
            Verdict::NotComparable => &mut self.not_comparable,
            Verdict::TooShort => &mut self.too_short,
        } += 1;
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            kept: self.kept + other.kept,
            tie: self.tie + other.tie,
            not_kept: self.not_kept + other.not_kept,
            exempt: self.exempt + other.exempt,
            not_yet: self.not_yet + other.not_yet,
            not_comparable: self.not_comparable + other.not_comparable,
            too_short: self.too_short + other.too_short,
        }
    }

    /// Returns the number of judged orderings: kept, ties and not kept, without exempted ones.
    pub fn judged(self) -> usize {
        self.kept + self.tie + self.not_kept
    }
}
