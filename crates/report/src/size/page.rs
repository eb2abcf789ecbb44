//! The HTML page of a sizing: a chart of slowdown against size, drawn by a script, and tables written here.

use isotherm_sim::{FullRun, PolicySize, SizeReport};
use serde_json::json;

use super::plan::Plan;
use super::{columns, cost, notes, rows, words};
use crate::columns::{Column, cells, headings};
use crate::facts::limits;
use crate::format::{count, percent};
use crate::html::{definitions, items, machine, page, prose, provenance, table, title};
use crate::verdict::sized;

const SCRIPTS: [&str; 3] = [
    include_str!("../../assets/theme.js"),
    include_str!("../../assets/charts.js"),
    include_str!("../../assets/size.js"),
];

/// Returns the sizing as one self-contained HTML file.
pub fn size_html(report: &SizeReport, plan: &Plan) -> String {
    let verdict = sized(report, plan);
    let data = json!({
        "footprint": report.input.footprint_bytes.0,
        "budget": report.budget,
        "all_slow": report.all_slow,
        "bounds": limits(),
        "policies": report.policies.iter().map(|policy| &policy.policy).collect::<Vec<_>>(),
        "sized": report.policies,
    });
    let parts = [
        ("title", title(&report.input.name, &report.machine.name)),
        ("answer", prose(&verdict.text())),
        ("facts", facts(report)),
        ("notes", items(&notes(report, plan, &verdict))),
        ("sizes", table(&headings(&columns()), rows(report))),
        ("full", full_runs(report)),
        ("machine", machine(&report.machine)),
        ("provenance", provenance(&report.input.provenance)),
    ];
    page(include_str!("../../assets/size.html"), &SCRIPTS, &data, &parts)
}

fn facts(report: &SizeReport) -> String {
    let input = &report.input;
    let terms = [
        (input.kind, input.name.clone()),
        ("accesses", count(input.accesses)),
        ("footprint", input.footprint_bytes.to_string()),
        ("budget", percent(report.budget)),
        ("all slow", cost(report.all_slow)),
        ("length", words::length(report)),
        ("sub-samples", words::sampling(report)),
        ("machine", crate::table::machine(&report.machine)),
        ("seed", input.seed.to_string()),
        ("Isotherm", report.version.clone()),
    ];
    definitions(&terms)
}

/// Returns the table of full simulations, each beside its expected result.
fn full_runs(report: &SizeReport) -> String {
    let columns: [Column<(&PolicySize, &FullRun)>; 7] = [
        ("policy", |(policy, _)| policy.policy.clone()),
        ("size", |(_, run)| run.fast_bytes.to_string()),
        ("expected", |(_, run)| cost(run.expected)),
        ("interval", |(_, run)| format!("{} to {}", cost(run.low), cost(run.high))),
        ("in full", |(_, run)| cost(run.slowdown)),
        ("in the interval", |(_, run)| yes(run.within)),
        ("within the budget", |(_, run)| yes(run.meets)),
    ];
    let runs = report.policies.iter().flat_map(|policy| policy.full.iter().map(move |run| (policy, run)));
    table(&headings(&columns), runs.map(|run| cells(&columns, &run)))
}

fn yes(holds: bool) -> String {
    if holds { "yes" } else { "no" }.into()
}
