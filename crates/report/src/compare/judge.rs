//! The answer of a comparison: which of the two results is better, by the first figure that tells.

use std::cmp::Ordering;

use serde::Serialize;

use super::read::{FIGURES, Figure, HITS, Kind, Run, Unit};
use super::{Comparison, Pair};
use crate::format::list;
use crate::verdict::{LEAST_GAIN, LEAST_SAMPLES, LEAST_SKEW, is_usable};

/// Facts that only another version of Isotherm changes.
const VERSION: [&str; 2] = ["isotherm", "binary"];
/// Differences that the answer names.
const NAMED: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Better {
    A,
    B,
    Same,
    /// Each is better under some policy.
    Mixed,
    Unknown,
}

/// The answer of a comparison.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Judged {
    pub(super) better: Better,
    /// Name of the figure that decided.
    pub(super) figure: Option<&'static str>,
    pub(super) sentence: String,
    pub(super) sure: String,
}

impl Judged {
    fn unknown(why: &str, comparison: &Comparison) -> Self {
        let sentence = format!("No verdict: {why}.");
        Self { better: Better::Unknown, figure: None, sentence, sure: sure(comparison) }
    }
}

/// Returns the answer.
pub(super) fn judge(comparison: &Comparison) -> Judged {
    let [a, b] = &comparison.outcomes;
    for (side, outcome) in [("A", a), ("B", b)] {
        if let Some(doubt) = outcome.doubt(LEAST_SAMPLES) {
            return Judged::unknown(&format!("{side} has too little evidence, {doubt}"), comparison);
        }
    }
    let alike = a.kind == b.kind;
    // Kinds measure time of different things; hits they all share.
    let decides = |figure: &&Figure| figure.good.is_some() && (alike || figure.name == HITS);
    let told = |figure: &&Figure| comparison.pairs.iter().any(|pair| pair.values(figure).is_some());
    let Some(figure) = FIGURES.iter().filter(decides).find(told) else {
        return Judged::unknown("no figure that both tell says which is better", comparison);
    };
    let pairs = comparison.counted();
    let least = match figure.unit {
        Unit::Share if a.kind == Kind::LiveRun || !alike => LEAST_SKEW,
        _ => LEAST_GAIN,
    };
    let orders: Vec<Ordering> = pairs.iter().filter_map(|pair| order(pair, figure, least)).collect();
    let of = |wanted: Ordering| orders.iter().filter(|&&order| order == wanted).count();
    let (better, worse) = (of(Ordering::Greater), of(Ordering::Less));
    let answer = match (better, worse) {
        (0, 0) => Better::Same,
        (_, 0) => Better::B,
        (0, _) => Better::A,
        _ => Better::Mixed,
    };
    let all = orders.len();
    let found = figures(&pairs, figure);
    let opening = match (answer, alike) {
        (Better::Same, true) => "No difference that counts".to_owned(),
        (Better::Same, false) => format!("The {} and the {} agree", a.kind.name(), b.kind.name()),
        (_, false) => format!("The {} and the {} differ", a.kind.name(), b.kind.name()),
        (Better::A, true) if all == 1 => "B is worse".into(),
        (Better::B, true) if all == 1 => "B is better".into(),
        (Better::A, true) => format!("B is worse under {worse} of {all} policies and better under none"),
        (Better::B, true) => format!("B is better under {better} of {all} policies and worse under none"),
        (_, true) => format!("Mixed: B is better under {better} of {all} policies and worse under {worse}"),
    };
    let advice = match (a.advice(), b.advice()) {
        (Some(before), Some(after)) if before != after => {
            format!(" The advice changes from \"{before}\" to \"{after}\".")
        }
        _ => String::new(),
    };
    Judged {
        better: answer,
        figure: Some(figure.name),
        sentence: format!("{opening}: {found}.{advice}"),
        sure: sure(comparison),
    }
}

/// Returns whether the pair's second run is better (greater), worse (less) or about the same.
fn order(pair: &Pair, figure: &Figure, least: f64) -> Option<Ordering> {
    let (a, b) = pair.values(figure)?;
    let change = figure.unit.change(a, b).unwrap_or(f64::INFINITY);
    let order = if change.abs() < least { Ordering::Equal } else { change.total_cmp(&0.0) };
    Some(if figure.good == Some(Ordering::Less) { order.reverse() } else { order })
}

/// Returns the figure of the only pair, or of the best run of each side.
fn figures(pairs: &[&Pair], figure: &Figure) -> String {
    let shown = |run: &Run| (figure.get)(&run.value).map(|value| (value, run.name()));
    let best = |side: fn(&Pair) -> &Run| {
        let runs = pairs.iter().filter_map(|pair| shown(side(pair)));
        runs.min_by(|(one, _), (other, _)| {
            if figure.good == Some(Ordering::Less) { one.total_cmp(other) } else { other.total_cmp(one) }
        })
    };
    let (Some((before, first)), Some((after, second))) = (best(|pair| &pair.a), best(|pair| &pair.b)) else {
        return format!("no {}", figure.name);
    };
    let change = figure.unit.change(before, after);
    let [before, after] = [before, after].map(|value| figure.unit.shown(value));
    let change = match change {
        Some(0.0) | None => String::new(),
        change => format!(" ({})", figure.unit.shown_change(change)),
    };
    let which = if pairs.len() > 1 { "best " } else { "" };
    format!("{which}{} {after}{change} under {second} in B, {before} under {first} in A", figure.name)
}

/// Says what else may explain the difference.
fn sure(comparison: &Comparison) -> String {
    let names: Vec<String> = comparison.inputs.iter().map(|difference| difference.name.clone()).collect();
    if names.is_empty() {
        return "Their inputs are the same.".into();
    }
    if names.iter().all(|name| VERSION.contains(&name.as_str())) {
        return "Only the build of Isotherm differs.".into();
    }
    let mut named = grouped(&names);
    let more = named.len().saturating_sub(NAMED);
    named.truncate(NAMED);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    format!("Their inputs differ in {}: any of these may be the cause.", list(&named))
}

/// Returns the names, those of one group once by the group.
fn grouped(names: &[String]) -> Vec<String> {
    let group = |name: &str| name.split_once('.').map_or(name, |(group, _)| group).to_owned();
    let several = |name: &str| names.iter().filter(|other| group(other) == group(name)).count() > 1;
    let mut found: Vec<String> = Vec::new();
    for name in names {
        let name = if several(name) { group(name) } else { name.trim_end_matches(".*").to_owned() };
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

impl Comparison {
    /// Returns the pairs of what a machine can run, or all where there are none.
    fn counted(&self) -> Vec<&Pair> {
        let lab = self.outcomes.iter().any(|outcome| outcome.kind == Kind::LabRun);
        let usable = |pair: &&Pair| lab || [&pair.a, &pair.b].iter().all(|run| is_usable(&run.policy));
        let usable: Vec<&Pair> = self.pairs.iter().filter(usable).collect();
        if usable.is_empty() { self.pairs.iter().collect() } else { usable }
    }
}

impl Pair {
    /// Returns both values of a figure.
    pub(super) fn values(&self, figure: &Figure) -> Option<(f64, f64)> {
        (figure.get)(&self.a.value).zip((figure.get)(&self.b.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_one_group_are_named_once() {
        let names = ["seed", "machine", "machine.core.cores", "input.a", "lru.*"].map(str::to_owned);
        assert_eq!(grouped(&names), ["seed", "machine", "input.a", "lru"]);
    }

    #[test]
    fn less_is_better_where_a_figure_says_so() {
        let run = |value: f64| Run {
            policy: "lru".into(),
            fast: String::new(),
            value: serde_json::json!({ "slowdown": value, "hit_ratio": value - 1.0 }),
        };
        let pair = Pair { a: run(1.2), b: run(1.1) };
        let [slowdown, hits] =
            ["slowdown", HITS].map(|name| FIGURES.iter().find(|figure| figure.name == name).expect("one"));
        assert_eq!(order(&pair, slowdown, LEAST_GAIN), Some(Ordering::Greater));
        assert_eq!(order(&pair, hits, LEAST_GAIN), Some(Ordering::Less));
        assert_eq!(order(&pair, slowdown, 0.2), Some(Ordering::Equal));
    }
}
