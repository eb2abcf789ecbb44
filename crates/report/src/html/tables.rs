//! Defines the page's tables: they are plain HTML, readable without scripts.

use isotherm_core::parameters::Parameters;
use isotherm_sim::{Report, RunResult};

use super::data::MAX_RUNS;
use super::{MAX_TEXT, escape};
use crate::facts::failures;
use crate::format::{count, factor, percent, shortened};

/// Rows of a table whose length is not ours.
pub(crate) const MAX_ROWS: usize = 200;
const MAX_POLICIES: usize = 40;

const RUN_COLUMNS: [&str; 19] = [
    "policy",
    "fast tier",
    "size",
    "hits",
    "final",
    "loads",
    "oracle",
    "belady",
    "slowdown",
    "modelled time",
    "stall per tier",
    "promoted",
    "demoted",
    "failed",
    "moved",
    "samples",
    "lost",
    "metadata",
    "tiering CPU",
];

/// A row a run.
pub(super) fn runs(report: &Report) -> String {
    let shown = report.runs.iter().take(MAX_RUNS).map(run_row);
    let mut text = format!("<div class=\"runs\">{}</div>", table(&RUN_COLUMNS, shown));
    if report.runs.len() > MAX_RUNS {
        text +=
            &format!("<p>The first {MAX_RUNS} of {} runs; the JSON output holds all.</p>", report.runs.len());
    }
    text
}

fn run_row(run: &RunResult) -> Vec<String> {
    let stalls: Vec<_> = run.stall_ns.iter().take(8).map(ToString::to_string).collect();
    let mark = if run.beats_oracle { "*" } else { "" };
    vec![
        run.policy.clone(),
        shortened(&run.fast, 20),
        run.fast_bytes.to_string(),
        format!("{mark}{}", percent(run.hit_ratio)),
        percent(run.final_hit_ratio),
        percent(run.load_hit_ratio),
        percent(run.oracle_hit_ratio),
        percent(run.belady_hit_ratio),
        factor(run.slowdown),
        run.modelled_ns.to_string(),
        stalls.join(" + "),
        count(run.promotions),
        count(run.demotions),
        count(failures(run)),
        run.bytes_moved.to_string(),
        count(run.samples),
        count(run.samples_lost),
        run.metadata_bytes.to_string(),
        run.tiering_cpu_ns.to_string(),
    ]
}

/// The parameters in force: the workload's, then each policy's that has any.
pub(super) fn parameters(report: &Report) -> String {
    let mut shown: Vec<&Parameters> = report.input.parameters.iter().collect();
    for run in &report.runs {
        let known = shown.iter().any(|parameters| same(parameters, &run.parameters));
        if !known && run.parameters.iter().next().is_some() && shown.len() < MAX_POLICIES {
            shown.push(&run.parameters);
        }
    }
    if shown.is_empty() {
        return "<p>Nothing run here has parameters.</p>".into();
    }
    shown.iter().map(|parameters| parameter_table(parameters)).collect()
}

fn same(one: &Parameters, other: &Parameters) -> bool {
    one.group() == other.group()
        && one.preset() == other.preset()
        && one.iter().map(|(_, value)| value).eq(other.iter().map(|(_, value)| value))
}

/// A group of parameters as they were in force.
pub(crate) fn parameter_table(parameters: &Parameters) -> String {
    let rows = parameters.iter().map(|(spec, value)| {
        let default =
            if spec.parse(spec.default) == Some(value) { String::new() } else { spec.default.into() };
        [spec.name.into(), value.to_string(), spec.unit.into(), default, spec.help.into(), spec.source.into()]
    });
    let rows = table(&["parameter", "value", "unit", "default, where it differs", "meaning", "source"], rows);
    let preset = parameters.preset().map_or(String::new(), |preset| format!(", preset {preset}"));
    format!("<h3>{}{}</h3>{rows}", escape(parameters.group()), escape(&preset))
}

/// The machine's numbers with their sources.
pub(super) fn machine(report: &Report) -> String {
    let numbers = &report.machine.numbers;
    let rows = numbers
        .iter()
        .take(MAX_ROWS)
        .map(|number| [number.path.clone(), number.value.clone(), number.source.clone()]);
    table(&["number", "value", "source"], rows)
}

/// Where the input comes from.
pub(super) fn provenance(report: &Report) -> String {
    let rows = report.input.provenance.iter().take(MAX_ROWS).map(|(key, value)| [key.clone(), value.clone()]);
    table(&["what", "value"], rows)
}

/// A table that scrolls sideways by itself where the page is narrow.
pub(crate) fn table<R: AsRef<[String]>>(header: &[&str], rows: impl Iterator<Item = R>) -> String {
    let cells = |row: R| -> String {
        row.as_ref().iter().map(|cell| format!("<td>{}</td>", escape(&shortened(cell, MAX_TEXT)))).collect()
    };
    let header: String = header.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
    let rows: String = rows.map(|row| format!("<tr>{}</tr>", cells(row))).collect();
    format!(
        "<div class=\"scroll\"><table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}
