//! Judges the papers' orderings.
//!
//! An ordering is one pair of systems on one workload at one size. It comes from a claim of the text, or from
//! two cells that the paper prints more than 1 % apart. Ours is *kept* if the same system is better by more
//! than the margin, *not kept* if the other is, and a *tie* in between. A claim with exceptions exempts as
//! many experiments as the paper does, the worst first.

use crate::evidence::Paragraphs;
use crate::figures::{Claim, Comparison, Ordering, Value};
use crate::probe::{Probed, probe};
use crate::scoreboard::{Judged, Proof, Verdict};
use crate::values::{Missing, Values};

/// Smallest margin: smaller differences are no order, in the paper's cells neither.
pub(crate) const MIN_MARGIN: f64 = 0.01;
/// Largest difference of two that a paper calls about equal: bars that differ by less look alike.
const ABOUT: f64 = 0.03;

#[derive(Debug, Clone, PartialEq)]
struct Pair {
    better: String,
    than: String,
    /// `None` for the mean over the workloads.
    workload: Option<String>,
    size: String,
    than_size: String,
    claim: Claim,
}

/// Judges everything that a comparison claims; returns the evidence that the orderings refer to.
pub(crate) fn orderings(
    values: &Values<'_>,
    comparison: &Comparison,
    margin: f64,
    paragraphs: &Paragraphs,
) -> (Vec<Judged>, Vec<Proof>) {
    let mut proofs = Vec::new();
    let mut judge = |pair: &Pair| {
        let (mut judged, proof) = judge(values, comparison, pair, margin, paragraphs);
        judged.evidence = proof.map(|proof| number(&mut proofs, proof));
        judged
    };
    let mut known: Vec<Pair> = Vec::new();
    let mut judged = Vec::new();
    for ordering in &comparison.orderings {
        let mut pairs = claimed(ordering, comparison, values.mode.quick);
        pairs.retain(|pair| !covered(&known, pair));
        let mut group: Vec<Judged> = pairs.iter().map(&mut judge).collect();
        exempt(&mut group, ordering.exceptions);
        known.extend(pairs);
        judged.extend(group);
    }
    let printed = printed(comparison, values.mode.quick);
    let printed = printed.iter().filter(|pair| !covered(&known, pair));
    judged.extend(printed.map(judge));
    (judged, proofs)
}

fn number(proofs: &mut Vec<Proof>, proof: Proof) -> usize {
    proofs.iter().position(|known| *known == proof).unwrap_or_else(|| {
        proofs.push(proof);
        proofs.len() - 1
    })
}

fn covered(known: &[Pair], pair: &Pair) -> bool {
    known.iter().any(|other| {
        (&other.better, &other.than, &other.workload, &other.size, &other.than_size)
            == (&pair.better, &pair.than, &pair.workload, &pair.size, &pair.than_size)
    })
}

fn claimed(ordering: &Ordering, comparison: &Comparison, quick: bool) -> Vec<Pair> {
    let sizes = ordering.sizes.as_deref().unwrap_or(comparison.sizes(quick));
    let workloads: Vec<Option<String>> = if ordering.mean {
        vec![None]
    } else {
        ordering.workloads.as_ref().unwrap_or(&comparison.workloads).iter().cloned().map(Some).collect()
    };
    let mut pairs = Vec::new();
    for workload in &workloads {
        for size in sizes {
            pairs.extend(ordering.than.iter().map(|than| Pair {
                better: ordering.better.clone(),
                than: than.clone(),
                workload: workload.clone(),
                size: size.clone(),
                than_size: ordering.than_size.as_ref().unwrap_or(size).clone(),
                claim: ordering.claim,
            }));
        }
    }
    pairs
}

fn printed(comparison: &Comparison, quick: bool) -> Vec<Pair> {
    let sizes = comparison.sizes(quick);
    let cell = |value: &&Value| {
        let in_mode = value.size.as_ref().is_some_and(|size| sizes.contains(size));
        in_mode
            && value.workload.is_some()
            && value.baseline.is_none()
            && value.stat.is_none()
            && !value.about
    };
    let cells: Vec<&Value> = comparison.values.iter().filter(cell).collect();
    let mut pairs = Vec::new();
    for one in &cells {
        for other in &cells {
            let same = (&one.workload, &one.size) == (&other.workload, &other.size);
            let advantage = comparison.metric.advantage(one.value, other.value);
            if same && advantage > 1.0 + MIN_MARGIN {
                pairs.push(Pair {
                    better: one.system.clone(),
                    than: other.system.clone(),
                    workload: one.workload.clone(),
                    size: one.size.clone().unwrap_or_default(),
                    than_size: one.size.clone().unwrap_or_default(),
                    claim: Claim::Better,
                });
            }
        }
    }
    pairs
}

fn judge(
    values: &Values<'_>,
    comparison: &Comparison,
    pair: &Pair,
    margin: f64,
    paragraphs: &Paragraphs,
) -> (Judged, Option<Proof>) {
    let advantage = |values: &Values<'_>| match &pair.workload {
        Some(workload) => advantage(values, pair, workload),
        None => mean_advantage(values, pair, &comparison.workloads),
    };
    let decide = |by: f64| verdict(by, margin, pair.claim);
    let workload = pair.workload.as_deref().unwrap_or("mean");
    let size = if pair.size == pair.than_size {
        pair.size.clone()
    } else {
        format!("{} against {}", pair.size, pair.than_size)
    };
    let id = format!("{}/{}>{}/{workload}/{size}", comparison.id, pair.better, pair.than);
    let by = advantage(values);
    let mut verdict = by.as_ref().map_or_else(without_figures, |&by| decide(by));
    if verdict == Verdict::Kept && pair.claim != Claim::Better && !varies(values, comparison, pair) {
        verdict = Verdict::Tie;
    }
    let failed = verdict == Verdict::NotKept;
    let probed =
        if failed { probe(values, &paragraphs.probes, advantage, decide) } else { Probed::default() };
    let proof = failed.then(|| paragraphs.proof(&id, probed.back));
    let judged = Judged {
        better: pair.better.clone(),
        than: pair.than.clone(),
        workload: workload.into(),
        size,
        verdict,
        evidence: None,
        tried: probed.tried,
        missing: by.as_ref().err().map(ToString::to_string),
        advantage: by.ok(),
    };
    (judged, proof)
}

fn without_figures(why: &Missing) -> Verdict {
    match why {
        Missing::NotComparable(_) => Verdict::NotComparable,
        Missing::TooShort(_) => Verdict::TooShort,
        Missing::NotYet(_) => Verdict::NotYet,
    }
}

fn advantage(values: &Values<'_>, pair: &Pair, workload: &str) -> Result<f64, Missing> {
    let ours = values.judged(&pair.better, workload, &pair.size);
    // Ask for both even if one is missing: the plan runs what is asked for.
    let other = values.judged(&pair.than, workload, &pair.than_size);
    Ok(values.metric.advantage(ours?, other?))
}

/// Returns the geometric mean over the workloads that can be run.
fn mean_advantage(values: &Values<'_>, pair: &Pair, workloads: &[String]) -> Result<f64, Missing> {
    let all: Vec<_> = workloads.iter().map(|workload| advantage(values, pair, workload)).collect();
    let known: Vec<f64> = all.iter().flatten().map(|by| by.ln()).collect();
    match (known.as_slice(), all.into_iter().find_map(Result::err)) {
        ([], missing) => Err(missing.unwrap_or_else(|| Missing::NotYet("no workload".into()))),
        (known, _) => Ok((known.iter().sum::<f64>() / known.len() as f64).exp()),
    }
}

fn verdict(advantage: f64, margin: f64, claim: Claim) -> Verdict {
    let margin = if claim == Claim::AboutEqual { margin.max(ABOUT) } else { margin };
    let (better, worse) = (advantage > 1.0 + margin, advantage < 1.0 / (1.0 + margin));
    match claim {
        _ if worse => Verdict::NotKept,
        Claim::AboutEqual if better => Verdict::NotKept,
        Claim::Better if !better => Verdict::Tie,
        _ => Verdict::Kept,
    }
}

/// Returns whether any two systems of a comparison differ in the pair's cases. Where none do, what the paper
/// varies has no part in our runs, and that they are equal shows nothing.
fn varies(values: &Values<'_>, comparison: &Comparison, pair: &Pair) -> bool {
    let workloads = pair.workload.as_ref().map_or(comparison.workloads.as_slice(), std::slice::from_ref);
    let cases = workloads
        .iter()
        .flat_map(|workload| [&pair.size, &pair.than_size].into_iter().map(move |size| (workload, size)));
    cases.into_iter().any(|(workload, size)| {
        let all = comparison.systems.iter().filter_map(|system| values.value(system, workload, size).ok());
        let mut all = all.map(f64::to_bits);
        all.next().is_some_and(|first| all.any(|other| other != first))
    })
}

fn exempt(group: &mut [Judged], exceptions: usize) {
    for _ in 0..exceptions {
        let failed = group.iter().filter(|one| one.verdict == Verdict::NotKept);
        let by = |one: &&Judged| one.advantage.unwrap_or(1.0);
        let Some(worst) = failed.min_by(|one, other| by(one).total_cmp(&by(other))) else { return };
        let (workload, size) = (worst.workload.clone(), worst.size.clone());
        for one in group.iter_mut() {
            if one.verdict == Verdict::NotKept && (&one.workload, &one.size) == (&workload, &size) {
                one.verdict = Verdict::Exempt;
            }
        }
    }
}

/// Returns the relative spread over seeds of a paper's repeated runs; `None` if it was not measured.
pub(crate) fn noise(values: &Values<'_>) -> Option<f64> {
    let probe = &values.paper.noise;
    let spread = |system: &String| {
        let of = |reseed| Values { reseed, ..*values }.value(system, &probe.workload, &probe.size);
        // Ask for all before one may be missing.
        let [one, two, three] = [of(0), of(1), of(2)];
        let seeds = [one.ok()?, two.ok()?, three.ok()?];
        let pairs = seeds.iter().flat_map(|&one| seeds.iter().map(move |&other| (one, other)));
        pairs.map(|(one, other)| values.metric.advantage(one, other) - 1.0).reduce(f64::max)
    };
    probe.systems.iter().map(spread).collect::<Vec<_>>().into_iter().flatten().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_the_margin_there_is_no_order() {
        let better = |by, margin| verdict(by, margin, Claim::Better);
        assert_eq!(better(1.02, 0.01), Verdict::Kept);
        assert_eq!(better(1.005, 0.01), Verdict::Tie);
        assert_eq!(better(1.02, 0.05), Verdict::Tie, "noise widens the margin");
        assert_eq!(better(f64::INFINITY, 0.01), Verdict::Kept);
        assert_eq!(verdict(0.995, 0.01, Claim::NotWorse), Verdict::Kept, "being equal was enough");
        assert_eq!(verdict(0.98, 0.01, Claim::NotWorse), Verdict::NotKept);
    }

    /// Whatever was better counted as about equal.
    #[test]
    fn about_equal_is_judged_on_both_sides() {
        let equal = |by| verdict(by, 0.01, Claim::AboutEqual);
        assert_eq!([0.98, 1.0, 1.02].map(equal), [Verdict::Kept; 3]);
        assert_eq!([0.9, 1.1, f64::INFINITY].map(equal), [Verdict::NotKept; 3]);
    }

    fn judged(workload: &str, than: &str, advantage: f64) -> Judged {
        Judged {
            better: "a".into(),
            than: than.into(),
            workload: workload.into(),
            size: "1:8".into(),
            advantage: Some(advantage),
            verdict: verdict(advantage, 0.01, Claim::Better),
            tried: Vec::new(),
            evidence: None,
            missing: None,
        }
    }

    #[test]
    fn exceptions_exempt_whole_experiments_the_worst_first() {
        let mut group =
            [judged("x", "b", 0.9), judged("y", "b", 0.5), judged("y", "c", 0.95), judged("x", "c", 1.5)];
        exempt(&mut group, 1);
        let verdicts = group.map(|one| one.verdict);
        assert_eq!(verdicts, [Verdict::NotKept, Verdict::Exempt, Verdict::Exempt, Verdict::Kept]);
    }
}
