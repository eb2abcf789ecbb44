//! Results as tables for the terminal, as JSON, and as self-contained HTML files.
//!
//! The outputs of a run show the same [`isotherm_sim::Report`] and compute only shares and sums of
//! neighbours. JSON is complete. The table leaves out the run over time. The HTML aggregates, so that it
//! stays below [`MAX_HTML_BYTES`] for any run.
//!
//! ```
//! # use std::ops::ControlFlow::Continue;
//! # use isotherm_core::PageSize;
//! # use isotherm_sim::{Experiment, FastSize, INTERVALS, load_workload, simulate};
//! # let workload = isotherm_workloads::find("masim")?;
//! # let mut parameters = workload.parameters();
//! # parameters.set("preset", "test")?;
//! # let loaded = load_workload(workload, parameters, PageSize::Base, 1, 100_000, &mut |_| Continue(()))?;
//! # let policy = isotherm_policies::find("lru")?;
//! # let experiment = Experiment {
//! #     policies: vec![(policy, policy.parameters())],
//! #     sizes: vec![FastSize::parse("1:1")?],
//! #     profile: &isotherm_machine::Profile::builtin("pact")?,
//! #     seed: 1,
//! #     scale: loaded.scale,
//! #     intervals: INTERVALS,
//! #     version: "example",
//! #     stop: None,
//! # };
//! let report = simulate(&loaded.input, &experiment, &|| ())?;
//! assert!(isotherm_report::table(&report).starts_with("No verdict: first-touch, which"));
//! assert!(isotherm_report::json(&report).starts_with(r#"{"verdict":{"advice":"unknown","#));
//! assert!(isotherm_report::html(&report).len() <= isotherm_report::MAX_HTML_BYTES);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `assets/` holds one frame, style and scripts of all pages, without a library. Pages work without a
//! network, from a `file:` address.

#![forbid(unsafe_code)]

mod columns;
mod compare;
mod facts;
mod format;
mod gallery;
mod html;
mod lab;
mod live;
mod machine;
mod score;
mod size;
mod table;
mod verdict;

pub use compare::{CompareError, Comparison, compare_html, compare_json, compare_text};
pub use gallery::{Pictured, gallery_html};
pub use html::{MAX_HTML_BYTES, html};
pub use lab::{lab_json, lab_table, lab_text};
pub use live::{live_html, live_json, live_text};
pub use machine::{machine_line, machine_metrics, machine_page, machine_text, slower};
pub use score::{score_from_json, score_html, score_json, score_markdown, score_summary};
pub use size::plan::{Plan, Planned, Price};
pub use size::{size_html, size_json, size_table};
pub use table::table;
pub use verdict::{Advice, Verdict, compared, live, simulated, sized};

/// Returns the whole report as one JSON object on one line, fields in the order of their declaration.
///
/// `docs/reference/result-schema.md` documents every field, `docs/reference/result.schema.json` as a schema.
/// A gauge that is not finite is `null`.
pub fn json(report: &isotherm_sim::Report) -> String {
    to_json(&Answered { verdict: verdict::simulated(report), result: report })
}

/// A result behind its verdict.
#[derive(serde::Serialize)]
struct Answered<'a, T> {
    verdict: Option<Verdict>,
    #[serde(flatten)]
    result: &'a T,
}

/// Returns plain data as JSON on one line. Only maps whose keys are not text could fail; no report has one.
fn to_json(data: &impl serde::Serialize) -> String {
    serde_json::to_string(data).unwrap_or_else(|error| unreachable!("the report is plain data: {error}"))
}
