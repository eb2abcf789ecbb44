//! The answer of a result, the same on the terminal, in JSON and in the pages: what to use here, what it
//! gains over doing nothing, from when on, and how sure that is.

use isotherm_core::live_result::LiveResult;
use isotherm_core::{Bytes, Nanos, Pages, Signal, Signals};
use isotherm_lab::result::LabResult;
use isotherm_policies::registry::BASELINE;
use isotherm_policies::{Kind, Setup, find};
use isotherm_sim::{Outcome, Report, RunResult, SizeReport};
use serde::Serialize;

use crate::format::{between, factor, file_name, length, percent, share};
use crate::live::words;
use crate::size::plan::{Plan, Planned};

/// The least gain that counts: seeds and placements of the same program differ by less.
pub(crate) const LEAST_GAIN: f64 = 0.01;

/// Share of accesses by which fast memory must serve more than its share of the memory.
pub(crate) const LEAST_SKEW: f64 = 0.05;

/// The least accesses that tell the hit ratio of a run without intervals: its standard error is then below 2
/// points.
pub(crate) const LEAST_SAMPLES: u64 = 1000;

/// Signals that a machine gives only with a kernel that is not released, or with a profiling device.
const RARE: [Signal; 4] =
    [Signal::TransactionalMoves, Signal::ExposedLatency, Signal::DeviceHotPages, Signal::DeviceReports];

/// Advice for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// Tier it with [`Verdict::policy`].
    Tier,
    /// Leave its memory where the kernel puts it.
    DoNotTier,
    /// The result does not tell; the sentence says what is missing.
    Unknown,
}

/// The answer of a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The advice.
    pub advice: Advice,
    /// The policy, or the kernel's tiering, to use; `None` where nothing is.
    pub policy: Option<String>,
    /// Fast memory that the advice is for, where known.
    pub fast_bytes: Option<Bytes>,
    /// The program's speed over that without tiering, less 1; `None` where not known.
    pub gain: Option<f64>,
    /// Length of a run from which on it is ahead of doing nothing; `None` where not known.
    pub pays_back_ns: Option<Nanos>,
    /// Price and size on the machine that the user asked about (`size --price`, `--footprint`).
    pub plan: Option<Planned>,
    /// The advice and its reason, in a sentence.
    pub sentence: String,
    /// How sure that is, in a sentence.
    pub sure: String,
}

impl Verdict {
    fn new(advice: Advice, sentence: String, sure: impl Into<String>) -> Self {
        let (policy, fast_bytes, gain) = (None, None, None);
        Self { advice, policy, fast_bytes, gain, pays_back_ns: None, plan: None, sentence, sure: sure.into() }
    }

    /// Returns the whole answer as one paragraph.
    pub(crate) fn text(&self) -> String {
        if self.sure.is_empty() { self.sentence.clone() } else { format!("{} {}", self.sentence, self.sure) }
    }
}

/// Returns whether a machine of today can run it: no bound, and no policy that needs what hardly any machine
/// gives.
pub(crate) fn is_usable(name: &str) -> bool {
    let Ok(entry) = find(name) else { return false };
    let Kind::Policy(build) = entry.kind else { return false };
    let setup = Setup { pages: 0, fast: Pages(1), page_size: Default::default(), tiers: 2, seed: 1 };
    build(&entry.parameters(), &setup)
        .is_ok_and(|policy| policy.signals().missing(Signals::NONE).all(|signal| !RARE.contains(&signal)))
}

/// Returns the modelled time of a run of the length asked for.
fn time(run: &RunResult) -> Nanos {
    run.long_run.as_ref().map_or(run.modelled_ns, |long| long.modelled_ns)
}

/// Returns the runs at the middle size.
fn middle(report: &Report) -> impl Iterator<Item = &RunResult> {
    let mut sizes: Vec<_> = report.runs.iter().map(|run| run.fast_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let size = sizes.get(sizes.len() / 2).copied();
    report.runs.iter().filter(move |run| Some(run.fast_bytes) == size)
}

/// Returns the fastest run at the middle size that a machine can run, of those that `which` accepts.
fn fastest(report: &Report, which: impl Fn(&RunResult) -> bool) -> Option<&RunResult> {
    middle(report)
        .filter(|run| is_usable(&run.policy) && which(run))
        .min_by_key(|run| (never_pays(run), time(run)))
}

/// Returns whether a long run is never ahead of one without tiering.
fn never_pays(run: &RunResult) -> bool {
    run.policy != BASELINE && run.long_run.as_ref().is_some_and(|long| long.pays_back_ns.is_none())
}

/// Returns the run that the verdict is about.
pub(crate) fn subject(report: &Report) -> Option<&RunResult> {
    fastest(report, |_| true)
}

/// Returns the answer of a simulation: at the middle size; `None` without runs.
pub fn simulated(report: &Report) -> Option<Verdict> {
    let first = middle(report).next()?;
    let Some(best) = fastest(report, |run| run.policy != BASELINE) else {
        let nothing =
            "No verdict: nothing that a machine can run was simulated beside first-touch; try --policy all.";
        return Some(Verdict::new(Advice::Unknown, nothing.into(), ""));
    };
    let fast = share(first.fast_bytes.0.min(first.footprint_bytes.0), first.footprint_bytes.0);
    let baseline = middle(report).find(|run| run.policy == BASELINE);
    let without = best.long_run.as_ref().map(|long| long.first_touch_ns).or_else(|| baseline.map(time));
    let all_fast = time(best).0 as f64 / slowdown(best);
    let speed = |time: Nanos| percent(all_fast / time.0 as f64);
    let sure = sure(best);
    let Some(without) = without else {
        let sentence = format!(
            "No verdict: {BASELINE}, which moves nothing, was not simulated to compare with: add it to --policy."
        );
        return Some(Verdict::new(Advice::Unknown, sentence, ""));
    };
    let gain = without.0 as f64 / time(best).0 as f64 - 1.0;
    let about = |advice, sentence| Verdict {
        fast_bytes: Some(first.fast_bytes),
        gain: Some(gain.max(0.0)),
        ..Verdict::new(advice, sentence, sure)
    };
    if gain < LEAST_GAIN || never_pays(best) {
        let why = if all_fast / without.0 as f64 > 1.0 - LEAST_GAIN {
            "there is nothing to gain"
        } else {
            "no policy simulated that a machine can run makes it faster"
        };
        let sentence = format!(
            "Do not tier this program: with {fast} of its memory fast it runs at {} of full speed without tiering, and \
             {why}.",
            speed(without)
        );
        return Some(about(Advice::DoNotTier, sentence));
    }
    let pays_back = best.long_run.as_ref().and_then(|long| long.pays_back_ns);
    let ahead = pays_back.map_or(String::new(), |time| format!(", ahead from {time} on"));
    let sentence = format!(
        "Use {}: with {fast} of the memory fast the program runs {} times as fast as without tiering ({} of full speed, \
         was {}){ahead}.",
        best.policy,
        factor(1.0 + gain),
        speed(time(best)),
        speed(without),
    );
    let verdict = about(Advice::Tier, sentence);
    Some(Verdict { policy: Some(best.policy.clone()), pays_back_ns: pays_back, ..verdict })
}

/// Returns the slowdown over the time that [`time`] returns.
fn slowdown(run: &RunResult) -> f64 {
    // A round with all memory fast takes as long each time.
    let Some(long) = &run.long_run else { return run.slowdown };
    let round = long.round_ns.0 as f64 / long.slowdown;
    long.modelled_ns.0 as f64 / (round * long.rounds as f64)
}

/// Says how sure the simulation of a run is.
fn sure(run: &RunResult) -> &'static str {
    match &run.long_run {
        None => "Less sure: one replay, with the policy's learning in it; --for 10min shows the long run.",
        Some(long) if long.settled => "Sure: its rounds no longer change.",
        Some(_) => "Less sure: its rounds still change; simulate a longer time.",
    }
}

/// Returns the answer of a sizing, for what the user asked to know of a machine.
pub fn sized(report: &SizeReport, plan: &Plan) -> Verdict {
    let input = &report.input;
    let (name, budget, whole) = (file_name(&input.name), percent(report.budget), input.footprint_bytes);
    let planned = |fast: Bytes| plan.planned(fast, whole);
    if report.all_slow <= 1.0 + report.budget {
        let sentence = format!(
            "Do not tier {name}: it needs no fast memory to stay within {budget} of all-DRAM speed; with all of its \
             {whole} in slow memory it loses {}.",
            percent(report.all_slow - 1.0)
        );
        let sure = "Sure: simulated in full.";
        let verdict = Verdict::new(Advice::DoNotTier, sentence, sure);
        return Verdict { fast_bytes: Some(Bytes(0)), plan: planned(Bytes(0)), ..verdict };
    }
    let needs = |name: &str| {
        let policy = report.policies.iter().find(|policy| policy.policy == name)?;
        let size = policy.recommended.as_ref()?;
        (policy.outcome == Outcome::Confirmed).then_some(size)
    };
    let usable = report.policies.iter().map(|policy| policy.policy.as_str()).filter(|name| is_usable(name));
    // The first among equals: doing nothing, where that needs no more.
    let nothing = needs(BASELINE).map(|size| (BASELINE, size));
    let best = nothing.into_iter().chain(usable.filter_map(|name| Some((name, needs(name)?))));
    let Some((policy, size)) = best.min_by_key(|(_, size)| size.fast_bytes) else {
        let sentence = format!(
            "Keep all of {name} in DRAM: with less than its {whole}, no policy tried that a machine can run is sure to \
             stay within {budget} of all-DRAM speed."
        );
        let verdict = Verdict::new(Advice::DoNotTier, sentence, "Another --budget may change that.");
        return Verdict { fast_bytes: Some(whole), plan: planned(whole), ..verdict };
    };
    let tiers = policy != BASELINE;
    let without = match (needs(BASELINE), report.policies.iter().any(|policy| policy.policy == BASELINE)) {
        (Some(size), _) => format!(", {} without tiering", size.fast_bytes),
        (None, true) => ", which it leaves without tiering".into(),
        (None, false) => String::new(),
    };
    let start = if tiers {
        format!("Use {policy}: {name} then needs")
    } else {
        format!("Do not tier {name}: it needs")
    };
    let sentence = format!(
        "{start} {} of DRAM ({} of {whole}) to stay within {budget} of all-DRAM speed{}; it loses {} and saves {}.",
        size.fast_bytes,
        percent(size.fast_bytes.0 as f64 / whole.0.max(1) as f64),
        if tiers { &without } else { "" },
        if size.slowdown > 1.0005 { percent(size.slowdown - 1.0) } else { "nothing".into() },
        size.saved_bytes
    );
    let high = size.high_bytes.unwrap_or(whole);
    let sure = format!(
        "Sure: simulated in full at this size; the sub-samples' interval is {} to {high}.",
        size.low_bytes
    );
    Verdict {
        policy: tiers.then(|| policy.to_owned()),
        fast_bytes: Some(size.fast_bytes),
        plan: planned(size.fast_bytes),
        ..Verdict::new(if tiers { Advice::Tier } else { Advice::DoNotTier }, sentence, sure)
    }
}

/// Returns the answer of a live run. Of doing nothing it knows only that fast memory then serves its share of
/// the memory, if that does not tell what is hot.
pub fn live(result: &LiveResult) -> Verdict {
    let summary = &result.summary;
    let whole = summary.footprint_bytes;
    let fast = summary.tiers.first().map_or(Bytes(0), |tier| tier.capacity_bytes);
    let unknown = |why: &str| Verdict::new(Advice::Unknown, format!("No verdict: {why}."), "");
    let nothing = "no access was counted; `isotherm doctor` lists the access sources";
    if whole.0 == 0 {
        return unknown(nothing);
    }
    let about =
        |advice, sentence, sure| Verdict { fast_bytes: Some(fast), ..Verdict::new(advice, sentence, sure) };
    if fast >= whole {
        let sentence = "Do not tier this program: all memory in use fits the fast tier.".into();
        return about(Advice::DoNotTier, sentence, "Give it less (--fast) to see tiering at work.");
    }
    if let Some(missing) = &summary.missing {
        return unknown(&words::missing(missing).unwrap_or_else(|| nothing.into()));
    }
    let Some(hits) = summary.hit_ratio else { return unknown(nothing) };
    if result.policy == BASELINE {
        return unknown("this run is without tiering; another --policy shows what tiering gains");
    }
    let part = fast.0 as f64 / whole.0 as f64;
    let served = format!(
        "{} of its memory as fast memory {}",
        percent(part),
        if summary.shadow { "would serve" } else { "served" }
    );
    let bounds = summary.intervals.hit_ratio;
    let (told, least) = (between(hits, bounds), part + LEAST_SKEW);
    let [low, high] = bounds.unwrap_or([hits, hits]);
    if low < least && high >= least && low < high {
        let longer = length(four_times(summary.duration_ns));
        return unknown(&format!(
            "{served} {told} of its accesses, which may or may not be more than its share of the memory; a run of \
             {longer} halves what is uncertain"
        ));
    }
    if hits < least {
        let sentence = format!(
            "Do not tier this program: {served} {told} of its accesses, hardly more than its share of the memory."
        );
        return about(Advice::DoNotTier, sentence, "Its time without tiering was not measured.");
    }
    let sentence = format!("Tier this program: {served} {told} of its accesses under {}.", result.policy);
    let sure = "Its time without tiering was not measured: run it with --policy first-touch to compare.";
    Verdict { policy: Some(result.policy.clone()), ..about(Advice::Tier, sentence, sure) }
}

/// Returns the time of a run whose errors are half of those of a run of this time.
fn four_times(time: Nanos) -> Nanos {
    Nanos(time.0.saturating_mul(4))
}

/// Returns the answer of runs of the same program in the lab; `None` for fewer than two.
pub fn compared(results: &[LabResult]) -> Option<Verdict> {
    let time = |result: &LabResult| {
        let modelled = result.measured.as_ref().map(|measured| measured.modelled_ns);
        modelled.filter(|&time| time > 0 && result.refusal.is_none())
    };
    let is_nothing = |result: &&LabResult| result.tiering == "none" || result.tiering == BASELINE;
    let (first, _) = (results.first()?, results.get(1)?);
    let unknown = |why: &str| Some(Verdict::new(Advice::Unknown, format!("No verdict: {why}."), ""));
    let Some(without) = results.iter().find(is_nothing).and_then(time) else {
        return unknown("no run without tiering to compare with: add none to --kernel");
    };
    let best = results.iter().filter(|result| !is_nothing(result));
    let Some((best, took)) =
        best.filter_map(|result| Some((result, time(result)?))).min_by_key(|&(_, took)| took)
    else {
        return unknown("no run with tiering was measured");
    };
    let gain = without as f64 / took as f64 - 1.0;
    let sure = "Less sure: one run of each.";
    let (advice, sentence) = if gain < LEAST_GAIN {
        let time = Nanos(without);
        let sentence = format!(
            "Do not tier this program: it takes {time} without tiering, and nothing compared is faster."
        );
        (Advice::DoNotTier, sentence)
    } else {
        let sentence = format!(
            "Use {}: the program runs {} times as fast as without tiering ({}, was {}), its start included.",
            best.tiering,
            factor(1.0 + gain),
            Nanos(took),
            Nanos(without)
        );
        (Advice::Tier, sentence)
    };
    Some(Verdict {
        policy: (advice == Advice::Tier).then(|| best.tiering.clone()),
        fast_bytes: first.fast_bytes.map(Bytes),
        gain: Some(gain.max(0.0)),
        ..Verdict::new(advice, sentence, sure)
    })
}
