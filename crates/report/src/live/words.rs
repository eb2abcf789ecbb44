//! Defines what a live run says in words, the same on the terminal and in the page.

use isotherm_core::{Bytes, Nanos, PageSize};
use isotherm_linux::engine::LiveResult;
use isotherm_linux::host::{Refused, SourceUse, TierUse, Traffic};

use crate::facts::scaled_by;
use crate::format::{count, counted, factor, file_name, list, percent, printable, reasons, share, shortened};

/// Characters of a program's name in a sentence.
const MAX_NAME: usize = 40;
/// Tiers, sources and troubles that the terminal shows; the JSON output holds all.
const SHOWN: usize = 4;
/// Characters of a trouble on the terminal.
const MAX_TROUBLE: usize = 400;
/// The share of accesses whose memory is called hot.
const HOT: f64 = 0.9;

/// The program's name without its folders and arguments.
pub(super) fn program(result: &LiveResult) -> String {
    let name = result.program.first().map_or("", |path| file_name(path));
    let name = if name.is_empty() { "the program" } else { name };
    shortened(&printable(name), MAX_NAME)
}

/// Pages that moved or would have moved, however.
fn moved(traffic: &Traffic) -> u64 {
    traffic.promotions + traffic.demotions + traffic.reclaimed
}

/// What happened, or would have happened, in one sentence.
pub(super) fn answer(result: &LiveResult) -> String {
    let (program, ran) = (program(result), result.summary.duration_ns);
    let summary = &result.summary;
    if summary.footprint_bytes.0 == 0 {
        let nothing = if summary.shadow { "would have moved (shadow)" } else { "moved" };
        return format!(
            "Nothing {nothing}: no memory of {program} was seen in the {ran} that it was followed."
        );
    }
    let start = deeds(result);
    let Some(hits) = summary.hit_ratio else {
        return format!(
            "{start} of {program}'s {} in {ran}; no access was counted, so the hit ratio is not known.",
            summary.footprint_bytes
        );
    };
    let fast = fast_limit(result).0.min(summary.footprint_bytes.0);
    let part = if fits(result) {
        format!("all of the {} in use", summary.footprint_bytes)
    } else {
        format!("{} of the {} in use", share(fast, summary.footprint_bytes.0), summary.footprint_bytes)
    };
    let (verb, fast) = (if summary.shadow { "and served" } else { "and the fast tier served" }, Bytes(fast));
    let place =
        if summary.shadow { format!("from {fast} of fast memory") } else { format!("from its {fast}") };
    format!("{start} {verb} {} of {program}'s accesses {place}, {part}.", percent(hits))
}

/// The sentence's beginning: which pages the policy moved, or would have moved.
fn deeds(result: &LiveResult) -> String {
    let pages = match moved(&result.summary.traffic) {
        0 => "no page".into(),
        pages => counted(pages, "page", "pages"),
    };
    if result.summary.shadow {
        format!("Nothing moved (shadow): {} would have moved {pages}", result.policy)
    } else {
        format!("{} moved {pages}", result.policy)
    }
}

/// The fast memory that the program could use at the end.
fn fast_limit(result: &LiveResult) -> Bytes {
    result.summary.tiers.first().map_or(Bytes(0), |tier| tier.capacity_bytes)
}

fn fits(result: &LiveResult) -> bool {
    fast_limit(result) >= result.summary.footprint_bytes
}

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
    add("program", lost_time(result));
    if summary.footprint_bytes.0 > 0 && fits(result) {
        add("note", FITS.into());
    }
    lines
}

const FITS: &str = "all memory in use fits the fast tier: give it less (--fast) to see tiering at work";

/// `30.2s, 3 processes, exit status 0, pages of 4 KiB`.
pub(super) fn run(result: &LiveResult) -> String {
    let summary = &result.summary;
    let exit = result.exit_status.map_or("attached to".into(), |status| format!("exit status {status}"));
    let processes = counted(summary.processes, "process", "processes");
    format!("{}, {processes}, {exit}, pages of {}", summary.duration_ns, page_size(result))
}

pub(super) fn page_size(result: &LiveResult) -> &'static str {
    match result.summary.page_size {
        PageSize::Base => "4 KiB",
        PageSize::Huge => "2 MiB",
    }
}

/// The tier's share of all accesses counted.
pub(super) fn tier_share(result: &LiveResult, tier: &TierUse) -> String {
    let all: u64 = result.summary.tiers.iter().map(|tier| tier.hits).sum();
    percent(tier.hits as f64 / all as f64)
}

fn tier_line(result: &LiveResult, tier: &TierUse) -> String {
    format!(
        "{} resident, limit {}; {} of accesses; {}",
        tier.resident_bytes,
        tier.capacity_bytes,
        tier_share(result, tier),
        tier.latency_ns
    )
}

/// A ratio that may not be known.
pub(super) fn known(ratio: Option<f64>) -> String {
    percent(ratio.unwrap_or(f64::NAN))
}

fn hits(result: &LiveResult) -> String {
    match result.summary.hit_ratio {
        None => "not known: no access was counted".into(),
        Some(ratio) => {
            let steady = known(result.summary.steady_hit_ratio);
            format!("{} from the fast tier; {steady} in the run's second half", percent(ratio))
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

/// Each reason of a refusal with its moves and what it means.
pub(super) fn refusals(refused: &Refused) -> [(&'static str, u64, &'static str); 4] {
    [
        ("no room", refused.no_room, "The target tier was full, or at its limit (ENOMEM)."),
        ("busy", refused.busy, "The page was pinned or under I/O, again and again (EBUSY)."),
        ("gone", refused.gone, "The page was no longer mapped (ENOENT, EFAULT)."),
        ("denied", refused.denied, "The kernel did not allow it (EPERM, EACCES)."),
    ]
}

fn hot_set(result: &LiveResult) -> String {
    let summary = &result.summary;
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

pub(super) fn of_footprint(result: &LiveResult, part: Bytes) -> String {
    percent(part.0 as f64 / result.summary.footprint_bytes.0 as f64)
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

/// The processor time of the engine and its agents.
pub(super) fn engine_cpu(result: &LiveResult) -> Nanos {
    let sources = result.summary.sources.iter();
    result.summary.engine.cpu_ns + sources.map(|source| source.agent_cpu_ns).sum::<Nanos>()
}

/// The memory of policy, host and sources.
pub(super) fn engine_memory(result: &LiveResult) -> Bytes {
    let engine = &result.summary.engine;
    let sources: u64 = result.summary.sources.iter().map(|source| source.memory_bytes.0).sum();
    Bytes(engine.metadata_bytes.0 + engine.host_bytes.0 + sources)
}

fn engine(result: &LiveResult) -> String {
    format!(
        "{} of one processor ({}), agents included; {} of memory",
        percent(result.summary.engine.cpu_share),
        engine_cpu(result),
        engine_memory(result)
    )
}

/// The time that the program's threads lost to the sources, as far as they know.
pub(super) fn program_time(result: &LiveResult) -> Nanos {
    result.summary.sources.iter().map(|source| source.program_ns).sum()
}

fn lost_time(result: &LiveResult) -> String {
    match program_time(result) {
        Nanos(0) => "lost no time to sampling that is known of".into(),
        time => format!("lost {time} to sampling, summed over its threads"),
    }
}

/// Troubles for the terminal: each one line, and how many more there are.
pub(super) fn troubles(result: &LiveResult) -> Vec<String> {
    let troubles = &result.summary.troubles;
    let line = |trouble: &String| shortened(&printable(trouble), MAX_TROUBLE);
    let mut lines: Vec<_> = troubles.iter().take(SHOWN).map(line).collect();
    if troubles.len() > SHOWN {
        lines.push(format!("and {} more: --json and --report show all", troubles.len() - SHOWN));
    }
    lines
}

/// What a reader of the page must know to read the numbers right.
pub(super) fn notes(result: &LiveResult) -> Vec<String> {
    let notes = [shadow, estimates, lost_samples, fitting, resized, scaled];
    notes.iter().filter_map(|note| note(result)).collect()
}

fn shadow(result: &LiveResult) -> Option<String> {
    result.summary.shadow.then(|| {
        "Shadow tiers: residency and moves are what they would have been; the memory stayed where the kernel put it."
            .into()
    })
}

fn estimates(result: &LiveResult) -> Option<String> {
    result.summary.hit_ratio.map(|_| {
        "Accesses are those that the sources saw, sampled or counted. The slowdown is an upper bound: as if the program did \
         nothing but wait for the accesses of the run's second half, one after the other, at the tiers' idle latencies; one \
         that computes, or whose accesses overlap, loses less."
            .into()
    })
}

fn lost_samples(result: &LiveResult) -> Option<String> {
    let describe = |source: &SourceUse| {
        let lost = source.lost as f64 / (source.lost as f64 + source.delivered as f64);
        format!("{} ({}, {})", source.name, count(source.lost), percent(lost))
    };
    let sources = result.summary.sources.iter().filter(|source| source.lost > 0);
    let names: Vec<_> = sources.map(describe).collect();
    (!names.is_empty()).then(|| {
        format!("Samples lost because a buffer was full: {}. The policy decided without them.", list(&names))
    })
}

fn fitting(result: &LiveResult) -> Option<String> {
    (result.summary.footprint_bytes.0 > 0 && fits(result)).then(|| format!("Note: {FITS}."))
}

fn resized(result: &LiveResult) -> Option<String> {
    (result.resized > 0).then(|| {
        format!(
            "The memory in use outgrew what the policy was sized for: it was built anew {}, and each time began to learn from \
             nothing.",
            counted(u64::from(result.resized), "time", "times")
        )
    })
}

fn scaled(result: &LiveResult) -> Option<String> {
    scaled_by(result.scale, result.time_scale)
}
