//! Every workload at its test size under every policy and bound: each runs, its numbers are consistent, and a
//! second run gives the same bytes.

use std::ops::ControlFlow;

use isotherm_core::PageSize;
use isotherm_machine::Profile;
use isotherm_policies::Kind;
use isotherm_sim::{Experiment, FastSize, Report, load_workload, simulate};
use isotherm_workloads::{ALL, TEST_PRESET, Workload};

const SEED: u64 = 7;
/// Replayed misses of a workload: enough for every policy to sample and to move.
const MISSES: u64 = 300_000;

/// Generates the workload and replays it under every entry of the registry.
fn run(workload: &Workload) -> Report {
    let mut parameters = workload.parameters();
    parameters.set("preset", TEST_PRESET).expect("every workload has it");
    let mut progress = |_| ControlFlow::Continue(());
    let loaded = load_workload(workload, parameters, PageSize::Base, SEED, MISSES, &mut progress)
        .unwrap_or_else(|error| panic!("{}: {error}", workload.name));
    let profile = Profile::builtin("freqtier-cxl1").expect("a builtin machine");
    let experiment = Experiment {
        policies: isotherm_policies::ALL.iter().map(|entry| (entry, entry.parameters())).collect(),
        sizes: vec![FastSize::parse("1:4").expect("a size")],
        profile: &profile,
        seed: SEED,
        scale: loaded.scale,
        intervals: 20,
        version: "test",
        stop: None,
    };
    let mut report = simulate(&loaded.input, &experiment, &|| ())
        .unwrap_or_else(|error| panic!("{}: {error}", workload.name));
    report.runs.iter_mut().for_each(|run| run.wall_s = 0.0);
    report
}

/// Checks the properties that every run has.
fn check(workload: &Workload, report: &Report) {
    let of = |name: &str| report.runs.iter().find(|run| run.policy == name).expect("every policy ran");
    let (belady, slow) = (of("belady").hit_ratio, of("all-slow").modelled_ns);
    for run in &report.runs {
        let place = format!("{} under {}", workload.name, run.policy);
        let bound =
            isotherm_policies::find(&run.policy).is_ok_and(|entry| !matches!(entry.kind, Kind::Policy(_)));
        assert!(run.accesses > 1000, "{place}: {} accesses", run.accesses);
        assert!((0.0..=1.0).contains(&run.hit_ratio), "{place}: hits {}", run.hit_ratio);
        assert!(bound || run.hit_ratio <= belady, "{place}: {} above belady's {belady}", run.hit_ratio);
        // Two tiers have more bandwidth than the fast one alone.
        assert!(run.slowdown >= 0.95, "{place}: {} times all-fast", run.slowdown);
        assert!(bound || run.metadata_bytes.0 > 0 || run.policy == "first-touch", "{place}: no metadata");
        assert!(run.modelled_ns.0 > 0 && slow.0 > 0, "{place}");
    }
}

#[test]
fn every_workload_runs_under_every_policy_to_the_same_bytes_again() {
    ALL.iter().for_each(|workload| {
        let report = run(workload);
        assert_eq!(report.runs.len(), isotherm_policies::ALL.len(), "{}", workload.name);
        check(workload, &report);
        let again = run(workload);
        assert!(
            isotherm_report::json(&report) == isotherm_report::json(&again),
            "{}: two runs of one seed differ",
            workload.name
        );
    });
}
