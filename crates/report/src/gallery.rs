//! The page of heatmaps, one for each workload, as in Jenga's Fig. 1.

use isotherm_sim::InputSummary;
use serde_json::{Value, json};

use crate::columns::{Cell, Column};
use crate::html::{HEATMAP, PLOT, Page, figure, heat, listed, section};

const SCRIPT: &str = include_str!("../assets/gallery.js");
/// Cells of a picture: fifty pictures stay below [`crate::MAX_HTML_BYTES`].
const COLUMNS: usize = 120;
const ROWS: usize = 80;
const TABLE: [Column<Pictured>; 8] = [
    ("workload", |one| one.input.name.as_str().into()),
    ("objects", |one| one.category[0].as_str().into()),
    ("hot set", |one| one.category[1].as_str().into()),
    ("footprint", |one| Cell::size(one.input.footprint_bytes)),
    ("misses", |one| Cell::count(one.input.accesses)),
    ("hottest 1 %", |one| Cell::percent(share_of_hottest(&one.input.page_cdf, 0.01))),
    ("hottest 10 %", |one| Cell::percent(share_of_hottest(&one.input.page_cdf, 0.1))),
    ("hottest 50 %", |one| Cell::percent(share_of_hottest(&one.input.page_cdf, 0.5))),
];

/// A workload to draw.
#[derive(Debug)]
pub struct Pictured {
    /// One line on what it does.
    pub title: String,
    /// The size of its objects and whether its hot set changes, in the words of the registry.
    pub category: [String; 2],
    /// Its accesses.
    pub input: InputSummary,
}

/// Returns a self-contained page with the heatmap of each workload and a table of their numbers.
pub fn gallery_html(pictured: &[Pictured], version: &str) -> String {
    let picture = |one: &Pictured| {
        let map = heat(&one.input, COLUMNS, ROWS);
        json!({ "accesses": one.input.accesses, "heatmap": map })
    };
    let pictures: Vec<Value> = pictured.iter().map(picture).collect();
    let figures: String = pictured.iter().enumerate().map(picture_of).collect();
    let body = [
        section("Workloads", "", &format!("<div class=\"pair\">{figures}</div>")),
        section("In numbers", "", &listed(&TABLE, pictured.iter())),
    ];
    let answer = "Where each workload misses the last-level cache, over time.";
    let how = "Upwards: address, gaps left out; darker: more misses. Hottest: the share of all misses that these \
               pages take.";
    let page = Page {
        kind: "workloads",
        title: String::new(),
        answer: [answer.into(), how.into()],
        facts: vec![("Isotherm", version.into())],
        body: body.concat(),
        scripts: &[PLOT, HEATMAP, SCRIPT],
        ..Page::default()
    };
    page.html(&pictures)
}

fn picture_of((index, one): (usize, &Pictured)) -> String {
    let [objects, hot_set] = &one.category;
    let caption = format!("{}; {objects}; hot set {hot_set}.", one.title);
    figure(&format!("workload-{index}"), &one.input.name, &caption, "")
}

/// Returns the share of accesses that this share of the pages takes, interpolated between the curve's points.
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
