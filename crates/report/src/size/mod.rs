//! A sizing as a table, as JSON, and as one self-contained HTML file.

mod page;
mod words;

use isotherm_sim::{Outcome, PolicySize, Recommended, SizeReport};

use crate::columns::{Column, cells, headings};
use crate::format::{count, percent};
use crate::table::{aligned, machine, named, noted};
use crate::to_json;

pub use page::size_html;

/// Returns the sizing as one JSON object on one line, as `docs/reference/size.schema.json` describes it.
pub fn size_json(report: &SizeReport) -> String {
    to_json(report)
}

/// Returns the sizing as text: a row per policy, the answer in a sentence, and notes.
pub fn size_table(report: &SizeReport) -> String {
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
    let mut text = format!("{head}\n{}\n", aligned(&headings(&columns()), rows(report), 1));
    text.extend(std::iter::once(words::answer(report)).chain(words::notes(report)).map(|note| noted(&note)));
    text
}

/// Returns a row per policy.
fn rows(report: &SizeReport) -> impl Iterator<Item = Vec<String>> {
    let columns = columns();
    report.policies.iter().map(move |policy| cells(&columns, &(report, policy)))
}

/// Returns the columns of a policy.
fn columns<'a>() -> [Column<(&'a SizeReport, &'a PolicySize)>; 8] {
    [
        ("policy", |(_, policy)| policy.policy.clone()),
        ("needs", |(_, policy)| match (&policy.recommended, policy.outcome) {
            (Some(size), _) => size.fast_bytes.to_string(),
            (None, Outcome::Never) => "never".into(),
            (None, _) => "not found".into(),
        }),
        ("interval", |(_, policy)| recommended(policy, interval)),
        ("of footprint", |(report, policy)| recommended(policy, |size| percent(share(report, size)))),
        ("saves", |(_, policy)| recommended(policy, |size| size.saved_bytes.to_string())),
        ("slowdown", |(_, policy)| recommended(policy, |size| cost(size.slowdown))),
        ("verified in full", |(_, policy)| verified(policy).into()),
        ("knee", |(_, policy)| {
            let knee = policy.knee.as_ref();
            knee.map_or("-".into(), |knee| format!("{} ({})", knee.fast_bytes, cost(knee.slowdown)))
        }),
    ]
}

fn recommended(policy: &PolicySize, cell: impl Fn(&Recommended) -> String) -> String {
    policy.recommended.as_ref().map_or("-".into(), cell)
}

/// Returns the size as a share of the footprint.
fn share(report: &SizeReport, size: &Recommended) -> f64 {
    size.fast_bytes.0 as f64 / report.input.footprint_bytes.0.max(1) as f64
}

/// Formats a slowdown as its cost: `4.8 %`.
fn cost(slowdown: f64) -> String {
    percent(slowdown - 1.0)
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
