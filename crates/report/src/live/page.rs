//! The HTML page of a live run: pictures over time, drawn by a script, and tables written here.

use isotherm_core::live_result::{HotShare, LiveResult, MemoryRange, SourceUse, TierUse};

use super::timeline::timeline;
use super::words;
use crate::columns::{Column, cells, headings};
use crate::format::{count, counted, factor, percent, printable, shortened};
use crate::html::{
    MAX_ROWS, MAX_TEXT, definitions, escape, items, listed, page, parameter_table, prose, table,
};
use crate::verdict;

const SCRIPTS: [&str; 3] = [
    include_str!("../../assets/theme.js"),
    include_str!("../../assets/charts.js"),
    include_str!("../../assets/live.js"),
];

/// Characters of a warning, whose fix is at its end.
const MAX_WARNING: usize = 1000;

const SOURCES: [Column<SourceUse>; 8] = [
    ("source", |source| source.name.to_owned()),
    ("samples", |source| count(source.delivered)),
    ("lost", |source| count(source.lost)),
    ("times throttled", |source| count(source.throttled)),
    ("elsewhere or unreadable", |source| count(source.foreign)),
    ("agents' CPU", |source| source.agent_cpu_ns.to_string()),
    ("program's time lost", |source| source.program_ns.to_string()),
    ("memory", |source| source.memory_bytes.to_string()),
];

/// Returns the run as one self-contained HTML file of at most [`crate::MAX_HTML_BYTES`].
pub fn live_html(result: &LiveResult) -> String {
    let (summary, timeline) = (&result.summary, timeline(result));
    let [residency, moves] = captions(summary.shadow);
    let command = shortened(&result.program.join(" "), MAX_TEXT);
    let sources = summary.sources.iter().take(MAX_ROWS);
    let has_gauges = timeline["gauges"].as_object().is_some_and(|gauges| !gauges.is_empty());
    let has_parameters = result.parameters.iter().next().is_some();
    let parts = [
        ("title", escape(&format!("{command} under {}", result.policy))),
        ("answer", prose(&format!("{} {}", verdict::live(result).text(), words::answer(result)))),
        ("facts", definitions(&facts(result))),
        ("notes", items(&words::notes(result))),
        ("residency", residency.into()),
        ("moves", moves.into()),
        ("gauges_hidden", if has_gauges { "" } else { " hidden" }.into()),
        ("tiers", tiers(result)),
        ("hot_set", hot_set(result)),
        ("traffic", traffic(result)),
        ("sources", some(!summary.sources.is_empty(), "None.", || listed(&SOURCES, sources))),
        ("cost", cost(result)),
        ("warnings", some(!summary.warnings.is_empty(), "None.", || warnings(&summary.warnings))),
        ("ranges", ranges(result)),
        ("parameters", some(has_parameters, "The policy has none.", || parameter_table(&result.parameters))),
    ];
    page(include_str!("../../assets/live.html"), &SCRIPTS, &timeline, &parts)
}

/// Returns the content, or a paragraph that says that there is none.
fn some(exists: bool, otherwise: &str, content: impl FnOnce() -> String) -> String {
    if exists { content() } else { format!("<p>{otherwise}</p>") }
}

/// Returns the captions of the pictures of residency and of moves.
fn captions(shadow: bool) -> [&'static str; 2] {
    if shadow {
        ["Where the memory in use would be.", "Pages that would move in a second"]
    } else {
        ["Where the memory in use is.", "Pages moved in a second"]
    }
}

fn facts(result: &LiveResult) -> Vec<(&'static str, String)> {
    let summary = &result.summary;
    let hits = if summary.hits_measured { "counted by the hardware" } else { "summed over samples" };
    let slowdown = summary.slowdown_at_most;
    let slowdown = slowdown.map_or("-".into(), |slowdown| format!("{} x all-fast time", factor(slowdown)));
    let mut facts = vec![
        ("policy", result.policy.clone()),
        ("run", words::run(result)),
        ("processes", printable(&summary.process_names.join(", "))),
        ("memory in use", summary.footprint_bytes.to_string()),
        ("hits", hits.into()),
        ("hit ratio", words::known(summary.hit_ratio)),
        ("second half", words::known(summary.final_hit_ratio)),
        ("slowdown at most", slowdown),
        ("engine", format!("{} of one processor", percent(summary.engine.cpu_share))),
        ("engine's memory", words::engine_memory(result).to_string()),
        ("seed", result.seed.to_string()),
        ("Isotherm", result.version.clone()),
    ];
    facts.extend(words::left_out(result).map(|left_out| ("left out of hint faults", left_out)));
    facts
}

fn tiers(result: &LiveResult) -> String {
    let columns: [Column<(usize, &TierUse, &LiveResult)>; 7] = [
        ("tier", |(index, ..)| index.to_string()),
        ("resident at the end", |(_, tier, _)| tier.resident_bytes.to_string()),
        ("limit", |(_, tier, _)| tier.capacity_bytes.to_string()),
        ("accesses", |(_, tier, _)| count(tier.hits)),
        ("share of accesses", |(_, tier, result)| words::tier_share(result, tier)),
        ("idle latency", |(_, tier, _)| tier.latency_ns.to_string()),
        ("nodes", |(_, tier, _)| words::nodes(tier)),
    ];
    let tiers = result.summary.tiers.iter().take(MAX_ROWS).enumerate();
    table(&headings(&columns), tiers.map(|(index, tier)| cells(&columns, &(index, tier, result))))
}

fn hot_set(result: &LiveResult) -> String {
    let columns: [Column<(&HotShare, &LiveResult)>; 3] = [
        ("this share of the sampled accesses", |(share, _)| percent(share.accesses)),
        ("went to this much memory", |(share, _)| share.bytes.to_string()),
        ("of the memory in use", |(share, result)| words::of_footprint(result, share.bytes)),
    ];
    let shares = result.summary.hot_set.shares.iter().filter(|share| share.bytes.0 > 0).take(MAX_ROWS);
    let rows: Vec<_> = shares.map(|share| cells(&columns, &(share, result))).collect();
    some(!rows.is_empty(), "No access was sampled.", || table(&headings(&columns), rows.iter()))
}

fn traffic(result: &LiveResult) -> String {
    let traffic = &result.summary.traffic;
    let moved = [
        ("promoted", traffic.promotions, "To a faster tier."),
        ("demoted", traffic.demotions, "To a slower tier, by name."),
        ("reclaimed", traffic.reclaimed, "Off a tier by the kernel's own LRU."),
    ]
    .map(|(what, pages, meaning)| [what.to_owned(), count(pages), meaning.to_owned()]);
    let refused = words::refusals(&traffic.refused)
        .map(|(why, moves, meaning)| [format!("refused: {why}"), count(moves), meaning.to_owned()]);
    format!(
        "{}<p class=\"legend\">Pages of {}; {} copied.{}</p>",
        table(&["what", "pages", "meaning"], moved.iter().chain(&refused)),
        words::page_size(result),
        traffic.bytes_moved,
        if result.summary.shadow { " Shadow: all of it only would have been." } else { "" }
    )
}

fn cost(result: &LiveResult) -> String {
    let (summary, engine) = (&result.summary, &result.summary.engine);
    let samples = counted(result.samples, "sample", "samples");
    let faults = counted(result.hint_faults, "hint fault", "hint faults");
    let steps = counted(result.steps, "step", "steps");
    let (lost, foreign) = (count(result.samples_lost), count(summary.samples_foreign));
    let rows = [
        ("engine's CPU, agents included", words::engine_cpu(result).to_string()),
        ("as a share of one processor", percent(engine.cpu_share)),
        ("policy's memory, at its largest", engine.metadata_bytes.to_string()),
        ("memory for page numbers, residency and heat", engine.host_bytes.to_string()),
        ("program's time lost to sampling, all threads", words::program_time(result).to_string()),
        ("reached the policy", format!("{samples}, {faults}, {steps}")),
        ("did not reach it", format!("{lost} lost, {foreign} outside of tiered memory")),
    ];
    table(&["what", "value"], rows.into_iter().map(|(what, value)| [what.to_owned(), value]))
}

fn warnings(warnings: &[String]) -> String {
    let shown = warnings.iter().take(MAX_ROWS).map(|warning| shortened(warning, MAX_WARNING));
    let shown = items(&shown.collect::<Vec<_>>());
    format!("<ul class=\"notes\">{shown}</ul>{}", rest(warnings.len()))
}

/// Returns the ranges in the result's order: the most accessed page first.
fn ranges(result: &LiveResult) -> String {
    let columns: [Column<(&MemoryRange, u64)>; 5] = [
        ("process", |(range, _)| range.process.to_string()),
        ("address", |(range, _)| format!("{:#x}", range.start)),
        ("size", |(range, _)| range.bytes.to_string()),
        ("accesses sampled", |(range, _)| count(range.accesses)),
        ("accesses per page", |&(range, page)| {
            per_page(range.accesses as f64 / (range.bytes.0 as f64 / page as f64))
        }),
    ];
    let page = result.summary.page_size.bytes().0;
    let ranges = &result.summary.hot_set.fast_ranges;
    some(!ranges.is_empty(), "None: nothing was on the fast tier at the end.", || {
        let rows = ranges.iter().take(MAX_ROWS).map(|range| cells(&columns, &(range, page)));
        table(&headings(&columns), rows) + &rest(ranges.len())
    })
}

fn per_page(accesses: f64) -> String {
    if accesses < 100.0 { factor(accesses) } else { count(accesses as u64) }
}

/// Says how many rows are not shown.
fn rest(all: usize) -> String {
    if all <= MAX_ROWS {
        return String::new();
    }
    format!(
        "<p class=\"legend\">The first {MAX_ROWS} of {all}; the JSON output holds all that were kept.</p>"
    )
}
