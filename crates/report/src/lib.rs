//! What people and programs read of a run: a table for the terminal, JSON, and one self-contained HTML file.
//!
//! All three show the same [`isotherm_sim::Report`] and compute nothing that it does not hold, apart from shares and
//! sums of neighbours. JSON is complete; the table leaves out the course over time; the HTML aggregates so that it
//! stays below [`MAX_HTML_BYTES`] for any run.
//!
//! # The charting library
//! The HTML inlines Chart.js. Its code is not ours to commit, so the build script takes it from its Debian package
//! `libjs-chart.js` (one 200 KB file without dependences, MIT licence, its notice kept). The alternatives that cargo
//! itself could fetch were looked at: the `plotly` crate embeds 4.7 MB of script, which leaves nothing of 5 MB for
//! data; `charming` carries ECharts (1 MB) but hands it out only together with a JavaScript engine. Chart.js has no
//! heatmap, which a canvas and a page of our own script (`assets/heatmap.js`) draw.
//!
//! Style and scripts are in `assets/`; they work without a network, from a `file:` address.

#![forbid(unsafe_code)]

mod facts;
mod format;
mod gallery;
mod html;
mod lab;
mod live;
mod score;
mod size;
mod table;

pub use gallery::{Pictured, gallery_html};
pub use html::{MAX_HTML_BYTES, html};
pub use lab::{lab_json, lab_table, lab_text};
pub use live::{live_html, live_json, live_text};
pub use score::{score_from_json, score_html, score_json, score_markdown, score_summary};
pub use size::{size_html, size_json, size_table};
pub use table::table;

/// The whole report as one JSON object on one line, fields in the order of their declaration.
///
/// `docs/reference/result-schema.md` documents every field; `docs/reference/result.schema.json` is the same for programs. A gauge
/// that is not finite is `null`.
pub fn json(report: &isotherm_sim::Report) -> String {
    // Serialising into memory fails only for maps whose keys are not text: the report has none.
    serde_json::to_string(report).unwrap_or_else(|error| unreachable!("the report is plain data: {error}"))
}
