//! Defines the lines of the summary on a terminal.

use isotherm_core::Nanos;
use isotherm_core::live_result::{LiveResult, Refused, SourceUse, TierUse, Traffic};

use super::words::{
    FITS, counters, engine_cpu, engine_memory, fits, known, nodes, of_footprint, program_time, refusals, run,
    tier_share,
};
use crate::format::{count, factor, percent, printable, reasons, shortened};

/// Tiers, sources and warnings that are shown; the JSON output holds all.
const SHOWN: usize = 4;
/// Characters of a warning.
const MAX_WARNING: usize = 400;
/// The share of accesses whose memory is called hot.
const HOT: f64 = 0.9;

/// Names and values for the terminal, a line each.
pub(super) fn lines(result: &LiveResult) -> Vec<(String, String)> {
    let summary = &result.summary;
    let tiers = summary.tiers.iter().take(SHOWN).enumerate();
    let mut lines = vec![("run".to_owned(), run(result))];
    lines.extend(tiers.map(|(index, tier)| (format!("tier {index}"), tier_line(result, tier))));
    let mut add = |name: &str, value| lines.push((name.to_owned(), value));
    add("hit ratio", hits(result));
    add("slowdown", slowdown(result));
    add(if summary.shadow { "would move" } else { "moves" }, moves(&summary.traffic));
    add("refused", refused(&summary.traffic.refused));
    add("hot set", hot_set(result));
    for (index, source) in samples(&summary.sources).into_iter().enumerate() {
        add(if index == 0 { "samples" } else { "" }, source);
    }
    add("engine", engine(result));
    if let Some(origin) = counters(result) {
        add("counters", origin.into());
    }
    add("program", lost_time(result));
    result.summary.cautions.iter().take(SHOWN).for_each(|caution| add("few samples", caution.clone()));
    if summary.footprint_bytes.0 > 0 && fits(result) {
        add("note", FITS.into());
    }
    lines
}

fn tier_line(result: &LiveResult, tier: &TierUse) -> String {
    format!(
        "{} resident, limit {}; {} of accesses; {}{}",
        tier.resident_bytes,
        tier.capacity_bytes,
        tier_share(result, tier),
        tier.latency_ns,
        nodes(tier)
    )
}

fn hits(result: &LiveResult) -> String {
    match result.summary.hit_ratio {
        None => "not known: no access was counted".into(),
        Some(ratio) => {
            let steady = known(result.summary.final_hit_ratio);
            let how = if result.summary.hits_measured { "counted" } else { "from samples" };
            format!("{} from the fast tier, {how}; {steady} in the second half", percent(ratio))
        }
    }
}

fn slowdown(result: &LiveResult) -> String {
    result.summary.slowdown_at_most.map_or_else(
        || "not known: no access was counted".into(),
        |slowdown| format!("at most {} x all-fast time (as if it only waited for memory)", factor(slowdown)),
    )
}

/// `7.21k promoted, 5.10k demoted, 300 reclaimed (49.2M)`.
fn moves(traffic: &Traffic) -> String {
    let reclaimed = if traffic.reclaimed > 0 {
        format!(", {} reclaimed", count(traffic.reclaimed))
    } else {
        String::new()
    };
    let (up, down) = (count(traffic.promotions), count(traffic.demotions));
    format!("{up} promoted, {down} demoted{reclaimed} ({})", traffic.bytes_moved)
}

/// `31: no room 20, busy 11`.
fn refused(refused: &Refused) -> String {
    let why = refusals(refused).map(|(why, moves, _)| (why, moves));
    match why.iter().map(|(_, moves)| moves).sum() {
        0 => "none".into(),
        all => format!("{}: {}", count(all), reasons(&why)),
    }
}

/// The pages that stand out, or, where none do, how much memory takes most accesses.
fn hot_set(result: &LiveResult) -> String {
    let summary = &result.summary;
    let stands_out = &summary.hot_set.hot;
    if stands_out.bytes.0 > 0 {
        let footprint_bytes = summary.footprint_bytes;
        let part = of_footprint(result, stands_out.bytes);
        return format!(
            "{} of {footprint_bytes} ({part}) takes {} of accesses",
            stands_out.bytes,
            percent(stands_out.accesses)
        );
    }
    let hot = summary.hot_set.shares.iter().find(|share| (share.accesses - HOT).abs() < 1e-9);
    match hot.filter(|hot| hot.bytes.0 > 0) {
        None => "not known: no access was sampled".into(),
        Some(hot) => format!(
            "{:.0} % of accesses went to {} of {} ({})",
            HOT * 100.0,
            hot.bytes,
            summary.footprint_bytes,
            of_footprint(result, hot.bytes)
        ),
    }
}

/// A line a source.
fn samples(sources: &[SourceUse]) -> Vec<String> {
    let source = |source: &SourceUse| {
        let throttled = if source.throttled > 0 {
            format!(", throttled {} x", count(source.throttled))
        } else {
            String::new()
        };
        format!("{}: {} taken, {} lost{throttled}", source.name, count(source.delivered), count(source.lost))
    };
    match sources {
        [] => vec!["none: no access source".into()],
        _ => sources.iter().take(SHOWN).map(source).collect(),
    }
}

fn engine(result: &LiveResult) -> String {
    format!(
        "{} of one processor ({}), agents included; {} of memory",
        percent(result.summary.engine.cpu_share),
        engine_cpu(result),
        engine_memory(result)
    )
}

fn lost_time(result: &LiveResult) -> String {
    match program_time(result) {
        Nanos(0) => "lost no time to sampling that is known of".into(),
        time => format!("lost {time} to sampling, summed over its threads"),
    }
}

/// Troubles for the terminal: each one line, and how many more there are.
pub(super) fn warnings(result: &LiveResult) -> Vec<String> {
    let warnings = &result.summary.warnings;
    let line = |warning: &String| shortened(&printable(warning), MAX_WARNING);
    let mut lines: Vec<_> = warnings.iter().take(SHOWN).map(line).collect();
    if warnings.len() > SHOWN {
        lines.push(format!("and {} more: --json and --report show all", warnings.len() - SHOWN));
    }
    lines
}
