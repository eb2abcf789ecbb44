//! Two results side by side: what differs in their inputs, then their figures, and which is better.

mod json;
mod judge;
mod page;
mod read;
mod words;

use serde::Serialize;

use read::{FIGURES, Fact, Outcome, Run};

pub use json::compare_json;
pub use page::compare_html;
pub use words::compare_text;

/// Two texts that cannot be compared, in one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CompareError(String);

/// Two results of any verb.
#[derive(Debug)]
pub struct Comparison {
    outcomes: [Outcome; 2],
    inputs: Vec<Difference>,
    pairs: Vec<Pair>,
    /// Names of runs that only one of the two has.
    only: [Vec<String>; 2],
}

/// Something that differs in what went into the two.
#[derive(Debug, Serialize)]
struct Difference {
    name: String,
    a: Option<String>,
    b: Option<String>,
}

/// A run of the first result, and its counterpart in the second.
#[derive(Debug)]
struct Pair {
    a: Run,
    b: Run,
}

impl Comparison {
    /// Compares two results, each with the name of its file.
    ///
    /// # Errors
    /// A text that is no result of Isotherm, or two that have no figure in common.
    pub fn new(a: (&str, &str), b: (&str, &str)) -> Result<Self, CompareError> {
        let [a, b] = [a, b].map(|(file, text)| Outcome::read(file, text));
        let outcomes = [a?, b?];
        let (pairs, left) = paired(outcomes.each_ref().map(Outcome::runs));
        let common = |pair: &Pair| FIGURES.iter().any(|figure| pair.values(figure).is_some());
        if !pairs.iter().any(common) {
            let told = outcomes.each_ref().map(|outcome| {
                let names: Vec<String> = outcome.runs().iter().take(3).map(Run::name).collect();
                format!("the {} {} tells of {}", outcome.kind.name(), outcome.file, names.join(", "))
            });
            return Err(CompareError(format!(
                "nothing in common: {}; expected figures of the same policy",
                told.join(", ")
            )));
        }
        let inputs = differences(&outcomes.each_ref().map(Outcome::facts));
        let only = left.map(|runs| runs.iter().map(Run::name).collect());
        Ok(Self { outcomes, inputs, pairs, only })
    }
}

/// Pairs runs of the same policy and size, then those of the same policy alone; a single run of each side is
/// a pair whatever its policy. Returns those left as well.
fn paired([mut ours, mut theirs]: [Vec<Run>; 2]) -> (Vec<Pair>, [Vec<Run>; 2]) {
    if let ([a], [b]) = (&ours[..], &theirs[..]) {
        return (vec![Pair { a: a.clone(), b: b.clone() }], Default::default());
    }
    let mut pairs = Vec::new();
    let exact = |a: &Run, b: &Run| a.policy() == b.policy() && a.fast == b.fast;
    take_pairs(&mut ours, &mut theirs, exact, &mut pairs);
    let (names, others) = (policies(&ours), policies(&theirs));
    let once = |names: &[String], policy: &str| names.iter().filter(|name| *name == policy).count() == 1;
    let alone =
        |a: &Run, b: &Run| a.policy() == b.policy() && once(&names, a.policy()) && once(&others, b.policy());
    take_pairs(&mut ours, &mut theirs, alone, &mut pairs);
    (pairs, [ours, theirs])
}

fn policies(runs: &[Run]) -> Vec<String> {
    runs.iter().map(|run| run.policy().to_owned()).collect()
}

fn take_pairs(
    ours: &mut Vec<Run>,
    theirs: &mut Vec<Run>,
    alike: impl Fn(&Run, &Run) -> bool,
    pairs: &mut Vec<Pair>,
) {
    let mut left = Vec::new();
    for a in ours.drain(..) {
        match theirs.iter().position(|b| alike(&a, b)) {
            Some(index) => pairs.push(Pair { a, b: theirs.remove(index) }),
            None => left.push(a),
        }
    }
    *ours = left;
}

/// Returns the facts that differ. A group that only one side has is one difference.
fn differences([ours, theirs]: &[Vec<Fact>; 2]) -> Vec<Difference> {
    let find = |facts: &'_ [Fact], name: &str| facts.iter().find(|fact| fact.name == name).cloned();
    let has = |facts: &[Fact], group: &str| facts.iter().any(|fact| fact.group() == Some(group));
    let mut found: Vec<Difference> = Vec::new();
    let added = theirs.iter().filter(|fact| find(ours, &fact.name).is_none());
    for fact in ours.iter().chain(added) {
        let (a, b) = (find(ours, &fact.name), find(theirs, &fact.name));
        if a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| a.agrees(b)) {
            continue;
        }
        let missing = fact.group().filter(|group| !has(ours, group) || !has(theirs, group));
        let Some(group) = missing else {
            let (a, b) = (a.map(|fact| fact.shown()), b.map(|fact| fact.shown()));
            found.push(Difference { name: fact.name.clone(), a, b });
            continue;
        };
        let name = format!("{group}.*");
        if found.iter().all(|difference| difference.name != name) {
            let [a, b] = [ours, theirs].map(|facts| {
                let number = facts.iter().filter(|fact| fact.group() == Some(group)).count();
                (number > 0).then(|| format!("{number} given"))
            });
            found.push(Difference { name, a, b });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(policy: &str, free: u64, hits: f64, samples: u64) -> String {
        let result = serde_json::json!({
            "version": "1",
            "manifest": { "machine": "a server", "kernel": "6.12", "free_dram_bytes": free, "options": {} },
            "program": ["redis"],
            "policy": policy,
            "tiers": [{ "hits": samples }, { "hits": 1 }],
            "hit_ratio": hits,
            "cautions": [],
        });
        result.to_string()
    }

    fn compared(a: &str, b: &str) -> judge::Judged {
        judge::judge(&Comparison::new(("a", a), ("b", b)).expect("two results"))
    }

    #[test]
    fn one_live_run_of_each_policy_is_a_pair_and_small_differences_do_not_count() {
        let without = live("first-touch", 1000, 0.5, 5000);
        let judged = compared(&without, &live("lru", 1010, 0.6, 5000));
        assert_eq!(judged.better, judge::Better::B, "{judged:?}");
        assert!(judged.sentence.contains("hit ratio 60.0 % (+10.0 points) under lru"), "{judged:?}");
        assert_eq!(judged.sure, "Their inputs differ in policy: any of these may be the cause.");
        assert_eq!(compared(&without, &live("lru", 1010, 0.54, 5000)).better, judge::Better::Same);
        let judged = compared(&without, &live("lru", 2000, 0.6, 5000));
        assert!(judged.sure.contains("policy and free DRAM"), "{judged:?}");
    }

    #[test]
    fn too_few_accesses_give_no_verdict() {
        let judged = compared(&live("lru", 1, 0.5, 5000), &live("lru", 1, 0.9, 10));
        assert_eq!(judged.better, judge::Better::Unknown);
        assert!(judged.sentence.contains("B has too little evidence, 11 accesses seen"), "{judged:?}");
    }

    #[test]
    fn only_another_build_is_told_as_such() {
        let lab = |version: &str, time: u64| {
            let run = serde_json::json!({
                "tiering": "none", "kernel": "6.12", "program": ["sort"],
                "measured": { "modelled_ns": time, "hit_ratio": 0.5 },
            });
            serde_json::json!({ "version": version, "runs": [run] }).to_string()
        };
        let judged = compared(&lab("1", 100), &lab("2", 80));
        assert_eq!((judged.better, judged.figure), (judge::Better::B, Some("modelled time")));
        assert_eq!(judged.sure, "Only the build of Isotherm differs.");
        let simulation = serde_json::json!({
            "version": "2", "input": { "name": "sort" },
            "runs": [{ "policy": "lru", "fast": "1:4" }, { "policy": "first-touch", "fast": "1:4", "hit_ratio": 0.5 }],
        });
        // Without tiering is one thing under two names, and the times of two kinds are not compared.
        let judged = compared(&simulation.to_string(), &lab("2", 80));
        assert_eq!((judged.better, judged.figure), (judge::Better::Same, Some(read::HITS)), "{judged:?}");
        assert!(judged.sentence.starts_with("The simulation and the lab run agree"), "{judged:?}");
    }
}
