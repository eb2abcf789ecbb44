//! A sizing in words.

use isotherm_sim::{Outcome, PolicySize, RunLength, SizeReport};

use super::cost;
use crate::format::{count, counted, list, percent};

/// Says for which run the sizes are.
pub(super) fn length(report: &SizeReport) -> String {
    let rounds = |length: RunLength| {
        let RunLength { rounds, simulated } = length;
        let most =
            if simulated < rounds { format!(", at most {simulated} simulated") } else { String::new() };
        format!("the long run: {} of the input{most}", counted(rounds, "round", "rounds"))
    };
    report.length.map_or("one replay of the input".into(), rounds)
}

/// Says how the input was sub-sampled.
pub(super) fn sampling(report: &SizeReport) -> String {
    let sampling = &report.sampling;
    let number = sampling.accesses.len();
    if sampling.one_in == 1 {
        return format!("none: {number} seeds over the whole input");
    }
    let mean = sampling.accesses.iter().sum::<u64>() / (number as u64).max(1);
    format!("{number} of one page in {}, about {} accesses each", sampling.one_in, count(mean))
}

/// Returns the notes needed to read the numbers right.
pub(super) fn notes(report: &SizeReport) -> Vec<String> {
    [verified, at_most, costs, unverified].iter().filter_map(|note| note(report)).collect()
}

fn names(report: &SizeReport, which: impl Fn(&PolicySize) -> bool) -> Option<String> {
    let names: Vec<String> =
        report.policies.iter().filter(|policy| which(policy)).map(|policy| policy.policy.clone()).collect();
    (!names.is_empty()).then(|| list(&names))
}

fn verified(report: &SizeReport) -> Option<String> {
    let describe = |policy: &PolicySize| {
        let size = policy.recommended.as_ref()?;
        let run = policy.full.iter().find(|run| run.fast_bytes == size.fast_bytes)?;
        let place = if run.within { "" } else { ", outside of it" };
        let expected = format!("{} to {} expected{place}", cost(run.low), cost(run.high));
        Some(format!("{} {} ({expected}; {} full)", policy.policy, cost(run.slowdown), policy.full.len()))
    };
    let runs: Vec<String> = report.policies.iter().filter_map(describe).collect();
    let error = report.policies.iter().filter_map(|policy| policy.error).reduce(f64::max)?;
    (!runs.is_empty()).then(|| {
        format!(
            "Simulated in full at the recommended size: {}. Over all full simulations, the estimates from \
             sub-samples were off by at most {} of all-DRAM time.",
            list(&runs),
            percent(error)
        )
    })
}

fn at_most(report: &SizeReport) -> Option<String> {
    let smallest = |policy: &PolicySize| {
        let least = policy.curve.first().map(|point| point.fast_bytes);
        policy.recommended.as_ref().is_some_and(|size| Some(size.fast_bytes) == least)
    };
    let names = names(report, smallest)?;
    Some(format!("1/64 of the footprint, the smallest size tried, suffices: {names}. Less may do."))
}

fn costs(report: &SizeReport) -> Option<String> {
    let names = names(report, |policy| policy.outcome == Outcome::Never)?;
    Some(format!(
        "Over the budget even with the whole footprint fast: {names}. Its own cost, or the kernel's reserve \
         of the fast tier, exceeds the budget."
    ))
}

fn unverified(report: &SizeReport) -> Option<String> {
    let names = names(report, |policy| {
        policy.outcome == Outcome::Estimated || policy.outcome == Outcome::Unconfirmed
    })?;
    Some(format!("Not confirmed by a full simulation, from sub-samples only: {names}."))
}
