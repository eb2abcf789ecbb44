//! Defines what the report says in words: the answer in one line, and the notes below a table.

use isotherm_sim::{Report, RunResult};

use crate::format::{count, factor, list, percent, reasons, share};

/// The policies that no machine can run: limits that the others are measured against.
pub(crate) const BOUNDS: [&str; 4] = ["all-fast", "all-slow", "oracle", "belady"];

/// At most so many runs are named in one note.
const NAMED_RUNS: usize = 12;

/// How a run is named: `freqtier 1:8`.
pub(crate) fn run_name(run: &RunResult) -> String {
    format!("{} {}", run.policy, run.fast)
}

/// The run that the answer is about: FreqTier, else the first policy that is no bound, at the middle size.
pub(crate) fn subject(report: &Report) -> Option<&RunResult> {
    let is_candidate =
        |run: &&RunResult| !BOUNDS.contains(&run.policy.as_str()) && run.policy != "first-touch";
    let policy = report
        .runs
        .iter()
        .find(|run| run.policy == "freqtier")
        .or_else(|| report.runs.iter().find(is_candidate))
        .or_else(|| report.runs.first())
        .map(|run| run.policy.as_str())?;
    let mut runs: Vec<_> = report.runs.iter().filter(|run| run.policy == policy).collect();
    runs.sort_by_key(|run| run.fast_bytes);
    runs.get(runs.len() / 2).copied()
}

/// The answer in one sentence; `None` where nothing was run.
pub(crate) fn answer(report: &Report) -> Option<String> {
    let run = subject(report)?;
    let same_size = |name: &str| {
        report.runs.iter().find(|other| other.policy == name && other.fast_bytes == run.fast_bytes)
    };
    let mut compared = vec![format!("best possible {}", percent(run.belady_hit_ratio))];
    if let Some(first_touch) = same_size("first-touch").filter(|_| run.policy != "first-touch") {
        compared.insert(0, format!("first-touch {}", percent(first_touch.hit_ratio)));
    }
    Some(format!(
        "With {} of the memory fast, {} serves {} of misses from the fast tier ({}), and the program runs {} times as \
         long as with all memory fast.",
        share(run.fast_bytes.0.min(run.footprint_bytes.0), run.footprint_bytes.0),
        run.policy,
        percent(run.hit_ratio),
        compared.join(", "),
        factor(run.slowdown),
    ))
}

/// What a reader must know to read the numbers right, one sentence or two each.
pub(crate) fn notes(report: &Report) -> Vec<String> {
    let notes = [beats_oracle, lost_samples, failed_moves, footprint_fits, scaled];
    notes.iter().filter_map(|note| note(report)).collect()
}

/// Names the runs that `which` accepts; `None` for none.
fn named(
    report: &Report,
    which: impl Fn(&RunResult) -> bool,
    describe: impl Fn(&RunResult) -> String,
) -> Option<String> {
    let runs: Vec<_> = report.runs.iter().filter(|run| which(run)).collect();
    let mut names: Vec<String> = runs.iter().take(NAMED_RUNS).map(|run| describe(run)).collect();
    if runs.len() > NAMED_RUNS {
        names.push(format!("{} more", runs.len() - NAMED_RUNS));
    }
    (!names.is_empty()).then(|| list(&names))
}

fn beats_oracle(report: &Report) -> Option<String> {
    let describe = |run: &RunResult| {
        format!("{} ({} against {})", run_name(run), percent(run.hit_ratio), percent(run.oracle_hit_ratio))
    };
    let names = named(report, |run| run.beats_oracle, describe)?;
    Some(format!(
        "More hits than the interval oracle: {names}. The oracle knows the future but keeps one placement for a whole \
         interval; where misses come in bursts, moving pages inside an interval serves more. No policy passes belady."
    ))
}

fn lost_samples(report: &Report) -> Option<String> {
    let describe = |run: &RunResult| {
        let lost = run.samples_lost as f64 / (run.samples as f64 + run.samples_lost as f64);
        format!("{} ({}, {})", run_name(run), count(run.samples_lost), percent(lost))
    };
    let names = named(report, |run| run.samples_lost > 0, describe)?;
    Some(format!("Samples lost because the ring was full: {names}. The policy decided without them."))
}

fn failed_moves(report: &Report) -> Option<String> {
    let describe = |run: &RunResult| {
        let failed = run.failed_moves;
        let reasons_of = [
            ("no room", failed.no_room),
            ("busy", failed.busy),
            ("gone", failed.gone),
            ("denied", failed.denied),
        ];
        format!("{} ({})", run_name(run), reasons(&reasons_of))
    };
    named(report, |run| failures(run) > 0, describe).map(|names| format!("Moves that failed: {names}."))
}

/// Moves that failed, whatever the reason.
pub(crate) fn failures(run: &RunResult) -> u64 {
    let failed = run.failed_moves;
    failed.no_room + failed.busy + failed.gone + failed.denied
}

fn footprint_fits(report: &Report) -> Option<String> {
    let mut sizes: Vec<_> = report
        .runs
        .iter()
        .filter(|run| run.fast_bytes >= run.footprint_bytes)
        .map(|run| run.fast.clone())
        .collect();
    sizes.dedup();
    (!sizes.is_empty()).then(|| {
        format!(
            "The footprint ({}) fits the fast tier at {}: every policy can serve all misses from it. Ask for less fast \
             memory to compare policies.",
            report.input.footprint_bytes,
            list(&sizes)
        )
    })
}

fn scaled(report: &Report) -> Option<String> {
    scaled_by(report.input.scale, report.input.time_scale)
}

/// By what parameters were divided; `None` where they were not.
pub(crate) fn scaled_by(scale: f64, times: f64) -> Option<String> {
    (scale != 1.0 || times != 1.0).then(|| {
        format!(
            "Scale {scale}: sample counts of policies, made for a larger footprint, were divided by it, and times by \
             {times}, so that a window holds as many samples a page as in the policy's paper."
        )
    })
}
