//! The workloads' pace beside their originals'.

use isotherm_score::pace::{measure, ratio};
use isotherm_score::{Mode, Request, compare};
use isotherm_workloads::{ALL, Original};

/// Checks the ratios that stand in the registry, of sources of one kind.
fn check(of: impl Fn(&Original) -> bool) {
    let sources =
        ALL.iter().flat_map(|&workload| workload.pace().sources.iter().map(move |one| (workload, one)));
    let mut wrong = String::new();
    for (workload, source) in sources.filter(|(_, source)| of(&source.original)) {
        let ours = measure(workload, source, None).expect("a valid source");
        let found = ratio(source, ours);
        if (found / source.ratio - 1.0).abs() > 0.05 {
            wrong += &format!(
                "\n{}: {found:.2} times the pace of {}, not {}",
                workload.name, source.place, source.ratio
            );
        }
    }
    assert!(wrong.is_empty(), "crates/workloads/src/pace.rs is not current (`make pace`):{wrong}");
}

/// The workloads' code reported a fifth of the originals' instructions: their misses came five times too
/// densely.
#[test]
fn instructions_between_misses_are_those_of_the_recorded_programs() {
    check(|original| matches!(original, Original::Recorded { .. }));
}

/// CacheLib ran at five times the operations a second that FreqTier prints for all memory local.
#[test]
fn all_fast_runs_have_the_printed_rates() {
    check(|original| matches!(original, Original::Printed { .. }));
}

/// Speeds of a workload at another pace than its original's were judged like all others.
#[test]
fn speeds_at_an_unknown_pace_are_neither_run_nor_judged() {
    let mode = Mode { quick: true, seed: 1 };
    let board = |id| {
        let request = Request::new(None, Some(id), mode).expect("it exists");
        compare(&request, "test", &mut |progress| panic!("{} was run", progress.workload))
    };
    let spec = &board("jenga.fig7.spec").papers[0].comparisons[0];
    assert!(spec.tally.not_comparable > 0 && spec.tally.judged() == 0, "{:?}", spec.tally);
    let missing: Vec<_> = spec.rows.iter().flat_map(|row| &row.cells).map(|cell| &cell.missing).collect();
    assert!(
        missing.contains(&&Some("not comparable: no source says how fast roms is".to_owned())),
        "{missing:?}"
    );
}
