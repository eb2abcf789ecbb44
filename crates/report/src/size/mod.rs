//! Defines what people and programs read of a sizing: a table, JSON, and one self-contained HTML file.

mod page;
mod words;

use isotherm_sim::{Outcome, PolicySize, Recommended, SizeReport};

use crate::format::{count, percent};
use crate::table::{aligned, named, noted};

pub use page::size_html;

const HEADER: [&str; 8] =
    ["policy", "needs", "interval", "of footprint", "saves", "slowdown", "verified in full", "knee"];

/// The sizing as one JSON object on one line, as `docs/reference/size.schema.json` describes it.
pub fn size_json(report: &SizeReport) -> String {
    serde_json::to_string(report).unwrap_or_else(|error| unreachable!("the report is plain data: {error}"))
}

/// The sizing as text: a row a policy, the answer in a sentence, and notes.
pub fn size_table(report: &SizeReport) -> String {
    let mut text = head(report);
    text.push('\n');
    text.push_str(&aligned(&HEADER, report.policies.iter().map(|policy| row(report, policy)), 1));
    text.push('\n');
    for note in std::iter::once(words::answer(report)).chain(words::notes(report)) {
        text.push_str(&noted(&note));
    }
    text
}

fn head(report: &SizeReport) -> String {
    let input = &report.input;
    named(&[
        ("input", format!("{} {}", input.kind, input.name)),
        ("accesses", format!("{} missed the last-level cache", count(input.accesses))),
        ("footprint", input.footprint_bytes.to_string()),
        ("machine", format!("{}: {}", report.machine.name, report.machine.title)),
        (
            "budget",
            format!(
                "{} over all memory fast; all slow costs {}",
                percent(report.budget),
                cost(report.all_slow)
            ),
        ),
        ("samples", words::sampling(report)),
        ("seed", input.seed.to_string()),
    ])
}

/// A slowdown as what it costs: `4.8 %`.
fn cost(slowdown: f64) -> String {
    percent(slowdown - 1.0)
}

fn row(report: &SizeReport, policy: &PolicySize) -> [String; 8] {
    let cell = |show: &dyn Fn(&Recommended) -> String| policy.recommended.as_ref().map_or("-".into(), show);
    let share = |size: &Recommended| size.fast_bytes.0 as f64 / report.input.footprint_bytes.0.max(1) as f64;
    [
        policy.policy.clone(),
        policy
            .recommended
            .as_ref()
            .map_or_else(|| without(policy.outcome).into(), |size| size.fast_bytes.to_string()),
        cell(&interval),
        cell(&|size| percent(share(size))),
        cell(&|size| size.saved_bytes.to_string()),
        cell(&|size| cost(size.slowdown)),
        verified(policy).into(),
        policy
            .knee
            .as_ref()
            .map_or("-".into(), |knee| format!("{} ({})", knee.fast_bytes, cost(knee.slowdown))),
    ]
}

/// What stands in place of a size.
fn without(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Never => "never",
        _ => "not found",
    }
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
