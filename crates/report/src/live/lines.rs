//! The lines of the summary on a terminal.

use isotherm_core::Nanos;
use isotherm_core::live_result::{LiveResult, SourceUse, TierUse};

use super::words::{
    self, FITS, counters, engine_cpu, engine_memory, fits, known, left_out, nodes, program_time, refusals,
    run, swapped, tier_share,
};
use crate::format::{between, count, percent, printable, reasons, shortened};

/// Tiers, sources and warnings shown; the JSON output holds all.
const SHOWN: usize = 4;
/// Characters of a warning.
const MAX_WARNING: usize = 400;
/// Share of accesses whose memory is called hot.
const HOT: f64 = 0.9;

/// Returns names and values for the terminal, a line each.
pub(super) fn lines(result: &LiveResult) -> Vec<(String, String)> {
    let summary = &result.summary;
    let tiers = summary.tiers.iter().take(SHOWN).enumerate();
    let mut lines = vec![("run".to_owned(), run(result))];
    lines.extend(tiers.map(|(index, tier)| (format!("tier {index}"), tier_line(result, tier))));
    lines.extend(swapped(result).map(|swapped| ("swapped".to_owned(), swapped)));
    let mut add = |name: &str, value| lines.push((name.to_owned(), value));
    add("hit ratio", hits(result));
    add("slowdown", slowdown(result));
    add(if summary.shadow { "would move" } else { "moves" }, moves(result));
    add("refused", refused(result));
    add("hot set", hot_set(result));
    for (index, source) in summary.sources.iter().take(SHOWN).enumerate() {
        add(if index == 0 { "samples" } else { "" }, samples(source, index > 0));
    }
    if summary.sources.is_empty() {
        add("samples", "none: no access source".into());
    }
    if let Some(left_out) = left_out(result) {
        add("left out", left_out);
    }
    let (share, memory) = (percent(summary.engine.cpu_share), engine_memory(result));
    let engine =
        format!("{share} of one processor ({}), agents included; {memory} of memory", engine_cpu(result));
    add("engine", engine);
    if let Some(origin) = counters(result) {
        add("counters", origin.into());
    }
    let lost = match program_time(result) {
        Nanos(0) => "lost no known time to sampling".into(),
        time => format!("lost {time} to sampling, summed over its threads"),
    };
    add("program", lost);
    summary.cautions.iter().take(SHOWN).for_each(|caution| add("few samples", caution.clone()));
    if fits(result) {
        add("note", FITS.into());
    }
    lines
}

fn tier_line(result: &LiveResult, tier: &TierUse) -> String {
    let nodes = nodes(tier);
    format!(
        "{} resident, limit {}; {} of accesses; {}{}{nodes}",
        tier.resident_bytes,
        tier.capacity_bytes,
        tier_share(result, tier),
        tier.latency_ns,
        if nodes.is_empty() { "" } else { "; " }
    )
}

fn hits(result: &LiveResult) -> String {
    let summary = &result.summary;
    if summary.hit_ratio.is_none() {
        return unknown(result);
    }
    let how = if summary.hits_measured { ", counted" } else { "" };
    let all = known(summary.hit_ratio, summary.intervals.hit_ratio);
    let last = known(summary.final_hit_ratio, summary.intervals.final_hit_ratio);
    format!("{all} from the fast tier{how}; {last} in the second half")
}

fn slowdown(result: &LiveResult) -> String {
    if result.summary.slowdown_at_most.is_none() {
        return unknown(result);
    }
    format!("at most {} x all-fast time (as if it only waited)", words::slowdown(result))
}

fn unknown(result: &LiveResult) -> String {
    let samples = result.summary.missing.as_ref().map_or(0, |missing| missing.samples);
    let why = if samples == 0 { "no access was counted" } else { "too little was seen" };
    format!("not known: {why}")
}

/// Returns `7.21k promoted, 5.10k demoted, 300 reclaimed (49.2M)`.
fn moves(result: &LiveResult) -> String {
    let traffic = &result.summary.traffic;
    let reclaimed = match traffic.reclaimed {
        0 => String::new(),
        pages => format!(", {} reclaimed", count(pages)),
    };
    let huge = |pages: u64, what: &str| match pages {
        0 => String::new(),
        pages => format!(", {} huge pages {what}", count(pages)),
    };
    let (up, down) = (count(traffic.promotions), count(traffic.demotions));
    let huge = huge(traffic.splits, "split") + &huge(traffic.collapses, "made");
    format!("{up} promoted, {down} demoted{reclaimed} ({}){huge}", traffic.bytes_moved)
}

/// Returns `31: no room 20, busy 11`.
fn refused(result: &LiveResult) -> String {
    let why = refusals(&result.summary.traffic.refused).map(|(why, moves, _)| (why, moves));
    match why.iter().map(|(_, moves)| moves).sum() {
        0 => "none".into(),
        all => format!("{}: {}", count(all), reasons(&why)),
    }
}

/// Describes the pages that stand out, or without any the memory that takes most accesses.
fn hot_set(result: &LiveResult) -> String {
    let (set, whole) = (&result.summary.hot_set, result.summary.footprint_bytes);
    if set.hot.bytes.0 > 0 {
        let hot = &set.hot;
        let accesses = between(hot.accesses, Some([hot.low_accesses, hot.high_accesses]));
        let (low, high) = (hot.low_bytes, hot.high_bytes);
        return format!("{} ({low}-{high}) of {whole} takes {accesses} of accesses", hot.bytes);
    }
    let hot = set.shares.iter().find(|share| (share.accesses - HOT).abs() < 1e-9);
    hot.filter(|hot| hot.bytes.0 > 0).map_or("not known: too little was sampled".into(), |hot| {
        let (low, high) = (hot.low_bytes, hot.high_bytes);
        format!("{:.0} % of accesses went to {} ({low}-{high}) of {whole}", HOT * 100.0, hot.bytes)
    })
}

fn samples(source: &SourceUse, beside: bool) -> String {
    if beside && (source.delivered, source.lost) == (0, 0) {
        return format!("{}: no samples, only which memory was not used", source.name);
    }
    let throttled = match source.throttled {
        0 => String::new(),
        times => format!(", throttled {} x", count(times)),
    };
    format!("{}: {} taken, {} lost{throttled}", source.name, count(source.delivered), count(source.lost))
}

/// Returns warnings for the terminal, each on one line, and how many more there are.
pub(super) fn warnings(result: &LiveResult) -> Vec<String> {
    let warnings = &result.summary.warnings;
    let line = |warning: &String| shortened(&printable(warning), MAX_WARNING);
    let mut lines: Vec<_> = warnings.iter().take(SHOWN).map(line).collect();
    if warnings.len() > SHOWN {
        lines.push(format!("and {} more: --json and --report show all", warnings.len() - SHOWN));
    }
    lines
}
