//! A comparison as text: the verdict, what differs in the inputs, then the figures side by side.

use super::judge::judge;
use super::read::{FIGURES, Figure, HITS, MOVED, Outcome, Run};
use super::{Comparison, Pair};
use crate::format::{file_name, printable, wrapped};
use crate::table::aligned;

/// Columns of a usual terminal.
const WIDTH: usize = 80;
/// Differences of inputs that the terminal lists.
const DIFFERENCES: usize = 24;
/// Pairs of runs that are shown with every figure.
pub(super) const PAIRS: usize = 3;
/// Characters of an input's name and of its values, where the three stand side by side.
const NAME: usize = 32;
const CELL: usize = 22;
/// Characters of a run's name where its figures stand in one row.
const RUN: usize = 18;

/// Returns the comparison as text, without colours.
pub fn compare_text(comparison: &Comparison) -> String {
    let mut text = wrapped("", &answer(comparison), WIDTH) + "\n";
    text.extend(sides(comparison).iter().map(|(name, side)| wrapped(&format!("{name}  "), side, WIDTH)));
    text += "\n";
    text += &inputs(comparison);
    if comparison.pairs.len() > PAIRS {
        let (header, rows) = overview(comparison);
        text += &aligned(&header.each_ref().map(String::as_str), rows, 1);
        text += "\n- --json and --report have every figure of each.\n";
    } else {
        for pair in &comparison.pairs {
            let rows = rows(comparison, pair);
            text += &format!("{}\n{}\n", name(pair), aligned(&["", "A", "B", "change"], rows, 1));
        }
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
    format!("{} {}", judged.sentence, judged.sure)
}

/// Returns what the two are.
pub(super) fn sides(comparison: &Comparison) -> [(&'static str, String); 2] {
    let [a, b] = comparison.outcomes.each_ref().map(Outcome::title);
    [("A", a), ("B", b)]
}

/// Returns a row per difference of the inputs, its cells cut to so many characters.
pub(super) fn differences(
    comparison: &Comparison,
    name: usize,
    cell: usize,
) -> impl Iterator<Item = [String; 3]> {
    let shown = move |fact: &Option<String>| fact.as_ref().map_or("-".into(), |fact| cut(fact, cell));
    comparison.inputs.iter().map(move |one| [cut(&printable(&one.name), name), shown(&one.a), shown(&one.b)])
}

/// Cuts text in its middle: names of files and versions differ at their ends.
fn cut(text: &str, limit: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= limit {
        return text.into();
    }
    let (head, tail) = (limit / 2, limit - limit / 2 - 1);
    let end = &letters[letters.len() - tail..];
    letters[..head].iter().chain(&['…']).chain(end).collect()
}

/// Returns the table of the inputs that differ; nothing where none does.
fn inputs(comparison: &Comparison) -> String {
    if comparison.inputs.is_empty() {
        return String::new();
    }
    let rows = differences(comparison, NAME, CELL).take(DIFFERENCES);
    let mut text = aligned(&["differs", "A", "B"], rows, 3);
    let more = comparison.inputs.len().saturating_sub(DIFFERENCES);
    if more > 0 {
        text += &format!("- {more} more inputs differ; --json and --report list all.\n");
    }
    text + "\n"
}

/// Returns the name of both runs, once where they have the same.
pub(super) fn name(pair: &Pair) -> String {
    let [a, b] = [&pair.a, &pair.b].map(Run::name);
    if a == b { a } else { format!("{a} in A, {b} in B") }
}

/// Returns a row per figure that both tell or, of one kind, that one of them tells.
pub(super) fn rows(comparison: &Comparison, pair: &Pair) -> impl Iterator<Item = [String; 4]> {
    let [a, b] = &comparison.outcomes;
    let alike = a.kind == b.kind;
    FIGURES.iter().filter(move |figure| alike || pair.values(figure).is_some()).filter_map(|figure| {
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

/// Returns a heading, and a row per pair with the figure that decides, the hits and the moves.
pub(super) fn overview(comparison: &Comparison) -> ([String; 8], impl Iterator<Item = [String; 8]>) {
    let decisive = judge(comparison).figure.unwrap_or(HITS);
    let named = |name: &str| FIGURES.iter().find(|figure| figure.name == name);
    let none = || ["-", "-", "-"].map(str::to_owned);
    let row = move |pair: &Pair| {
        let of = |name: &str| named(name).and_then(|figure| cells(figure, pair)).unwrap_or_else(none);
        let [[a, b, change], [hits, new_hits, _], [moved, new_moved, _]] = [decisive, HITS, MOVED].map(of);
        [cut(&name(pair), RUN), a, b, change, hits, new_hits, moved, new_moved]
    };
    let first = format!("{decisive} A");
    let header = ["policy", &first, "B", "change", "hits A", "B", "moved A", "B"].map(str::to_owned);
    (header, comparison.pairs.iter().map(row))
}

/// Returns a page's title.
pub(super) fn title(comparison: &Comparison) -> String {
    let [a, b] = comparison.outcomes.each_ref().map(|outcome| file_name(&outcome.file));
    format!("{a} and {b}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_cells_keep_both_ends() {
        assert_eq!(cut("folder/of/traces/a.trace", 12), "folder…trace");
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüx", 3), "ä…x");
    }
}
