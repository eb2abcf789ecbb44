//! The HTML page of a live run: pictures over time, drawn by a script, and tables written here.

use isotherm_core::live_result::{HotShare, LiveResult, MemoryRange, SourceUse, TierUse};

use super::timeline::timeline;
use super::words;
use crate::columns::{Cell, Column, cells, headings};
use crate::format::{counted, percent, printable, shortened};
use crate::html::{
    MAX_ROWS, MAX_TEXT, OVER_TIME, PLOT, Page, figure, fold, items, listed, parameter_table, section, table,
};
use crate::verdict;

const SCRIPT: &str = include_str!("../../assets/live.js");

/// Characters of a warning, whose fix is at its end.
const MAX_WARNING: usize = 1000;

const SOURCES: [Column<SourceUse>; 8] = [
    ("source", |source| source.name.into()),
    ("samples", |source| Cell::count(source.delivered)),
    ("lost", |source| Cell::count(source.lost)),
    ("times throttled", |source| Cell::count(source.throttled)),
    ("elsewhere or unreadable", |source| Cell::count(source.foreign)),
    ("agents' CPU", |source| Cell::time(source.agent_cpu_ns)),
    ("program's time lost", |source| Cell::time(source.program_ns)),
    ("memory", |source| Cell::size(source.memory_bytes)),
];

/// Returns the run as one self-contained HTML file of at most [`crate::MAX_HTML_BYTES`].
pub fn live_html(result: &LiveResult) -> String {
    let (summary, timeline) = (&result.summary, timeline(result));
    let [residency, moves] = captions(summary.shadow);
    let command = shortened(&result.program.join(" "), MAX_TEXT);
    let gauges = timeline["gauges"].as_object();
    let gauges: String = gauges
        .into_iter()
        .flatten()
        .map(|(name, _)| figure(&format!("gauge-{name}"), name, "As the policy reported it.", ""))
        .collect();
    let pictures = [
        figure("residency", "Memory on each tier", residency, ""),
        figure(
            "hits",
            "Hit ratio",
            "Share of the accesses that the fast tier served; gaps are times without any.",
            "",
        ),
        figure("moves", "Moves", moves, ""),
        figure("samples", "Samples", "Samples of tiered memory in a second.", ""),
    ];
    let quiet = summary.warnings.is_empty();
    let parameters = result.parameters.iter().next();
    let sources = some(!summary.sources.is_empty(), "None.", || {
        listed(&SOURCES, summary.sources.iter().take(MAX_ROWS))
    });
    let body = [
        if quiet { String::new() } else { section("Warnings", "", &warnings(&summary.warnings)) },
        section("Over time", "", &format!("<div class=\"pair\">{}</div>", pictures.concat())),
        section("Tiers", "", &tiers(result)),
        fold("Hot set", "the least memory that takes a share of the accesses", &hot_set(result)),
        fold("Hottest ranges on the fast tier", "by process and address", &ranges(result)),
        fold("Moves", "and why some failed", &traffic(result)),
        fold("Access sources", "and what they took and lost", &sources),
        fold("Cost", "of the engine, its policy and its sources", &cost(result)),
        if gauges.is_empty() {
            String::new()
        } else {
            fold("Internals", "the policy's own numbers", &format!("<div class=\"pair\">{gauges}</div>"))
        },
        fold(
            "Parameters",
            "in force",
            &some(parameters.is_some(), "The policy has none.", || parameter_table(&result.parameters)),
        ),
    ];
    let mut answer = verdict::live(result);
    answer.sentence = format!("{} {}", answer.text(), words::answer(result));
    answer.sure.clear();
    let page = Page {
        facts: facts(result),
        notes: words::notes(result),
        body: body.concat(),
        scripts: &[PLOT, OVER_TIME, SCRIPT],
        ..Page::of("live run", format!("{command} under {}", result.policy), Some(answer))
    };
    page.html(&timeline)
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
    let slowdown = match summary.slowdown_at_most {
        Some(_) => format!("{} x all-fast time", words::slowdown(result)),
        None => "-".into(),
    };
    let mut facts = vec![
        ("policy", result.policy.clone()),
        ("run", words::run(result)),
        ("processes", printable(&summary.process_names.join(", "))),
        ("memory in use", summary.footprint_bytes.to_string()),
        ("hits", hits.into()),
        ("hit ratio", words::known(summary.hit_ratio, summary.intervals.hit_ratio)),
        ("second half", words::known(summary.final_hit_ratio, summary.intervals.final_hit_ratio)),
        ("slowdown at most", slowdown),
        ("engine", format!("{} of one processor", percent(summary.engine.cpu_share))),
        ("engine's memory", words::engine_memory(result).to_string()),
        ("seed", result.seed.to_string()),
        ("Isotherm", result.version.clone()),
    ];
    facts.extend(words::swapped(result).map(|swapped| ("memory in swap", swapped)));
    facts.extend(words::left_out(result).map(|left_out| ("left out of hint faults", left_out)));
    facts
}

fn tiers(result: &LiveResult) -> String {
    let columns: [Column<(usize, &TierUse, &LiveResult)>; 7] = [
        ("tier", |(index, ..)| Cell::digits(*index as u64)),
        ("resident at the end", |(_, tier, _)| Cell::size(tier.resident_bytes)),
        ("limit", |(_, tier, _)| Cell::size(tier.capacity_bytes)),
        ("accesses", |(_, tier, _)| Cell::count(tier.hits)),
        ("share of accesses", |(_, tier, result)| words::tier_share(result, tier).into()),
        ("idle latency", |(_, tier, _)| Cell::time(tier.latency_ns)),
        ("nodes", |(_, tier, _)| words::nodes(tier).into()),
    ];
    let tiers = result.summary.tiers.iter().take(MAX_ROWS).enumerate();
    table(&headings(&columns), tiers.map(|(index, tier)| cells(&columns, &(index, tier, result))))
}

fn hot_set(result: &LiveResult) -> String {
    let columns: [Column<(&HotShare, &LiveResult)>; 3] = [
        ("this share of the sampled accesses", |(share, _)| Cell::percent(share.accesses)),
        ("went to this much memory", |(share, _)| {
            let bounds = format!("{} ({}-{})", share.bytes, share.low_bytes, share.high_bytes);
            Cell::size(share.bytes).shown_as(bounds)
        }),
        ("of the memory in use", |(share, result)| words::of_footprint(result, share.bytes).into()),
    ];
    let shares = result.summary.hot_set.shares.iter().filter(|share| share.bytes.0 > 0).take(MAX_ROWS);
    let rows: Vec<_> = shares.map(|share| cells(&columns, &(share, result))).collect();
    some(!rows.is_empty(), "Too little was sampled to tell.", || table(&headings(&columns), rows.into_iter()))
}

fn traffic(result: &LiveResult) -> String {
    let traffic = &result.summary.traffic;
    let moved = [
        ("promoted", traffic.promotions, "To a faster tier."),
        ("demoted", traffic.demotions, "To a slower tier, by name."),
        ("reclaimed", traffic.reclaimed, "Off a tier by the kernel's own LRU."),
    ]
    .map(|(what, pages, meaning)| [what.into(), Cell::count(pages), meaning.into()]);
    let refused = words::refusals(&traffic.refused)
        .map(|(why, moves, meaning)| [format!("refused: {why}").into(), Cell::count(moves), meaning.into()]);
    format!(
        "{}<p class=\"legend\">Pages of {}; {} copied.{}</p>",
        table(&["what", "pages", "meaning"], moved.into_iter().chain(refused)),
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
    let (lost, foreign) = (Cell::count(result.samples_lost), Cell::count(summary.samples_foreign));
    let rows = [
        ("engine's CPU, agents included", words::engine_cpu(result).to_string()),
        ("as a share of one processor", percent(engine.cpu_share)),
        ("policy's memory, at its largest", engine.metadata_bytes.to_string()),
        ("memory for page numbers, residency, heat and kept samples", engine.host_bytes.to_string()),
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
        ("process", |(range, _)| Cell::digits(range.process.into())),
        ("address", |(range, _)| format!("{:#x}", range.start).into()),
        ("size", |(range, _)| Cell::size(range.bytes)),
        ("accesses sampled", |(range, _)| Cell::count(range.accesses)),
        ("accesses per page", |&(range, page)| {
            let accesses = range.accesses as f64 / (range.bytes.0 as f64 / page as f64);
            if accesses < 100.0 { Cell::factor(accesses) } else { Cell::count(accesses as u64) }
        }),
    ];
    let page = result.summary.page_size.bytes().0;
    let ranges = &result.summary.hot_set.fast_ranges;
    some(!ranges.is_empty(), "None: nothing was on the fast tier at the end.", || {
        let rows = ranges.iter().take(MAX_ROWS).map(|range| cells(&columns, &(range, page)));
        table(&headings(&columns), rows) + &rest(ranges.len())
    })
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
