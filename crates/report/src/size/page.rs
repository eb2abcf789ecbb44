//! The HTML page of a sizing: a picture of slowdown against size, drawn by a script, and tables written here.

use isotherm_sim::{FullRun, PolicySize, SizeReport};
use serde_json::json;

use super::plan::Plan;
use super::{columns, cost, costs, notes, rows, words};
use crate::columns::{Cell, Column, cells, headings};
use crate::facts::limits;
use crate::format::{count, percent};
use crate::html::{PLOT, Page, colours, figure, fold, machine, provenance, section, table};
use crate::verdict::sized;

const SCRIPT: &str = include_str!("../../assets/size.js");
const CAPTION: &str = "Modelled time over that with all memory fast. Bands: 95 % intervals. Large points: the \
                       recommended sizes, filled where simulated in full. Diamonds: knees. Dashed grey: the bounds.";

/// Returns the sizing as one self-contained HTML file.
pub fn size_html(report: &SizeReport, plan: &Plan) -> String {
    let verdict = sized(report, plan);
    let policies = || report.policies.iter().map(|policy| policy.policy.as_str());
    let data = json!({
        "footprint": report.input.footprint_bytes.0,
        "budget": report.budget,
        "all_slow": report.all_slow,
        "bounds": limits(),
        "policies": policies().collect::<Vec<_>>(),
        "colours": policies().map(colours::colour).collect::<Vec<_>>(),
        "sized": report.policies,
    });
    let full: usize = report.policies.iter().map(|policy| policy.full.len()).sum();
    let body = [
        section("Slowdown against size", "", &figure("size", "Each size of the fast tier", CAPTION, "")),
        section("Needs of each policy", "", &table(&headings(&columns()), rows(report))),
        fold(
            "Full simulations",
            &format!("{full}, in the order in which they were made"),
            &full_runs(report),
        ),
        fold("Machine", &report.machine.name, &machine(&report.machine)),
        fold("Provenance", &report.input.name, &provenance(&report.input.provenance)),
    ];
    let title = format!("{} on {}", report.input.name, report.machine.name);
    let page = Page {
        facts: facts(report),
        notes: notes(report, plan, &verdict),
        body: body.concat(),
        scripts: &[PLOT, SCRIPT],
        ..Page::of("sizing", title, Some(verdict))
    };
    page.html(&data)
}

fn facts(report: &SizeReport) -> Vec<(&'static str, String)> {
    let input = &report.input;
    vec![
        ("misses", count(input.accesses)),
        ("footprint", input.footprint_bytes.to_string()),
        ("budget", percent(report.budget)),
        ("all slow", cost(report.all_slow)),
        ("length", words::length(report)),
        ("sub-samples", words::sampling(report)),
        ("machine", crate::table::machine(&report.machine)),
        ("seed", input.seed.to_string()),
        ("Isotherm", report.version.clone()),
    ]
}

/// Returns the table of full simulations, each beside its expected result.
fn full_runs(report: &SizeReport) -> String {
    let columns: [Column<(&PolicySize, &FullRun)>; 7] = [
        ("policy", |(policy, _)| policy.policy.as_str().into()),
        ("size", |(_, run)| Cell::size(run.fast_bytes)),
        ("expected", |(_, run)| costs(run.expected)),
        ("interval", |(_, run)| costs(run.low).shown_as(format!("{} to {}", cost(run.low), cost(run.high)))),
        ("in full", |(_, run)| costs(run.slowdown)),
        ("in the interval", |(_, run)| yes(run.within).into()),
        ("within the budget", |(_, run)| yes(run.meets).into()),
    ];
    let runs = report.policies.iter().flat_map(|policy| policy.full.iter().map(move |run| (policy, run)));
    table(&headings(&columns), runs.map(|run| cells(&columns, &run)))
}

fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}
