//! Metrics of a run, and their directions.

use serde::{Deserialize, Serialize};

use crate::adaptation::adaptation_minutes;
use crate::outcome::Outcome;

/// [`Self::words`] says what each measures, and its unit.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    #[default]
    Performance,
    Slowdown,
    HitRatio,
    Promotions,
    Migrations,
    /// Bytes read and written on the slow tier, page copies included, in percent of the program's.
    SlowTraffic,
    Adaptation,
    Agreement,
    Metadata,
    /// Largest number of pages whose counter is at its maximum, in percent of the footprint.
    Saturated,
    PageStalls,
    WorkloadStalls,
    /// Mean over windows.
    Mlp,
    MlpTrend,
}

impl Metric {
    pub fn words(self) -> &'static str {
        match self {
            Self::Performance => "speed, % of all-fast",
            Self::Slowdown => "slowdown over all-fast, %",
            Self::HitRatio => "hit ratio of loads, %",
            Self::Promotions => "promotions, % of the footprint's pages",
            Self::Migrations => "promotions and demotions, % of the footprint's pages",
            Self::SlowTraffic => "bytes on the slow tier, % of the program's",
            Self::Adaptation => "minutes to adapt, at the paper's scale",
            Self::Agreement => "decisions that agree with exact counts, %",
            Self::Metadata => "metadata at the paper's size, % of the footprint",
            Self::Saturated => "pages with a saturated counter, % of the footprint",
            Self::PageStalls => "rank correlation with the stall of each page",
            Self::WorkloadStalls => "Pearson's correlation with the stalls of each workload",
            Self::Mlp => "mean MLP of the windows",
            Self::MlpTrend => "Pearson's correlation with T1 / T2 of each window",
        }
    }

    pub fn higher_is_better(self) -> bool {
        matches!(self, Self::Performance | Self::HitRatio | Self::Agreement | Self::Mlp) || self.correlates()
    }

    /// Returns whether it is a correlation with the core model's truth, from -1 to 1.
    pub fn correlates(self) -> bool {
        matches!(self, Self::PageStalls | Self::WorkloadStalls | Self::MlpTrend)
    }

    /// Returns whether it is computed by itself, without a run that other metrics share.
    pub fn computed(self) -> bool {
        matches!(self, Self::Metadata | Self::Mlp) || self.correlates()
    }

    pub(crate) fn intervals(self) -> usize {
        if self == Self::Adaptation { 1000 } else { isotherm_sim::INTERVALS }
    }

    /// Returns the value of a run without its first share `after`, where the hot set changes at `change_at`:
    /// infinite if a steady state is not reached, `None` if the run does not tell.
    pub(crate) fn of(self, outcome: &Outcome, after: f64, change_at: Option<f64>) -> Option<f64> {
        let pages = |count: f64| 100.0 * count / outcome.pages.max(1) as f64;
        Some(match self {
            Self::Performance => 100.0 / outcome.slowdown(after),
            Self::Slowdown => 100.0 * (outcome.slowdown(after) - 1.0),
            Self::HitRatio => 100.0 * outcome.load_hit_ratio(after),
            Self::Promotions => pages(outcome.sums.promotions),
            Self::Migrations => pages(outcome.sums.promotions + outcome.sums.demotions),
            Self::SlowTraffic => 100.0 * outcome.sums.slow_bytes / outcome.sums.program_bytes.max(1.0),
            Self::Adaptation => adaptation_minutes(outcome, change_at?),
            Self::Agreement => {
                let (all, against) =
                    (outcome.gauges.get("audited-decisions")?, outcome.gauges.get("audited-disagreements")?);
                100.0 * (1.0 - against / all.max(1.0))
            }
            Self::Saturated => {
                100.0 * outcome.max_gauges.get("saturated-pages")? / outcome.pages.max(1) as f64
            }
            Self::Metadata | Self::PageStalls | Self::WorkloadStalls | Self::Mlp | Self::MlpTrend => {
                return None;
            }
        })
    }

    /// Returns how much better `ours` is than `other`: above 1 if better. Compares slowdowns as times, and
    /// correlations by their distance from -1.
    pub(crate) fn advantage(self, ours: f64, other: f64) -> f64 {
        match self {
            Self::Slowdown => (100.0 + other) / (100.0 + ours),
            _ if self.correlates() => (1.0 + ours) / (1.0 + other),
            _ if ours == other => 1.0,
            _ if self.higher_is_better() => ours / other,
            _ => other / ours,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advantage_is_above_one_whatever_the_direction() {
        assert_eq!(Metric::Performance.advantage(90.0, 60.0), 1.5);
        assert_eq!(Metric::Promotions.advantage(10.0, 40.0), 4.0);
        assert_eq!(Metric::Slowdown.advantage(0.0, 100.0), 2.0, "half of the time");
        assert_eq!(Metric::Adaptation.advantage(5.0, f64::INFINITY), f64::INFINITY);
        assert_eq!(Metric::Adaptation.advantage(f64::INFINITY, f64::INFINITY), 1.0);
        assert_eq!(Metric::Promotions.advantage(0.0, 0.0), 1.0);
        assert_eq!(Metric::PageStalls.advantage(0.5, -0.25), 2.0, "whatever the sign");
    }
}
