//! Probes orderings of speeds that are not kept: does the better system serve more loads from the fast tier,
//! and does the order come back without one of the model's costs?

use crate::figures::Effect;
use crate::metric::Metric;
use crate::scoreboard::{Tried, Verdict};
use crate::values::{Missing, Values};

#[derive(Debug, Default)]
pub(crate) struct Probed<'a> {
    pub(crate) tried: Vec<Tried>,
    /// The first probe under which the order is kept.
    pub(crate) back: Option<&'a Effect>,
}

/// Tries every probe on an ordering. Hits are known from the runs; probes are further runs, requested by
/// asking for their values.
pub(crate) fn probe<'a>(
    values: &Values<'_>,
    probes: &'a [Effect],
    advantage: impl Fn(&Values<'_>) -> Result<f64, Missing>,
    verdict: impl Fn(f64) -> Verdict,
) -> Probed<'a> {
    if !matches!(values.metric, Metric::Performance | Metric::Slowdown) {
        return Probed::default();
    }
    let hits = advantage(&Values { metric: Metric::HitRatio, ..*values }).ok();
    let mut probed = Probed { tried: vec![Tried { what: "hits".into(), advantage: hits }], back: None };
    for one in probes {
        let by = advantage(&Values { switched: Some(one), ..*values }).ok();
        let kept = by.is_some_and(|by| verdict(by) == Verdict::Kept);
        probed.back = probed.back.or(kept.then_some(one));
        probed.tried.push(Tried { what: one.title.clone(), advantage: by });
    }
    probed
}
