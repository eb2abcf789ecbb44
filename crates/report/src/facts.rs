//! The report in words: the notes below a table.

use isotherm_policies::registry::{BASELINE, bounds};
use isotherm_sim::{LongRun, Report, RunResult};

use crate::columns::Cell;
use crate::format::{count, counted, list, percent, reasons};

/// Runs named in one note, at most.
const NAMED_RUNS: usize = 12;

/// Returns the names of the limits that policies are measured against; no machine can run them.
pub(crate) fn limits() -> Vec<&'static str> {
    bounds().filter(|(_, bound)| bound.is_limit()).map(|(entry, _)| entry.name).collect()
}

/// Returns a run's name: `freqtier 1:8`.
fn run_name(run: &RunResult) -> String {
    format!("{} {}", run.policy, run.fast)
}

/// Returns whether it moves pages, and some machine can run it.
fn is_policy(name: &str) -> bool {
    name != BASELINE && !limits().contains(&name)
}

/// Returns when a run pays back, for a table.
pub(crate) fn payback(run: &RunResult, long: &LongRun) -> Cell {
    match long.pays_back_ns {
        _ if !is_policy(&run.policy) => Cell::unknown(),
        None => "never".into(),
        Some(time) => Cell::time(time),
    }
}

/// Says how much of a long run was simulated, and at which times of the policies.
fn rounds(report: &Report) -> Vec<String> {
    let long = || report.runs.iter().filter_map(|run| Some((run, run.long_run.as_ref()?)));
    let Some((_, first)) = long().next() else { return Vec::new() };
    let policies = || long().filter(|(run, _)| !limits().contains(&run.policy.as_str()));
    let counts = || long().map(|(_, long)| long.simulated);
    let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    let simulated = if least == most { count(most) } else { format!("{} to {}", count(least), count(most)) };
    let mut notes = vec![format!(
        "{} replayed with state and placement kept: hits, slowdown and the columns behind them tell of the \
         {simulated} simulated; long run is the time of the last ones, over all memory fast{}.",
        counted(first.rounds, "round", "rounds"),
        if most < first.rounds { ", from which the others are extrapolated" } else { "" },
    )];
    let changing = |long: &LongRun| !long.settled;
    let names = list_of(policies().filter(|(_, long)| changing(long)).map(|(run, _)| run_name(run)));
    notes.extend(names.map(|names| {
        format!("Still changing from round to round when the simulation ended, so less certain: {names}.")
    }));
    let scaled = |(run, long): (&RunResult, &LongRun)| {
        (run.time_scale > 1.0 && long.control_loop_ns.0 > 0)
            .then(|| format!("{} by {:.1}, to {}", run.policy, run.time_scale, long.control_loop_ns))
    };
    let mut names: Vec<String> = policies().filter_map(scaled).collect();
    names.dedup();
    notes.extend(list_of(names.into_iter()).map(|names| {
        format!(
            "Times of policies were divided, because what is simulated holds less than three of their slowest \
             control loops: {names}. All others are as in the policy's paper."
        )
    }));
    notes
}

/// Returns the names as in a sentence, those beyond [`NAMED_RUNS`] as a number; `None` without any.
fn list_of(names: impl Iterator<Item = String>) -> Option<String> {
    let mut names: Vec<String> = names.collect();
    if names.len() > NAMED_RUNS {
        let more = format!("{} more", names.len() - NAMED_RUNS);
        names.truncate(NAMED_RUNS);
        names.push(more);
    }
    (!names.is_empty()).then(|| list(&names))
}

/// Returns the notes needed to read the numbers right, one or two sentences each.
pub(crate) fn notes(report: &Report) -> Vec<String> {
    let input = &report.input;
    let notes = [beats_oracle(report), lost_samples(report), failed_moves(report), footprint_fits(report)];
    let long = rounds(report);
    // In a long run each policy has a scale of times of its own.
    let scale = scaled_by(input.scale, input.time_scale).filter(|_| long.is_empty());
    notes.into_iter().flatten().chain(long).chain(scale).collect()
}

/// Describes the runs that `describe` accepts, in one list; `None` without any.
fn named(report: &Report, describe: impl Fn(&RunResult) -> Option<String>) -> Option<String> {
    list_of(report.runs.iter().filter_map(|run| Some(format!("{} ({})", run_name(run), describe(run)?))))
}

fn beats_oracle(report: &Report) -> Option<String> {
    let names = named(report, |run| {
        let against = || format!("{} against {}", percent(run.hit_ratio), percent(run.oracle_hit_ratio));
        run.beats_oracle.then(against)
    })?;
    Some(format!(
        "More hits than the interval oracle: {names}. The oracle knows the future but keeps one placement \
         for a whole interval; where misses come in bursts, moving pages inside an interval serves more. No \
         policy passes belady."
    ))
}

fn lost_samples(report: &Report) -> Option<String> {
    let names = named(report, |run| loss(run.samples, run.samples_lost))?;
    Some(format!("Samples lost because the ring was full: {names}. The policy decided without them."))
}

/// Returns the lost samples as count and share; `None` where none was lost.
pub(crate) fn loss(taken: u64, lost: u64) -> Option<String> {
    let share = lost as f64 / (taken as f64 + lost as f64);
    (lost > 0).then(|| format!("{}, {}", count(lost), percent(share)))
}

fn failed_moves(report: &Report) -> Option<String> {
    let names = named(report, |run| {
        let failed = run.failed_moves;
        let reasons_of = [
            ("no room", failed.no_room),
            ("busy", failed.busy),
            ("gone", failed.gone),
            ("denied", failed.denied),
        ];
        (failures(run) > 0).then(|| reasons(&reasons_of))
    });
    names.map(|names| format!("Moves that failed: {names}."))
}

/// Returns the number of moves that failed, for any reason.
pub(crate) fn failures(run: &RunResult) -> u64 {
    let failed = run.failed_moves;
    failed.no_room + failed.busy + failed.gone + failed.denied
}

fn footprint_fits(report: &Report) -> Option<String> {
    let fitting = report.runs.iter().filter(|run| run.fast_bytes >= run.footprint_bytes);
    let mut sizes: Vec<_> = fitting.map(|run| run.fast.clone()).collect();
    sizes.dedup();
    (!sizes.is_empty()).then(|| {
        format!(
            "The footprint ({}) fits the fast tier at {}: every policy can serve all misses from it. Ask for \
             less fast memory to compare policies.",
            report.input.footprint_bytes,
            list(&sizes)
        )
    })
}

/// Says by what parameters were divided; `None` where they were not.
pub(crate) fn scaled_by(scale: f64, times: f64) -> Option<String> {
    (scale != 1.0 || times != 1.0).then(|| {
        format!(
            "Scale {scale}: sample counts of policies, made for a larger footprint, were divided by it, and \
             times by {times}, so that a window holds as many samples per page as in the policy's paper."
        )
    })
}
