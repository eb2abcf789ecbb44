//! Defines the HTML page of a sizing: a chart of slowdown against size, drawn by a script, and tables written here.

use isotherm_sim::{PolicySize, SizeReport};
use serde::Serialize;

use super::{HEADER, cost, row, words};
use crate::facts::BOUNDS;
use crate::format::{count, percent, shortened};
use crate::html::{
    CHARTING_LIBRARY, MAX_TEXT, STYLE, definitions, escape, fill, items, prose, script_safe, table,
};

const PAGE: &str = include_str!("../../assets/size.html");
const SCRIPTS: [&str; 3] = [
    include_str!("../../assets/theme.js"),
    include_str!("../../assets/charts.js"),
    include_str!("../../assets/size.js"),
];

/// What the page's script draws from.
#[derive(Serialize)]
struct Data<'a> {
    footprint: u64,
    budget: f64,
    all_slow: f64,
    bounds: [&'static str; 4],
    policies: Vec<&'a str>,
    sized: &'a [PolicySize],
}

/// The sizing as one HTML file without any reference to another.
pub fn size_html(report: &SizeReport) -> String {
    let title = format!("{} on {}", shortened(&report.input.name, MAX_TEXT), report.machine.name);
    let rows = report.policies.iter().map(|policy| row(report, policy));
    let numbers = report.machine.numbers.iter();
    let numbers = numbers.map(|number| [number.path.clone(), number.value.clone(), number.source.clone()]);
    let provenance = report.input.provenance.iter().map(|(key, value)| [key.clone(), value.clone()]);
    let parts = [
        ("title", escape(&title)),
        ("style", STYLE.into()),
        ("answer", prose(&words::answer(report))),
        ("facts", facts(report)),
        ("notes", items(&words::notes(report))),
        ("sizes", table(&HEADER, rows)),
        ("full", full_runs(report)),
        ("machine", table(&["number", "value", "source"], numbers)),
        ("provenance", table(&["what", "value"], provenance)),
        ("data", script_safe(&data(report))),
        ("library", CHARTING_LIBRARY.into()),
        ("scripts", SCRIPTS.concat()),
    ];
    fill(PAGE, &parts)
}

fn data(report: &SizeReport) -> String {
    let data = Data {
        footprint: report.input.footprint_bytes.0,
        budget: report.budget,
        all_slow: report.all_slow,
        bounds: BOUNDS,
        policies: report.policies.iter().map(|policy| policy.policy.as_str()).collect(),
        sized: &report.policies,
    };
    serde_json::to_string(&data).unwrap_or_else(|error| unreachable!("the page is plain data: {error}"))
}

fn facts(report: &SizeReport) -> String {
    let input = &report.input;
    let terms = [
        (input.kind, shortened(&input.name, MAX_TEXT)),
        ("accesses", count(input.accesses)),
        ("footprint", input.footprint_bytes.to_string()),
        ("budget", percent(report.budget)),
        ("all slow", cost(report.all_slow)),
        ("sub-samples", words::sampling(report)),
        ("machine", format!("{}: {}", report.machine.name, shortened(&report.machine.title, MAX_TEXT))),
        ("seed", input.seed.to_string()),
        ("Isotherm", report.version.clone()),
    ];
    definitions(&terms)
}

/// Every full simulation beside what was expected of it.
fn full_runs(report: &SizeReport) -> String {
    let yes = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
    let rows = report.policies.iter().flat_map(|policy| {
        policy.full.iter().map(move |run| {
            [
                policy.policy.clone(),
                run.fast_bytes.to_string(),
                cost(run.expected),
                format!("{} to {}", cost(run.low), cost(run.high)),
                cost(run.slowdown),
                yes(run.within),
                yes(run.meets),
            ]
        })
    });
    let header =
        ["policy", "size", "expected", "interval", "in full", "in the interval", "within the budget"];
    table(&header, rows)
}
