//! A comparison as text: the verdict, what differs in the inputs, then the figures side by side.

use super::judge::judge;
use super::read::{FIGURES, Figure, HITS, MOVED, Run};
use super::{Comparison, Pair};
use crate::format::{file_name, printable, shortened, wrapped};
use crate::table::aligned;

/// Columns of a usual terminal.
const WIDTH: usize = 80;
/// Differences of inputs that the terminal lists.
const DIFFERENCES: usize = 24;
/// Pairs of runs that the terminal lists with every figure.
const PAIRS: usize = 3;
/// Characters of a cell where two stand side by side.
const CELL: usize = 26;

/// Returns the comparison as text, without colours.
pub fn compare_text(comparison: &Comparison) -> String {
    let mut text = wrapped("", &answer(comparison), WIDTH) + "\n";
    text.extend(sides(comparison).iter().map(|(name, side)| wrapped(&format!("{name}  "), side, WIDTH)));
    text += "\n";
    text += &inputs(comparison);
    text += "\n";
    if comparison.pairs.len() <= PAIRS {
        for pair in &comparison.pairs {
            text += &format!("{}\n{}\n", name(pair), aligned(&["", "A", "B", "change"], rows(pair), 1));
        }
    } else {
        text += &many(comparison);
        text += "\n- --json and --report have every figure of each.\n";
    }
    for (side, names) in ["A", "B"].iter().zip(&comparison.only) {
        if !names.is_empty() {
            text += &wrapped("- ", &format!("Only in {side}: {}.", names.join(", ")), WIDTH);
        }
    }
    text
}

/// Returns the verdict as one paragraph.
pub(super) fn answer(comparison: &Comparison) -> String {
    let judged = judge(comparison);
    if judged.sure.is_empty() { judged.sentence } else { format!("{} {}", judged.sentence, judged.sure) }
}

/// Returns what the two are.
pub(super) fn sides(comparison: &Comparison) -> [(&'static str, String); 2] {
    let [a, b] = comparison
        .outcomes
        .each_ref()
        .map(|outcome| format!("{} ({})", printable(&outcome.file), outcome.kind.name()));
    [("A", a), ("B", b)]
}

/// Returns a row per difference of the inputs.
pub(super) fn differences(comparison: &Comparison, cell: usize) -> impl Iterator<Item = [String; 3]> {
    let shown = move |fact: &Option<String>| fact.as_ref().map_or("-".into(), |fact| shortened(fact, cell));
    comparison
        .inputs
        .iter()
        .map(move |one| [shortened(&printable(&one.name), cell), shown(&one.a), shown(&one.b)])
}

fn inputs(comparison: &Comparison) -> String {
    if comparison.inputs.is_empty() {
        return "Their inputs are the same.\n".into();
    }
    let rows = differences(comparison, CELL).take(DIFFERENCES);
    let mut text = aligned(&["differs", "A", "B"], rows, 3);
    let more = comparison.inputs.len().saturating_sub(DIFFERENCES);
    if more > 0 {
        text += &format!("- {more} more inputs differ; --json lists all.\n");
    }
    text
}

/// Returns the name of both runs, once where they have the same.
pub(super) fn name(pair: &Pair) -> String {
    let [a, b] = [&pair.a, &pair.b].map(Run::name);
    if a == b { a } else { format!("{a} in A, {b} in B") }
}

/// Returns a row per figure that one of the two tells.
pub(super) fn rows(pair: &Pair) -> impl Iterator<Item = [String; 4]> {
    FIGURES.iter().filter_map(|figure| {
        let [a, b, change] = cells(figure, pair)?;
        Some([figure.name.into(), a, b, change])
    })
}

fn cells(figure: &Figure, pair: &Pair) -> Option<[String; 3]> {
    let [a, b] = [&pair.a, &pair.b].map(|run| (figure.get)(&run.value));
    a.or(b)?;
    let change = a.zip(b).and_then(|(a, b)| figure.unit.change(a, b));
    let shown = |value: Option<f64>| value.map_or("-".into(), |value| figure.unit.shown(value));
    Some([shown(a), shown(b), figure.unit.shown_change(change)])
}

/// Returns a row per pair with the figure that decides, the hits and the moves.
fn many(comparison: &Comparison) -> String {
    let decisive = judge(comparison).figure.unwrap_or(HITS);
    let named = |name: &str| FIGURES.iter().find(|figure| figure.name == name);
    let none = || ["-", "-", "-"].map(str::to_owned);
    let row = |pair: &Pair| {
        let of = |name: &str| named(name).and_then(|figure| cells(figure, pair)).unwrap_or_else(none);
        let [[a, b, change], [hits, new_hits, _], [moved, new_moved, _]] = [decisive, HITS, MOVED].map(of);
        [shortened(&name(pair), CELL), a, b, change, hits, new_hits, moved, new_moved]
    };
    let header = ["policy", decisive, "B", "change", "hits", "B", "moved", "B"];
    aligned(&header, comparison.pairs.iter().map(row), 1)
}

/// Returns a page's title.
pub(super) fn title(comparison: &Comparison) -> String {
    let [a, b] = comparison.outcomes.each_ref().map(|outcome| file_name(&outcome.file));
    format!("{a} and {b}")
}
