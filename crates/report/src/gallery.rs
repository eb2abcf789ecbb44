//! Defines the page of heatmaps: one picture for each workload, as Jenga's Fig. 1 has it.

use isotherm_sim::InputSummary;
use serde::Serialize;

use crate::format::{count, percent};
use crate::html::{Heat, STYLE, escape, fill, heat, script_safe, table};

const PAGE: &str = include_str!("../assets/gallery.html");
const SCRIPTS: [&str; 3] = [
    include_str!("../assets/theme.js"),
    include_str!("../assets/heatmap.js"),
    include_str!("../assets/gallery.js"),
];
/// Cells of a picture: fifty pictures stay below [`crate::MAX_HTML_BYTES`].
const COLUMNS: usize = 120;
const ROWS: usize = 80;
/// The shares of pages that the table names.
const HOTTEST: [f64; 3] = [0.01, 0.1, 0.5];

/// A workload to draw.
#[derive(Debug)]
pub struct Pictured {
    /// One line: what it does.
    pub title: String,
    /// The size of its objects and whether its hot set changes, in the words of the registry.
    pub category: [String; 2],
    /// Its accesses.
    pub input: InputSummary,
}

#[derive(Serialize)]
struct Picture {
    accesses: u64,
    heatmap: Heat,
}

/// A page with the heatmap of each workload and a table of their numbers, without any reference to another file.
pub fn gallery_html(pictured: &[Pictured], version: &str) -> String {
    let pictures: Vec<_> = pictured
        .iter()
        .map(|one| Picture { accesses: one.input.accesses, heatmap: heat(&one.input, COLUMNS, ROWS) })
        .collect();
    let data = serde_json::to_string(&pictures)
        .unwrap_or_else(|error| unreachable!("the page is plain data: {error}"));
    let header = [
        "workload",
        "objects",
        "hot set",
        "footprint",
        "misses",
        "hottest 1 %",
        "hottest 10 %",
        "hottest 50 %",
    ];
    let parts = [
        ("style", STYLE.into()),
        ("version", escape(version)),
        ("figures", pictured.iter().enumerate().map(figure).collect()),
        ("table", table(&header, pictured.iter().map(row))),
        ("data", script_safe(&data)),
        ("scripts", SCRIPTS.concat()),
    ];
    fill(PAGE, &parts)
}

fn figure((index, one): (usize, &Pictured)) -> String {
    let name = escape(&one.input.name);
    format!(
        "<figure id=\"workload-{index}\" class=\"heat\"><figcaption><b>{name}</b> {}; {}; hot set {}.</figcaption>\
         <div class=\"plot\"><canvas></canvas></div></figure>",
        escape(&one.title),
        escape(&one.category[0]),
        escape(&one.category[1]),
    )
}

fn row(one: &Pictured) -> Vec<String> {
    let [objects, hot_set] = one.category.clone();
    let input = &one.input;
    let numbers =
        [input.name.clone(), objects, hot_set, input.footprint_bytes.to_string(), count(input.accesses)];
    let shares = HOTTEST.map(|share| percent(share_of_hottest(&input.page_cdf, share)));
    numbers.into_iter().chain(shares).collect()
}

/// The share of accesses that this share of the pages takes: between the curve's points, on the line.
fn share_of_hottest(curve: &[(f64, f64)], share: f64) -> f64 {
    let after = curve.partition_point(|&(pages, _)| pages < share);
    match (curve.get(after.wrapping_sub(1)), curve.get(after)) {
        (Some(&(x0, y0)), Some(&(x1, y1))) if x1 > x0 => y0 + (y1 - y0) * (share - x0) / (x1 - x0),
        (_, Some(&(_, y))) => y,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_points_of_the_curve_the_share_is_on_the_line() {
        let curve = [(0.0, 0.0), (0.1, 0.5), (1.0, 1.0)];
        assert!((share_of_hottest(&curve, 0.05) - 0.25).abs() < 1e-12);
        assert!((share_of_hottest(&curve, 0.1) - 0.5).abs() < 1e-12);
        assert!((share_of_hottest(&curve, 0.55) - 0.75).abs() < 1e-12);
    }
}
