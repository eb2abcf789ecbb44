//! A comparison as one self-contained HTML file.

use super::Comparison;
use super::words::{PAIRS, answer, differences, name, overview, rows, sides, title};
use crate::format::list;
use crate::html::{MAX_TEXT, Page, fold, section, table};

/// Returns the comparison as one self-contained HTML file.
pub fn compare_html(comparison: &Comparison) -> String {
    let mut facts = sides(comparison).to_vec();
    facts.push(("Isotherm", env!("CARGO_PKG_VERSION").into()));
    let only = ["A", "B"].iter().zip(&comparison.only).filter(|(_, names)| !names.is_empty());
    let only: Vec<String> = only.map(|(side, names)| format!("Only in {side}: {}.", list(names))).collect();
    let figures = comparison.pairs.iter().flat_map(|pair| {
        rows(comparison, pair).map(move |[figure, a, b, change]| [name(pair), figure, a, b, change])
    });
    let figures = table(&["run", "figure", "A", "B", "change"], figures);
    let shown = if comparison.pairs.len() > PAIRS {
        let (header, rows) = overview(comparison);
        let all = section("Figures", "", &table(&header.each_ref().map(String::as_str), rows));
        all + &fold("Every figure", "of every run", &figures)
    } else {
        section("Figures", "", &figures)
    };
    let inputs = table(&["input", "A", "B"], differences(comparison, MAX_TEXT, MAX_TEXT));
    let page = Page {
        kind: "comparison",
        title: title(comparison),
        answer: [answer(comparison), String::new()],
        facts,
        notes: only,
        body: section("What differs in their inputs", "", &inputs) + &shown,
        ..Page::default()
    };
    page.html(&())
}
