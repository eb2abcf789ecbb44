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

/// Tries probes on an ordering. Hits are known from the runs; probes are further runs, requested by asking
/// for their values. Without its costs, a system is as fast as its hits let it be: where the hits do not have
/// the order either, the probes are not run. The last probe has all that the others have and comes first:
/// where it does not bring the order back, the others are not run. A quick run probes nothing.
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
    if hits.is_some_and(|by| verdict(by) == Verdict::NotKept) {
        return probed;
    }
    let under = |one| advantage(&Values { switched: Some(one), ..*values }).ok();
    let kept = |by: Option<f64>| by.is_some_and(|by| verdict(by) == Verdict::Kept);
    let Some((all, parts)) = probes.split_last().filter(|_| !values.mode.quick) else { return probed };
    let by_all = under(all);
    if kept(by_all) {
        for one in parts {
            let by = under(one);
            probed.back = probed.back.or(kept(by).then_some(one));
            probed.tried.push(Tried { what: one.title.clone(), advantage: by });
        }
        probed.back = probed.back.or(Some(all));
    }
    probed.tried.push(Tried { what: all.title.clone(), advantage: by_all });
    probed
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::evidence;
    use crate::figures::papers;
    use crate::request::Mode;
    use crate::run::Results;

    /// Returns what a probe finds where the better system has `hits` times the other's, and the order is kept
    /// under the probes of these names; and what it tried.
    fn found(quick: bool, hits: f64, kept_under: &[&str]) -> (Option<String>, Vec<String>) {
        let (probes, papers, nothing) = (evidence::all().probes, papers(), Results::dry());
        let values = Values::new(&papers[0], Metric::Performance, Mode { quick, seed: 1 }, &nothing);
        let tried = RefCell::new(Vec::new());
        let advantage = |values: &Values<'_>| {
            let Some(switched) = values.switched else { return Ok(hits) };
            tried.borrow_mut().push(switched.id.clone());
            Ok(if kept_under.contains(&switched.id.as_str()) { 2.0 } else { 0.5 })
        };
        let verdict = |by| if by > 1.0 { Verdict::Kept } else { Verdict::NotKept };
        let back = probe(&values, &probes, advantage, verdict).back.map(|probe| probe.id.clone());
        (back, tried.into_inner())
    }

    fn words(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|&id| id.to_owned()).collect()
    }

    #[test]
    fn a_part_is_probed_only_where_all_brings_the_order_back() {
        assert_eq!(found(false, 1.5, &[]), (None, words(&["free"])));
        assert_eq!(found(false, 1.5, &["free"]), (Some("free".into()), words(&["free", "samples"])));
        assert_eq!(found(false, 1.5, &["free", "samples"]).0, Some("samples".into()));
        assert_eq!(found(true, 1.5, &["free"]), (None, words(&[])), "a quick run probes nothing");
    }

    #[test]
    fn costs_are_no_reason_where_hits_do_not_have_the_order_either() {
        assert_eq!(found(false, 1.0, &["free"]), (None, words(&[])));
    }

    #[test]
    fn the_last_probe_has_all_that_the_others_have() {
        let probes = evidence::all().probes;
        let (all, parts) = probes.split_last().expect("probes");
        let held =
            |part: &Effect| part.machine.iter().all(|(key, value)| all.machine.get(key) == Some(value));
        assert!(parts.iter().all(held));
    }
}
