//! The page's tables, in plain HTML that is readable without scripts.

use std::collections::BTreeMap;

use isotherm_core::parameters::Parameters;
use isotherm_machine::MachineSummary;
use isotherm_sim::Report;

use super::data::MAX_RUNS;
use super::{MAX_TEXT, escape};
use crate::columns::{Column, cells, headings};
use crate::format::shortened;
use crate::table::{columns, round_columns, rounds as rounds_of};

/// Rows of a table whose length the input determines.
pub(crate) const MAX_ROWS: usize = 200;
const MAX_POLICIES: usize = 40;
const MAX_ROUNDS: usize = 4000;

/// Returns the table of runs.
pub(super) fn runs(report: &Report) -> String {
    let runs = report.runs.iter().take(MAX_RUNS);
    let mut text = format!("<div class=\"runs\">{}</div>", listed(&columns(report, true), runs));
    if report.runs.len() > MAX_RUNS {
        text +=
            &format!("<p>The first {MAX_RUNS} of {} runs; the JSON output holds all.</p>", report.runs.len());
    }
    text
}

/// Returns the table of the rounds of long runs, about [`MAX_ROUNDS`] of all together; nothing for single
/// replays.
pub(super) fn rounds(report: &Report) -> String {
    let shown = &report.runs[..report.runs.len().min(MAX_RUNS)];
    let most = MAX_ROUNDS / shown.len().max(1);
    let rows: Vec<_> = shown.iter().flat_map(|run| rounds_of(run, most)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let rows = listed(&round_columns(), rows.iter());
    format!("<section><details><summary><h2>Rounds</h2></summary>{rows}</details></section>")
}

/// Returns the parameters in force: the workload's, then each policy's that has any.
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

/// Returns the table of a group of parameters in force.
pub(crate) fn parameter_table(parameters: &Parameters) -> String {
    let rows = parameters.iter().map(|(spec, value)| {
        let default = if spec.parse(spec.default) == Some(value) { "" } else { spec.default };
        [spec.name, &value.to_string(), spec.unit, default, spec.help, spec.source].map(str::to_owned)
    });
    let rows = table(&["parameter", "value", "unit", "default, where it differs", "meaning", "source"], rows);
    let preset = parameters.preset().map_or(String::new(), |preset| format!(", preset {preset}"));
    format!("<h3>{}{}</h3>{rows}", escape(parameters.group()), escape(&preset))
}

/// Returns the table of the machine's numbers with their sources.
pub(crate) fn machine(machine: &MachineSummary) -> String {
    let rows = machine.numbers.iter().take(MAX_ROWS);
    let rows = rows.map(|number| [number.path.clone(), number.value.clone(), number.source.clone()]);
    table(&["number", "value", "source"], rows)
}

/// Returns the table of the input's origin.
pub(crate) fn provenance(provenance: &BTreeMap<String, String>) -> String {
    let rows = provenance.iter().take(MAX_ROWS).map(|(key, value)| [key.clone(), value.clone()]);
    table(&["what", "value"], rows)
}

/// Returns the table of these items.
pub(crate) fn listed<'a, T: 'a>(columns: &[Column<T>], items: impl Iterator<Item = &'a T>) -> String {
    table(&headings(columns), items.map(|item| cells(columns, item)))
}

/// Returns a table that scrolls sideways by itself where the page is narrow.
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
