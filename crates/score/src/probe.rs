//! Probes orderings of speeds that are not kept: does the better system serve more loads from the fast tier,
//! and does the order come back when tiering costs nothing?

use crate::figures::Effect;
use crate::metric::Metric;
use crate::scoreboard::{Tried, Verdict};
use crate::values::{Missing, Values};

const COSTS: &str = "costs";
const MORE_HITS: &str = "more-hits";
const FEWER_HITS: &str = "fewer-hits";
#[cfg(test)]
pub(crate) const REASONS: [&str; 3] = [COSTS, MORE_HITS, FEWER_HITS];

#[derive(Debug, Default)]
pub(crate) struct Probed {
    pub(crate) tried: Vec<Tried>,
    pub(crate) reason: Option<&'static str>,
}

/// Tries every probe on an ordering. Hits are known from the runs; probes are further runs, requested by
/// asking for their values.
pub(crate) fn probe(
    values: &Values<'_>,
    probes: &[Effect],
    advantage: impl Fn(&Values<'_>) -> Result<f64, Missing>,
    verdict: impl Fn(f64) -> Verdict,
) -> Probed {
    if !matches!(values.metric, Metric::Performance | Metric::Slowdown) {
        return Probed::default();
    }
    let hits = advantage(&Values { metric: Metric::HitRatio, ..*values }).ok();
    let mut tried = vec![Tried { what: "hits".into(), advantage: hits }];
    let mut back = None;
    for one in probes {
        let by = advantage(&Values { switched: Some(one), ..*values }).ok();
        back = back.or(by).map(|first| by.map_or(first, |by| first.max(by)));
        tried.push(Tried { what: one.title.clone(), advantage: by });
    }
    let reason = back.map(|by| match (verdict(by), hits) {
        (Verdict::Kept, _) => COSTS,
        (_, Some(hits)) if hits > 1.0 => MORE_HITS,
        _ => FEWER_HITS,
    });
    Probed { tried, reason }
}
