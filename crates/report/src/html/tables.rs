//! The page's tables, in plain HTML that is readable without scripts.

use std::collections::BTreeMap;

use isotherm_core::parameters::Parameters;
use isotherm_machine::MachineSummary;
use isotherm_sim::{Region, Report};

use super::data::MAX_RUNS;
use super::{MAX_TEXT, escape, fold};
use crate::columns::{Cell, Column, cells, headings};
use crate::format::shortened;
use crate::table::{columns, round_columns, rounds as rounds_of};

/// Rows of a table whose length the input determines.
pub(crate) const MAX_ROWS: usize = 200;
const MAX_POLICIES: usize = 40;
const MAX_ROUNDS: usize = 4000;

/// Returns the table of runs.
pub(super) fn runs(report: &Report) -> String {
    let runs = report.runs.iter().take(MAX_RUNS);
    let mut text = listed(&columns(report, true), runs);
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
    fold("Rounds", "of a long run", &listed(&round_columns(), rows.iter()))
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

/// Returns a table that a script lets the reader sort and save, and that scrolls sideways by itself where the
/// page is narrow. Columns of numbers are aligned to the right.
pub(crate) fn table<R: IntoIterator<Item: Into<Cell>>>(
    header: &[&str],
    rows: impl Iterator<Item = R>,
) -> String {
    let rows: Vec<Vec<Cell>> = rows.map(|row| row.into_iter().map(Into::into).collect()).collect();
    let numbers =
        |column: usize| rows.iter().filter_map(move |row| row.get(column)).find(|cell| cell.value.is_some());
    let head = |(column, name): (usize, &&str)| {
        let unit = numbers(column).map(|cell| format!(" class=\"n\" data-unit=\"{}\"", cell.unit));
        format!("<th scope=\"col\"{}>{}</th>", unit.unwrap_or_default(), escape(name))
    };
    let is_number: Vec<bool> = (0..header.len()).map(|column| numbers(column).is_some()).collect();
    let cell = |(column, cell): (usize, &Cell)| {
        let class = if is_number.get(column) == Some(&true) { " class=\"n\"" } else { "" };
        let value = cell.value.map_or_else(String::new, |value| format!(" data-value=\"{value}\""));
        format!("<td{class}{value}>{}</td>", escape(&shortened(&cell.text, MAX_TEXT)))
    };
    let header: String = header.iter().enumerate().map(head).collect();
    let row = |row: &Vec<Cell>| format!("<tr>{}</tr>", row.iter().enumerate().map(cell).collect::<String>());
    let body: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table class=\"data\"><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>"
    )
}

/// Returns the table of what memory the input's misses are in; `None` where that is not known.
pub(super) fn objects(report: &Report) -> Option<String> {
    let input = &report.input;
    let columns: [Column<(&Region, u64, u64)>; 6] = [
        ("object", |(region, ..)| region.name.as_str().into()),
        ("misses", |(region, ..)| Cell::count(region.accesses)),
        ("of all misses", |(region, all, _)| Cell::percent(region.accesses as f64 / *all as f64)),
        ("memory", |(region, ..)| Cell::size(region.bytes)),
        ("of all memory", |(region, _, memory)| Cell::percent(region.bytes.0 as f64 / *memory as f64)),
        ("misses per MiB", |(region, ..)| {
            Cell::count((region.accesses as f64 / (region.bytes.0 as f64 / f64::from(1 << 20))) as u64)
        }),
    ];
    let regions = input.regions.iter().take(MAX_ROWS);
    let rows: Vec<_> =
        regions.map(|region| (region, input.accesses.max(1), input.footprint_bytes.0.max(1))).collect();
    (!rows.is_empty()).then(|| listed(&columns, rows.iter()))
}
