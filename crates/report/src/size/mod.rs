//! A sizing as a table, as JSON, and as one self-contained HTML file.

mod page;
pub(crate) mod plan;
mod words;

use isotherm_sim::{Outcome, PolicySize, Recommended, SizeReport};

use crate::columns::{Cell, Column, cells, headings, narrow, texts};
use crate::format::{count, percent};
use crate::table::{aligned, answered, machine, named, noted};
use crate::verdict::{Verdict, sized};
use crate::{Answered, to_json};
use plan::Plan;

pub use page::size_html;

/// Returns the sizing as one JSON object on one line, as `docs/reference/size.schema.json` describes it.
pub fn size_json(report: &SizeReport, plan: &Plan) -> String {
    to_json(&Answered { verdict: Some(sized(report, plan)), result: report })
}

/// Returns the notes needed to read the numbers right, those about the machine asked about first.
fn notes(report: &SizeReport, plan: &Plan, verdict: &Verdict) -> Vec<String> {
    let asked = verdict.plan.as_ref().map_or(Vec::new(), |planned| plan.notes(planned));
    asked.into_iter().chain(words::notes(report)).collect()
}

/// Returns the sizing as text: the verdict, a row per policy, and notes.
pub fn size_table(report: &SizeReport, plan: &Plan) -> String {
    let verdict = sized(report, plan);
    let input = &report.input;
    let budget =
        format!("{} over all memory fast; all slow costs {}", percent(report.budget), cost(report.all_slow));
    let head = named(&[
        ("input", format!("{} {}", input.kind, input.name)),
        ("accesses", format!("{} missed the last-level cache", count(input.accesses))),
        ("footprint", input.footprint_bytes.to_string()),
        ("machine", machine(&report.machine)),
        ("budget", budget),
        ("length", words::length(report)),
        ("samples", words::sampling(report)),
        ("seed", input.seed.to_string()),
    ]);
    let columns = narrow(&columns(), &NARROW);
    let rows = report.policies.iter().map(|policy| texts(&columns, &(report, policy)));
    let mut text = format!("{}\n{head}\n{}\n", answered(&verdict), aligned(&headings(&columns), rows, 1));
    text.extend(notes(report, plan, &verdict).iter().map(|note| noted(note)));
    text
}

/// Columns that a terminal has room for.
const NARROW: [&str; 6] = ["policy", "needs", "interval", "of footprint", "slowdown", "verified"];

/// Returns a row per policy.
fn rows(report: &SizeReport) -> impl Iterator<Item = Vec<Cell>> {
    let columns = columns();
    report.policies.iter().map(move |policy| cells(&columns, &(report, policy)))
}

/// Returns the columns of a policy.
fn columns<'a>() -> [Column<(&'a SizeReport, &'a PolicySize)>; 8] {
    [
        ("policy", |(_, policy)| policy.policy.as_str().into()),
        ("needs", |(_, policy)| match (&policy.recommended, policy.outcome) {
            (Some(size), _) => Cell::size(size.fast_bytes),
            (None, Outcome::Never) => "never".into(),
            (None, _) => "not found".into(),
        }),
        ("interval", |(_, policy)| {
            recommended(policy, |size| Cell::size(size.low_bytes).shown_as(interval(size)))
        }),
        ("of footprint", |(report, policy)| recommended(policy, |size| Cell::percent(share(report, size)))),
        ("saves", |(_, policy)| recommended(policy, |size| Cell::size(size.saved_bytes))),
        ("slowdown", |(_, policy)| recommended(policy, |size| costs(size.slowdown))),
        ("verified", |(_, policy)| verified(policy).into()),
        ("knee", |(_, policy)| {
            let knee = policy.knee.as_ref();
            knee.map_or_else(Cell::unknown, |knee| {
                let text = format!("{} ({})", knee.fast_bytes, cost(knee.slowdown));
                Cell::size(knee.fast_bytes).shown_as(text)
            })
        }),
    ]
}

fn recommended(policy: &PolicySize, cell: impl Fn(&Recommended) -> Cell) -> Cell {
    policy.recommended.as_ref().map_or_else(Cell::unknown, cell)
}

/// Returns the size as a share of the footprint.
fn share(report: &SizeReport, size: &Recommended) -> f64 {
    size.fast_bytes.0 as f64 / report.input.footprint_bytes.0.max(1) as f64
}

/// Formats a slowdown as its cost: `4.8 %`.
fn cost(slowdown: f64) -> String {
    percent(slowdown - 1.0)
}

fn costs(slowdown: f64) -> Cell {
    Cell::percent(slowdown - 1.0)
}

fn interval(size: &Recommended) -> String {
    let high = size.high_bytes.map_or("all".into(), |high| high.to_string());
    format!("{} to {high}", size.low_bytes)
}

fn verified(policy: &PolicySize) -> &'static str {
    match policy.outcome {
        Outcome::Confirmed => "yes",
        Outcome::Estimated => "no: estimate",
        Outcome::Unconfirmed => "failed",
        Outcome::Never if policy.full.is_empty() => "no: estimate",
        Outcome::Never => "exceeds it",
    }
}
