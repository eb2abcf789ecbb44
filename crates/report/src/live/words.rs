//! Defines what a live run says in words and figures, the same on the terminal and in the page.

use isotherm_core::live_result::{CounterOrigin, LiveResult, Refused, SourceUse, TierUse};
use isotherm_core::{Bytes, Nanos, PageSize};

use crate::facts::scaled_by;
use crate::format::{count, counted, file_name, list, percent, printable, share, shortened};

/// Characters of a program's name in a sentence.
const MAX_NAME: usize = 40;

/// The program's name without its folders and arguments.
pub(super) fn program(result: &LiveResult) -> String {
    let name = result.program.first().map_or("", |path| file_name(path));
    let name = if name.is_empty() { "the program" } else { name };
    shortened(&printable(name), MAX_NAME)
}

/// `; node 0`, or nothing where the tier is a shadow.
pub(super) fn nodes(tier: &TierUse) -> String {
    match &tier.nodes[..] {
        [] => String::new(),
        [node] => format!("; node {node}"),
        nodes => format!("; nodes {}", list(&nodes.iter().map(u32::to_string).collect::<Vec<_>>())),
    }
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
    let (whole, hits) = (summary.footprint_bytes, percent(hits));
    let fast = fast_limit(result).min(whole);
    let part = if fits(result) { "all".into() } else { share(fast.0, whole.0) };
    if summary.shadow {
        return format!(
            "{start} and served {hits} of {program}'s accesses from {fast} of fast memory, {part} of the {whole} in use."
        );
    }
    format!(
        "{start}, and {fast} of fast memory, {part} of the {whole} in use, served {hits} of {program}'s accesses."
    )
}

/// The sentence's beginning: which pages the policy moved, or would have moved.
fn deeds(result: &LiveResult) -> String {
    let traffic = &result.summary.traffic;
    let pages = match traffic.promotions + traffic.demotions + traffic.reclaimed {
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

/// Whether there is nothing to choose: all memory may be fast.
pub(super) fn fits(result: &LiveResult) -> bool {
    fast_limit(result) >= result.summary.footprint_bytes
}

/// What to say then.
pub(super) const FITS: &str =
    "all memory in use fits the fast tier: give it less (--fast) to see tiering at work";

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

/// A ratio that may not be known.
pub(super) fn known(ratio: Option<f64>) -> String {
    percent(ratio.unwrap_or(f64::NAN))
}

/// The tier's share of all accesses counted.
pub(super) fn tier_share(result: &LiveResult, tier: &TierUse) -> String {
    let all: u64 = result.summary.tiers.iter().map(|tier| tier.hits).sum();
    percent(tier.hits as f64 / all as f64)
}

pub(super) fn of_footprint(result: &LiveResult, part: Bytes) -> String {
    percent(part.0 as f64 / result.summary.footprint_bytes.0 as f64)
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

/// The time that the program's threads lost to the sources, as far as they know.
pub(super) fn program_time(result: &LiveResult) -> Nanos {
    result.summary.sources.iter().map(|source| source.program_ns).sum()
}

/// How stall and occupancy counters are to be read, where they are not the hardware's own.
pub(super) fn counters(result: &LiveResult) -> Option<&'static str> {
    match result.summary.counters {
        CounterOrigin::None | CounterOrigin::Counted => None,
        CounterOrigin::LittlesLaw => {
            Some("occupancy of the tiers is estimated: bandwidth x latency of samples (Little's law)")
        }
        CounterOrigin::Modelled => Some(
            "MODELLED, not measured: occupancy of the tiers is that of the samples at the machine profile's idle latencies",
        ),
    }
}

fn counters_note(result: &LiveResult) -> Option<String> {
    counters(result).map(|text| format!("Counters: {text}."))
}

/// What a reader of the page must know to read the numbers right.
pub(super) fn notes(result: &LiveResult) -> Vec<String> {
    let notes = [shadow, counters_note, estimates, lost_samples, fitting, resized, scaled];
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
