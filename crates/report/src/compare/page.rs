//! A comparison as one self-contained HTML file: tables, which need no scripts.

use super::Comparison;
use super::words::{PAIRS, answer, differences, name, overview, rows, sides, title};
use crate::format::{list, shortened};
use crate::html::{MAX_TEXT, STYLE, definitions, escape, fill, items, prose, table};

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
        let all = table(&header.each_ref().map(String::as_str), rows);
        format!("{all}<details><summary><h2>Every figure</h2></summary>{figures}</details>")
    } else {
        figures
    };
    let parts = [
        ("style", STYLE.into()),
        ("title", escape(&shortened(&title(comparison), MAX_TEXT))),
        ("answer", prose(&answer(comparison))),
        ("facts", definitions(&facts)),
        ("notes", items(&only)),
        ("inputs", table(&["input", "A", "B"], differences(comparison, MAX_TEXT, MAX_TEXT))),
        ("figures", shown),
    ];
    fill(include_str!("../../assets/compare.html"), &parts)
}
