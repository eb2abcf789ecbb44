//! The page of heatmaps, one for each workload, as in Jenga's Fig. 1.

use isotherm_sim::InputSummary;
use serde_json::{Value, json};

use crate::columns::Column;
use crate::format::{count, percent};
use crate::html::{escape, heat, listed, page};

const SCRIPTS: [&str; 3] = [
    include_str!("../assets/theme.js"),
    include_str!("../assets/heatmap.js"),
    include_str!("../assets/gallery.js"),
];
/// Cells of a picture: fifty pictures stay below [`crate::MAX_HTML_BYTES`].
const COLUMNS: usize = 120;
const ROWS: usize = 80;
const TABLE: [Column<Pictured>; 8] = [
    ("workload", |one| one.input.name.clone()),
    ("objects", |one| one.category[0].clone()),
    ("hot set", |one| one.category[1].clone()),
    ("footprint", |one| one.input.footprint_bytes.to_string()),
    ("misses", |one| count(one.input.accesses)),
    ("hottest 1 %", |one| percent(share_of_hottest(&one.input.page_cdf, 0.01))),
    ("hottest 10 %", |one| percent(share_of_hottest(&one.input.page_cdf, 0.1))),
    ("hottest 50 %", |one| percent(share_of_hottest(&one.input.page_cdf, 0.5))),
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
    let parts = [
        ("version", escape(version)),
        ("figures", pictured.iter().enumerate().map(figure).collect()),
        ("table", listed(&TABLE, pictured.iter())),
    ];
    page(include_str!("../assets/gallery.html"), &SCRIPTS, &pictures, &parts)
}

fn figure((index, one): (usize, &Pictured)) -> String {
    let [name, title, objects, hot_set] =
        [&one.input.name, &one.title, &one.category[0], &one.category[1]].map(|text| escape(text));
    format!(
        "<figure id=\"workload-{index}\" class=\"heat\"><figcaption><b>{name}</b> {title}; {objects}; \
         hot set {hot_set}.</figcaption><div class=\"plot\"><canvas></canvas></div></figure>"
    )
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
