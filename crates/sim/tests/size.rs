//! Compares sizing with full simulations of every size: recommendations and expectations must hold there.

mod support;

use isotherm_core::parameters::Scale;
use isotherm_machine::Profile;
use isotherm_sim::{FastSize, Input, Outcome, SizeExperiment, SizeReport, size};
use support::{ENDLESS_TLB, input, machine, numbers, run, stream};

const PAGES: u32 = 4096;
const SCALE: f64 = 1000.0;
const POLICIES: [&str; 4] = ["first-touch", "lru", "oracle", "belady"];

/// Sends half of the accesses to a twentieth of the pages, the rest to all; half of them depend on the one
/// before.
fn skewed() -> Input {
    let mut random = numbers(5, 1 << 30);
    let page = move |_| if random().is_multiple_of(2) { random() % (PAGES / 20) } else { random() % PAGES };
    input(stream((0..300_000).map(page), PAGES, 60, 2))
}

fn sized(input: &Input, profile: &Profile, budget: f64, sample_accesses: u64) -> SizeReport {
    let entry = |name: &str| isotherm_policies::find(name).expect("a known policy");
    let experiment = SizeExperiment {
        policies: POLICIES.iter().map(|name| (entry(name), entry(name).parameters())).collect(),
        profile,
        budget,
        seed: 1,
        seeds: 4,
        sample_accesses,
        scale: Scale { footprint: SCALE, time: SCALE },
        length: None,
        version: "test",
        stop: None,
    };
    size(input, &experiment, &|| ()).expect("a valid experiment")
}

#[test]
fn estimates_are_near_full_simulations_and_what_is_recommended_holds() {
    let (input, profile) = (skewed(), machine(&[]));
    let report = sized(&input, &profile, 0.2, 40_000);
    assert!(report.sampling.one_in > 1, "it is sampled");
    for policy in &report.policies {
        let sizes: Vec<String> = policy.curve.iter().map(|point| point.fast_bytes.0.to_string()).collect();
        let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
        let full = run(&input, &profile, &[&policy.policy], &sizes, SCALE);
        for (point, run) in policy.curve.iter().zip(&full.runs) {
            assert_eq!(run.fast_bytes, point.fast_bytes);
            let error = (point.slowdown - run.slowdown).abs();
            let name = format!("{} at {}: {} in full", policy.policy, point.fast_bytes, run.slowdown);
            // docs/guide/sizing.md: a tenth of the slowdown itself.
            assert!(error < 0.02 + 0.1 * (run.slowdown - 1.0), "{name}, {} expected", point.slowdown);
        }
    }
    let first_touch = &report.policies[0];
    assert_eq!(first_touch.outcome, Outcome::Confirmed);
    let recommended = first_touch.recommended.as_ref().expect("confirmed");
    let text = recommended.fast_bytes.0.to_string();
    assert!(FastSize::parse(&text).is_ok());
    let full = run(&input, &profile, &["first-touch"], &[&text], SCALE);
    assert_eq!(full.runs[0].slowdown, recommended.slowdown, "it was the same simulation");
    assert!(recommended.slowdown <= 1.2 && recommended.slowdown > 1.15, "{}", recommended.slowdown);
    assert!(recommended.low_bytes <= recommended.fast_bytes);
}

#[test]
fn a_larger_budget_needs_no_more_memory() {
    let (input, profile) = (skewed(), machine(&[ENDLESS_TLB, ("core.l2_registers", "0")]));
    let needed = |budget| -> Vec<u64> {
        let report = sized(&input, &profile, budget, 40_000);
        let size = |policy: &isotherm_sim::PolicySize| {
            policy.recommended.as_ref().map_or(u64::MAX, |recommended| recommended.fast_bytes.0)
        };
        report.policies.iter().map(size).collect()
    };
    let sizes: Vec<_> = [0.02, 0.1, 0.3, 0.6].map(needed).into_iter().collect();
    for pair in sizes.windows(2) {
        assert!(pair[0].iter().zip(&pair[1]).all(|(tight, loose)| tight >= loose), "{pair:?}");
    }
}

#[test]
fn a_small_input_is_not_sampled_and_every_call_says_the_same() {
    let (input, profile) = (skewed(), machine(&[]));
    let answers: Vec<SizeReport> = (0..2).map(|_| sized(&input, &profile, 0.2, 10_000_000)).collect();
    assert_eq!(answers[0].sampling.one_in, 1);
    let text = |report: &SizeReport| format!("{:?}", (&report.policies, &report.best, report.all_fast_ns));
    assert_eq!(text(&answers[0]), text(&answers[1]));
    let first_touch = &answers[0].policies[0];
    assert!(first_touch.curve.iter().all(|point| point.low == point.high), "first-touch draws no lots");
    assert!(first_touch.full.iter().all(|run| run.within), "{:?}", first_touch.full);
}

#[test]
fn a_budget_that_nothing_meets_is_said_to_be_never_met() {
    let (input, profile) = (skewed(), machine(&[("costs.sample", "20us")]));
    let report = sized(&input, &profile, 0.01, 40_000);
    let lru = &report.policies[1];
    assert_eq!((lru.outcome, &lru.recommended), (Outcome::Never, &None));
    assert!(lru.full.iter().all(|run| !run.meets) && !lru.full.is_empty());
}

#[test]
fn a_budget_that_everything_meets_takes_the_smallest_size() {
    let (input, profile) = (skewed(), machine(&[]));
    let report = sized(&input, &profile, 50.0, 40_000);
    let recommended = report.policies[0].recommended.as_ref().expect("anything will do");
    assert_eq!(recommended.fast_bytes.0, u64::from(PAGES) / 64 * 4096);
}
