//! Defines the HTML page of a live run: pictures over time, drawn by a script, and tables written here.

use isotherm_core::live_result::LiveResult;

use super::timeline::timeline;
use super::words;
use crate::format::{count, counted, factor, percent, printable, shortened};
use crate::html::{
    CHARTING_LIBRARY, MAX_ROWS, MAX_TEXT, STYLE, definitions, escape, fill, items, parameter_table, prose,
    script_safe, table,
};

const PAGE: &str = include_str!("../../assets/live.html");
const SCRIPTS: [&str; 3] = [
    include_str!("../../assets/theme.js"),
    include_str!("../../assets/charts.js"),
    include_str!("../../assets/live.js"),
];

/// Characters of a warning: its remedy stands at its end.
const MAX_WARNING: usize = 1000;

/// The run as one HTML file without any reference to another, at most [`crate::MAX_HTML_BYTES`] long.
pub fn live_html(result: &LiveResult) -> String {
    let timeline = timeline(result);
    let data = serde_json::to_string(&timeline)
        .unwrap_or_else(|error| unreachable!("the page is plain data: {error}"));
    let [residency, moves] = captions(result.summary.shadow);
    let command = shortened(&result.program.join(" "), MAX_TEXT);
    let parts = [
        ("title", escape(&format!("{command} under {}", result.policy))),
        ("style", STYLE.into()),
        ("answer", prose(&words::answer(result))),
        ("facts", definitions(&facts(result))),
        ("notes", items(&words::notes(result))),
        ("residency", residency.into()),
        ("moves", moves.into()),
        ("gauges_hidden", if timeline.has_gauges() { String::new() } else { " hidden".into() }),
        ("tiers", tiers(result)),
        ("hot_set", hot_set(result)),
        ("traffic", traffic(result)),
        ("sources", sources(result)),
        ("cost", cost(result)),
        ("warnings", warnings(result)),
        ("ranges", ranges(result)),
        ("parameters", parameters(result)),
        ("data", script_safe(&data)),
        ("library", CHARTING_LIBRARY.into()),
        ("scripts", SCRIPTS.concat()),
    ];
    fill(PAGE, &parts)
}

/// What the pictures of residency and of moves show.
fn captions(shadow: bool) -> [&'static str; 2] {
    if shadow {
        ["Where the memory in use would lie.", "Pages that would move in a second"]
    } else {
        ["Where the memory in use lies.", "Pages moved in a second"]
    }
}

fn facts(result: &LiveResult) -> Vec<(&'static str, String)> {
    let summary = &result.summary;
    let slowdown = summary
        .slowdown_at_most
        .map_or("-".into(), |slowdown| format!("{} x all-fast time", factor(slowdown)));
    vec![
        ("policy", result.policy.clone()),
        ("run", words::run(result)),
        ("processes", shortened(&printable(&summary.process_names.join(", ")), MAX_TEXT)),
        ("memory in use", summary.footprint_bytes.to_string()),
        (
            "hits",
            if summary.hits_measured { "counted by the hardware" } else { "summed over samples" }.into(),
        ),
        ("hit ratio", words::known(summary.hit_ratio)),
        ("second half", words::known(summary.final_hit_ratio)),
        ("slowdown at most", slowdown),
        ("engine", format!("{} of one processor", percent(summary.engine.cpu_share))),
        ("engine's memory", words::engine_memory(result).to_string()),
        ("seed", result.seed.to_string()),
        ("Isotherm", shortened(&result.version, MAX_TEXT)),
    ]
}

fn tiers(result: &LiveResult) -> String {
    let rows = result.summary.tiers.iter().take(MAX_ROWS).enumerate().map(|(index, tier)| {
        [
            index.to_string(),
            tier.resident_bytes.to_string(),
            tier.capacity_bytes.to_string(),
            count(tier.hits),
            words::tier_share(result, tier),
            tier.latency_ns.to_string(),
            words::nodes(tier).trim_start_matches("; ").to_owned(),
        ]
    });
    table(
        &["tier", "resident at the end", "limit", "accesses", "share of accesses", "idle latency", "nodes"],
        rows,
    )
}

fn hot_set(result: &LiveResult) -> String {
    let shares = result.summary.hot_set.shares.iter().filter(|share| share.bytes.0 > 0);
    let rows: Vec<_> = shares
        .take(MAX_ROWS)
        .map(|share| {
            [percent(share.accesses), share.bytes.to_string(), words::of_footprint(result, share.bytes)]
        })
        .collect();
    if rows.is_empty() {
        return "<p>No access was sampled.</p>".into();
    }
    table(
        &["this share of the sampled accesses", "went to so much memory", "of the memory in use"],
        rows.iter(),
    )
}

fn traffic(result: &LiveResult) -> String {
    let traffic = &result.summary.traffic;
    let moved = [
        ("promoted", traffic.promotions, "To a faster tier."),
        ("demoted", traffic.demotions, "To a slower tier, by name."),
        ("reclaimed", traffic.reclaimed, "Off a tier by the kernel's own LRU."),
    ];
    let refused = words::refusals(&traffic.refused)
        .map(|(why, moves, meaning)| [format!("refused: {why}"), count(moves), meaning.to_owned()]);
    let moved = moved.map(|(what, pages, meaning)| [what.to_owned(), count(pages), meaning.to_owned()]);
    format!(
        "{}<p class=\"legend\">Pages of {}; {} copied.{}</p>",
        table(&["what", "pages", "meaning"], moved.iter().chain(&refused)),
        words::page_size(result),
        traffic.bytes_moved,
        if result.summary.shadow { " Shadow: all of it only would have been." } else { "" }
    )
}

fn sources(result: &LiveResult) -> String {
    let sources = &result.summary.sources;
    if sources.is_empty() {
        return "<p>None.</p>".into();
    }
    let rows = sources.iter().take(MAX_ROWS).map(|source| {
        [
            source.name.to_owned(),
            count(source.delivered),
            count(source.lost),
            count(source.throttled),
            count(source.foreign),
            source.agent_cpu_ns.to_string(),
            source.program_ns.to_string(),
            source.memory_bytes.to_string(),
        ]
    });
    let header = [
        "source",
        "samples",
        "lost",
        "times throttled",
        "elsewhere or unreadable",
        "agents' CPU",
        "program's time lost",
        "memory",
    ];
    table(&header, rows)
}

fn cost(result: &LiveResult) -> String {
    let engine = &result.summary.engine;
    let steps = counted(result.steps, "step", "steps");
    let rows = [
        ["engine's CPU, agents included".to_owned(), words::engine_cpu(result).to_string()],
        ["as a share of one processor".to_owned(), percent(engine.cpu_share)],
        ["policy's memory, at its largest".to_owned(), engine.metadata_bytes.to_string()],
        ["memory for page numbers, residency and heat".to_owned(), engine.host_bytes.to_string()],
        ["program's time lost to sampling, all threads".to_owned(), words::program_time(result).to_string()],
        [
            "what reached the policy".to_owned(),
            format!(
                "{}, {}, {steps}",
                counted(result.samples, "sample", "samples"),
                counted(result.hint_faults, "hint fault", "hint faults")
            ),
        ],
        [
            "what did not".to_owned(),
            format!(
                "{} lost, {} outside of tiered memory",
                count(result.samples_lost),
                count(result.summary.samples_foreign)
            ),
        ],
    ];
    table(&["what", "value"], rows.iter())
}

fn warnings(result: &LiveResult) -> String {
    let warnings = &result.summary.warnings;
    if warnings.is_empty() {
        return "<p>None.</p>".into();
    }
    let shown: Vec<_> =
        warnings.iter().take(MAX_ROWS).map(|warning| shortened(warning, MAX_WARNING)).collect();
    format!("<ul class=\"notes\">{}</ul>{}", items(&shown), rest(warnings.len()))
}

/// The ranges as the result orders them: the most accessed page first.
fn ranges(result: &LiveResult) -> String {
    let ranges = &result.summary.hot_set.fast_ranges;
    if ranges.is_empty() {
        return "<p>None: nothing was on the fast tier at the end.</p>".into();
    }
    let page = result.summary.page_size.bytes().0;
    let rows = ranges.iter().take(MAX_ROWS).map(|range| {
        let pages = range.bytes.0 as f64 / page as f64;
        [
            range.process.to_string(),
            format!("{:#x}", range.start),
            range.bytes.to_string(),
            count(range.accesses),
            per_page(range.accesses as f64 / pages),
        ]
    });
    let header = ["process", "address", "size", "accesses sampled", "accesses a page"];
    table(&header, rows) + &rest(ranges.len())
}

fn per_page(accesses: f64) -> String {
    if accesses < 100.0 { factor(accesses) } else { count(accesses as u64) }
}

/// Says how many rows are not shown.
fn rest(all: usize) -> String {
    if all > MAX_ROWS {
        format!(
            "<p class=\"legend\">The first {MAX_ROWS} of {all}; the JSON output holds all that were kept.</p>"
        )
    } else {
        String::new()
    }
}

fn parameters(result: &LiveResult) -> String {
    if result.parameters.iter().next().is_none() {
        return "<p>The policy has none.</p>".into();
    }
    parameter_table(&result.parameters)
}
