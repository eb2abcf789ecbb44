//! A live run in words and figures, the same on the terminal and in the page.

use isotherm_core::live_result::{CounterOrigin, LiveResult, Missing, Refused, SourceUse, TierUse};
use isotherm_core::{Bytes, Nanos, PageSize};

use crate::facts::{loss, scaled_by};
use crate::format::{
    between, counted, factor, file_name, length, list, percent, printable, share, shortened,
};

/// Characters of a program's name in a sentence.
const MAX_NAME: usize = 40;

/// Returns the program's name without its folders and arguments.
fn program(result: &LiveResult) -> String {
    let name = result.program.first().map_or("", |path| file_name(path));
    let name = if name.is_empty() { "the program" } else { name };
    shortened(&printable(name), MAX_NAME)
}

/// Returns `node 0`, or nothing where the tier is a shadow.
pub(super) fn nodes(tier: &TierUse) -> String {
    match &tier.nodes[..] {
        [] => String::new(),
        [node] => format!("node {node}"),
        nodes => format!("nodes {}", list(&nodes.iter().map(u32::to_string).collect::<Vec<_>>())),
    }
}

/// Says in one sentence what happened, or would have happened.
pub(super) fn answer(result: &LiveResult) -> String {
    let summary = &result.summary;
    let (program, ran, whole) = (program(result), summary.duration_ns, summary.footprint_bytes);
    if whole.0 == 0 {
        let nothing = if summary.shadow { "would have moved (shadow)" } else { "moved" };
        return format!(
            "Nothing {nothing}: no memory of {program} was seen in the {ran} that it was followed."
        );
    }
    let start = deeds(result);
    let Some(hits) = summary.hit_ratio.map(|ratio| between(ratio, summary.intervals.hit_ratio)) else {
        let why = match summary.missing.as_ref().map_or(0, |missing| missing.samples) {
            0 => "no access was counted",
            _ => "too little was seen",
        };
        return format!("{start} of {program}'s {whole} in {ran}; {why}, so the hit ratio is not known.");
    };
    let fast = fast_limit(result).min(whole);
    let part = if fits(result) { "all".into() } else { share(fast.0, whole.0) };
    let memory = format!("{fast} of fast memory, {part} of the {whole} in use");
    if summary.shadow {
        return format!("{start} and served {hits} of {program}'s accesses from {memory}.");
    }
    format!("{start}, and {memory}, served {hits} of {program}'s accesses.")
}

/// Says what a run lacks for a statement and the cheapest ways to it; `None` if it saw nothing at all.
pub(crate) fn missing(missing: &Missing) -> Option<String> {
    let Missing { samples, per_page, hit_ratio, run_ns, overhead, huge_pages, source } = missing;
    let ([low, high], run) = (hit_ratio.as_ref()?, (*run_ns)?);
    let mut ways = vec![format!("a run of {}", length(run))];
    ways.extend(overhead.map(|share| format!("--overhead {:.0}%", (share * 100.0).ceil())));
    ways.extend(huge_pages.then(|| "--page-size huge".into()));
    ways.extend(source.map(|_| "a machine with a PMU".into()));
    let last = ways.pop()?;
    let ways = if ways.is_empty() { last } else { format!("{}, or {last}", ways.join(", ")) };
    Some(format!(
        "hits lie anywhere from {:.0} to {:.0} %, by {} ({per_page:.2} a page); enough would be {ways}",
        (low * 100.0).floor(),
        (high * 100.0).ceil(),
        counted(*samples, "sample", "samples"),
    ))
}

/// Returns the policy's account of its costs and savings in two sentences; `None` if it keeps none, or saw no
/// memory.
pub(super) fn books(result: &LiveResult) -> Option<String> {
    if result.summary.footprint_bytes.0 == 0 {
        return None;
    }
    let kept = result.summary.timeline.iter().rev().find(|moment| !moment.gauges.is_empty())?;
    let gauge = |name| kept.gauges.iter().find(|gauge| gauge.0 == name).map(|gauge| gauge.1);
    let [spent, saved, error] = ["spent-percent", "saved-percent", "saved-error-percent"].map(gauge);
    let (spent, saved, error) = (spent?, saved?, error?);
    let shadow = result.summary.shadow;
    let work = if shadow { "Sampling and deciding" } else { "Sampling, deciding and moving" };
    let saving = if moved(result) == 0 {
        "Without moves nothing is saved.".into()
    } else if error == 0.0 {
        "No sample has shown yet what the moves are worth.".into()
    } else {
        let verb = match (saved < 0.0, shadow) {
            (false, false) => "saved",
            (false, true) => "would have saved",
            (true, false) => "lost",
            (true, true) => "would have lost",
        };
        // Two standard errors of sampling. How far waits hide each other is taken from means of tiers.
        format!(
            "Samples of moved pages show that the moves {verb} {:.2} % of it, +-{:.2} points by chance (19 in 20), \
             and more where its waits overlap.",
            saved.abs(),
            2.0 * error
        )
    };
    Some(format!("{work} took {spent:.2} % of the program's time. {saving}"))
}

/// Returns the pages that were moved, or would have been.
fn moved(result: &LiveResult) -> u64 {
    let traffic = &result.summary.traffic;
    traffic.promotions + traffic.demotions + traffic.reclaimed
}

/// Begins the sentence: the pages that the policy moved, or would have moved.
fn deeds(result: &LiveResult) -> String {
    let pages = match moved(result) {
        0 => "no page".into(),
        pages => counted(pages, "page", "pages"),
    };
    if result.summary.shadow {
        format!("Nothing moved (shadow): {} would have moved {pages}", result.policy)
    } else {
        format!("{} moved {pages}", result.policy)
    }
}

/// Returns the fast memory that the program could use at the end.
fn fast_limit(result: &LiveResult) -> Bytes {
    result.summary.tiers.first().map_or(Bytes(0), |tier| tier.capacity_bytes)
}

/// Returns whether all memory in use may be fast, so that there is nothing to choose.
pub(super) fn fits(result: &LiveResult) -> bool {
    let footprint = result.summary.footprint_bytes;
    footprint.0 > 0 && fast_limit(result) >= footprint
}

/// Note on memory that [`fits`].
pub(super) const FITS: &str =
    "all memory in use fits the fast tier: give it less (--fast) to see tiering at work";

/// Returns `30.2s, 3 processes, exit status 0, pages of 4 KiB`.
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

/// Formats a share that may be unknown, with its bounds.
pub(super) fn known(ratio: Option<f64>, bounds: Option<[f64; 2]>) -> String {
    between(ratio.unwrap_or(f64::NAN), bounds)
}

/// Returns the tier's share of all accesses; `-` where too little is known.
pub(super) fn tier_share(result: &LiveResult, tier: &TierUse) -> String {
    if result.summary.missing.is_some() {
        return percent(f64::NAN);
    }
    let all: u64 = result.summary.tiers.iter().map(|tier| tier.hits).sum();
    percent(tier.hits as f64 / all as f64)
}

/// Returns the bound of the slowdown with its own bounds: `1.21 (1.18-1.25)`; `-` where too little is known.
pub(super) fn slowdown(result: &LiveResult) -> String {
    let summary = &result.summary;
    let value = factor(summary.slowdown_at_most.unwrap_or(f64::NAN));
    match summary.intervals.slowdown_at_most {
        Some([low, high]) => format!("{value} ({low:.2}-{high:.2})"),
        None => value,
    }
}

/// Returns memory as a share of the footprint.
pub(super) fn of_footprint(result: &LiveResult, part: Bytes) -> String {
    percent(part.0 as f64 / result.summary.footprint_bytes.0 as f64)
}

/// Returns each reason of a refusal with its moves and its meaning.
pub(super) fn refusals(refused: &Refused) -> [(&'static str, u64, &'static str); 5] {
    [
        ("no room", refused.no_room, "The target tier was full, or at its limit (ENOMEM)."),
        ("busy", refused.busy, "The page was pinned or under I/O, at every try (EBUSY)."),
        ("gone", refused.gone, "The page was no longer mapped (ENOENT, EFAULT)."),
        ("swapped", refused.swapped, "The page was in swap, or in zswap (ENOENT)."),
        ("denied", refused.denied, "The kernel did not allow it (EPERM, EACCES)."),
    ]
}

/// Returns the processor time of the engine and its agents.
pub(super) fn engine_cpu(result: &LiveResult) -> Nanos {
    let sources = result.summary.sources.iter();
    result.summary.engine.cpu_ns + sources.map(|source| source.agent_cpu_ns).sum::<Nanos>()
}

/// Returns the memory of policy, host and sources.
pub(super) fn engine_memory(result: &LiveResult) -> Bytes {
    let engine = &result.summary.engine;
    let sources: u64 = result.summary.sources.iter().map(|source| source.memory_bytes.0).sum();
    Bytes(engine.metadata_bytes.0 + engine.host_bytes.0 + sources)
}

/// Returns the time that the program's threads are known to have lost to the sources.
pub(super) fn program_time(result: &LiveResult) -> Nanos {
    result.summary.sources.iter().map(|source| source.program_ns).sum()
}

/// Returns the memory in swap at the end, and how much of it was compressed memory; `None` without any.
pub(super) fn swapped(result: &LiveResult) -> Option<String> {
    let summary = &result.summary;
    let zswapped =
        summary.zswapped_bytes.map_or_else(String::new, |bytes| format!(", {bytes} of it in zswap"));
    (summary.swapped_bytes.0 > 0).then(|| format!("{} at the end{zswapped}", summary.swapped_bytes))
}

/// Returns the memory that hint faults cannot observe; `None` if they are no source, or observe all.
pub(super) fn left_out(result: &LiveResult) -> Option<String> {
    let share = result.summary.sources.iter().find_map(|source| source.left_out_share)?;
    (share > 0.0).then(|| format!("{} of memory (files, shared memory, stacks, libraries)", percent(share)))
}

/// Explains stall and occupancy counters that are not the hardware's own.
pub(super) fn counters(result: &LiveResult) -> Option<&'static str> {
    match result.summary.counters {
        CounterOrigin::None | CounterOrigin::Counted => None,
        CounterOrigin::LittlesLaw => {
            Some("occupancy of the tiers is estimated: bandwidth x latency of samples (Little's law)")
        }
        CounterOrigin::Modelled => Some(
            "MODELLED, not measured: occupancy of the tiers is that of the samples at the machine profile's \
             idle latencies",
        ),
    }
}

/// Returns the notes needed to read the page's numbers right.
pub(super) fn notes(result: &LiveResult) -> Vec<String> {
    let summary = &result.summary;
    let lost = |source: &SourceUse| {
        loss(source.delivered, source.lost).map(|lost| format!("{} ({lost})", source.name))
    };
    let lost: Vec<_> = summary.sources.iter().filter_map(lost).collect();
    let notes = [
        summary.shadow.then(|| SHADOW.into()),
        counters(result).map(|text| format!("Counters: {text}.")),
        summary.hit_ratio.map(|_| ESTIMATES.into()),
        (!lost.is_empty()).then(|| {
            let lost = list(&lost);
            format!("Samples lost because a buffer was full: {lost}. The policy decided without them.")
        }),
        fits(result).then(|| format!("Note: {FITS}.")),
        (result.resized > 0).then(|| {
            let times = counted(u64::from(result.resized), "time", "times");
            format!(
                "The memory in use outgrew the policy's size: it was rebuilt {times}, and each time learned \
                 again from the last samples only."
            )
        }),
        scaled_by(result.scale, result.time_scale),
    ];
    notes.into_iter().flatten().collect()
}

const SHADOW: &str = "Shadow tiers: residency and moves are what they would have been; the memory stayed \
                      where the kernel put it.";
const ESTIMATES: &str = "Bounds in brackets are those that 19 of 20 runs of the same program keep to. Accesses are those that the sources saw, sampled or counted. The slowdown is an \
                         upper bound: as if the program did nothing but wait for the accesses of the run's \
                         second half, one after the other, at the tiers' idle latencies. A program that \
                         computes, or whose accesses overlap, loses less.";
