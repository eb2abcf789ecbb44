//! Long runs: state is kept from round to round, what is extrapolated is what a full simulation gives, and a
//! policy pays back when it has earned what it cost.

mod support;

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_core::{Bytes, Nanos};
use isotherm_machine::Profile;
use isotherm_policies::Entry;
use isotherm_sim::{
    Experiment, FastSize, INTERVALS, Input, Length, LongRun, RunResult, Testbed, simulate_long,
};
use support::{input, numbers, plain_machine, stream};

const PAGES: u32 = 1024;
const ACCESSES: u32 = 50_000;
/// Rounds of a run that settles before their end.
const ROUNDS: u64 = 60;

fn entry(policy: &str) -> &'static Entry {
    isotherm_policies::find(policy).expect("a known policy")
}

/// Runs policies in a fifth of the memory.
fn long_runs(input: &Input, policies: &[&str], length: Length, scale: f64) -> Vec<RunResult> {
    let policies = policies.iter().map(|name| (entry(name), entry(name).parameters())).collect();
    long_runs_of(input, &plain_machine(), policies, length, scale)
}

fn long_runs_of(
    input: &Input,
    profile: &Profile,
    policies: Vec<(&'static Entry, Parameters)>,
    length: Length,
    scale: f64,
) -> Vec<RunResult> {
    let experiment = Experiment {
        policies,
        sizes: vec![FastSize::parse("20%").expect("a size")],
        profile,
        seed: 1,
        scale: Scale { footprint: scale, time: scale },
        intervals: INTERVALS,
        version: "test",
        stop: None,
    };
    simulate_long(input, &experiment, length, &|| ()).expect("a valid experiment").runs
}

fn long_run(input: &Input, policy: &str, rounds: u64) -> LongRun {
    let run = long_runs(input, &[policy], Length::Rounds(rounds), 16_000.0).remove(0);
    run.long_run.expect("it was long")
}

/// Sends 90 % of accesses to the last tenth of the pages, which are touched last.
fn hot_at_the_end() -> Input {
    let mut random = numbers(3, 1 << 30);
    let page = move |index: u32| match index {
        0..PAGES => index,
        _ if random().is_multiple_of(10) => random() % PAGES,
        _ => PAGES - 1 - random() % (PAGES / 10),
    };
    input(stream((0..ACCESSES).map(page), PAGES, 20, 1))
}

/// Sends runs of accesses to groups of pages in turn: what was hot is never hot again in the round.
fn adversary() -> Input {
    let group = |index: u32| index / 1250 % 40 * (PAGES / 40) + index % (PAGES / 40);
    input(stream((0..ACCESSES).map(group), PAGES, 20, 1))
}

#[test]
fn placement_and_policy_are_kept_from_round_to_round() {
    let run = long_run(&hot_at_the_end(), "lru", 6);
    assert!(run.each[0].hit_ratio < run.each[2].hit_ratio - 0.01, "learned in the first: {:?}", run.each);
    assert!(run.each[1].promotions < run.each[0].promotions, "and kept: {:?}", run.each);
    let first_touch = long_run(&hot_at_the_end(), "first-touch", 6);
    assert!(first_touch.each.iter().all(|round| round.hit_ratio < 0.2), "pages are allocated only once");
}

#[test]
fn pages_that_fit_the_tlb_are_walked_for_in_the_first_round_alone() {
    // 64 pages, each read a few times in a row; a TLB of the machine `pact` holds them all.
    let input = input(stream((0..ACCESSES).map(|index| index / 100 % 64), 64, 20, 1));
    let profile = Profile::builtin("pact").expect("built in");
    let policies = vec![(entry("first-touch"), entry("first-touch").parameters())];
    let runs = long_runs_of(&input, &profile, policies, Length::Rounds(4), 1.0);
    let rounds = runs[0].long_run.as_ref().expect("it was long").simulated;
    assert!(rounds > 1 && runs[0].page_walks == 64, "{rounds} rounds, {} walks", runs[0].page_walks);
}

#[test]
fn rounds_add_up_to_the_run() {
    let input = hot_at_the_end();
    for run in long_runs(&input, &["lru", "memtis", "belady"], Length::Rounds(5), 16_000.0) {
        let long = run.long_run.as_ref().expect("it was long");
        let name = &run.policy;
        assert_eq!(long.each.len() as u64, long.simulated, "{name}");
        let sum = |part: fn(&isotherm_sim::Round) -> u64| long.each.iter().map(part).sum::<u64>();
        assert_eq!(Nanos(sum(|round| round.modelled_ns.0)), run.modelled_ns, "{name}");
        assert_eq!(Nanos(sum(|round| round.parts.whole().0)), run.parts.whole(), "{name}");
        assert_eq!(Nanos(sum(|round| round.parts.moving.0)), run.parts.moving, "{name}");
        assert_eq!((run.parts.whole(), long.parts.whole()), (run.modelled_ns, long.modelled_ns), "{name}");
        assert_eq!(sum(|round| round.promotions), run.promotions, "{name}");
        assert_eq!(run.accesses, long.simulated * u64::from(ACCESSES), "{name}");
        assert_eq!(
            run.timeline.iter().map(|interval| interval.accesses).sum::<u64>(),
            run.accesses,
            "{name}"
        );
        assert_eq!(run.timeline.last().map(|interval| interval.end_ns), Some(run.modelled_ns), "{name}");
        let hits = long.each.iter().map(|round| round.hit_ratio).sum::<f64>() / long.simulated as f64;
        assert!((hits - run.hit_ratio).abs() < 1e-9 && run.hit_ratio <= run.belady_hit_ratio, "{name}");
        let oracle: u64 = run.timeline.iter().map(|interval| interval.oracle_hits).sum();
        assert!((oracle as f64 / run.accesses as f64 - run.oracle_hit_ratio).abs() < 1e-9, "{name}");
    }
}

/// Rounds of a policy differ from each other, so the tolerance is wider than that of settled windows.
#[test]
fn extrapolation_is_what_simulating_every_round_gives() {
    let input = hot_at_the_end();
    for policy in ["first-touch", "lru", "hybridtier"] {
        let settled = long_run(&input, policy, ROUNDS);
        assert!(settled.settled && settled.simulated < ROUNDS, "{policy}: {} rounds", settled.simulated);
        let longer: u64 = long_run_unsettled(&input, policy, ROUNDS as usize);
        let error = settled.modelled_ns.0 as f64 / longer as f64 - 1.0;
        assert!(error.abs() < 0.02, "{policy}: {error}");
    }
}

/// Returns the time of so many rounds, all simulated: written one behind the other into one stream.
fn long_run_unsettled(once: &Input, policy: &str, rounds: usize) -> u64 {
    let settled = long_runs(once, &[policy], Length::Rounds(rounds as u64), 16_000.0).remove(0);
    let mut repeated = input(once.stream.clone());
    repeated.stream.accesses = once.stream.accesses.repeat(rounds);
    let profile = plain_machine();
    // The same parameters, which are scaled already.
    let mut parameters = entry(policy).parameters();
    for (spec, value) in settled.parameters.iter() {
        parameters.set(spec.name, &exact(value)).expect("a valid value");
    }
    let report =
        support::run_entries(&repeated, &profile, vec![(entry(policy), parameters)], &["20%"], 16_000.0);
    report.runs[0].modelled_ns.0
}

/// Writes a value without rounding.
fn exact(value: isotherm_core::parameters::Value) -> String {
    use isotherm_core::parameters::Value;
    match value {
        Value::Duration(time) => format!("{}ns", time.0),
        Value::Size(Bytes(bytes)) => bytes.to_string(),
        Value::Number(number) => format!("{number}"),
        other => other.to_string(),
    }
}

#[test]
fn loading_is_replayed_once_and_a_run_has_as_many_control_loops_as_asked() {
    const LOADING: u32 = 10_000;
    let mut random = numbers(3, PAGES);
    let page = move |index: u32| if index < LOADING { index * PAGES / LOADING } else { random() };
    let input = input(stream((0..ACCESSES).map(page), PAGES, 20, 1));
    let loaded = input.stream.loaded();
    assert_eq!(loaded, 9894, "the first access to the 1,014th of 1,024 pages");
    let profile = plain_machine();
    let experiment = Experiment {
        policies: Vec::new(),
        sizes: Vec::new(),
        profile: &profile,
        seed: 1,
        scale: Scale { footprint: 16_000.0, time: 16_000.0 },
        intervals: INTERVALS,
        version: "test",
        stop: None,
    };
    let length = Length::Loops { loops: 60, accesses: 10_000_000 };
    let testbed =
        Testbed::new(&input, &experiment).and_then(|testbed| testbed.lengthened(length)).expect("valid");
    let fast = isotherm_core::Pages(u64::from(PAGES) / 5);
    for (policy, windows) in [("first-touch", 0.0), ("hybridtier", 60.0), ("memtis", 60.0)] {
        let run = testbed.run(entry(policy), &entry(policy).parameters(), fast).expect("a run");
        let long = run.long_run.expect("it was long");
        assert_eq!(run.time_scale, 16_000.0, "{policy}: windows hold as many samples as the paper's");
        let accesses: Vec<u64> = long.each.iter().map(|round| round.accesses).take(3).collect();
        let later = u64::from(ACCESSES) - loaded as u64 / 500 * 500;
        assert_eq!(accesses, [u64::from(ACCESSES), later, later], "{policy}: whole intervals");
        let held = long.round_ns.0 as f64 * long.rounds as f64;
        assert!(held >= windows * long.control_loop_ns.0 as f64, "{policy}: {held}");
        assert!(long.rounds >= 4 && long.simulated <= long.rounds, "{policy}: {long:?}");
    }
}

/// Guards against a ring that shrank with the footprint while times stayed long: it lost most samples.
#[test]
fn the_ring_holds_as_much_time_as_the_policys_own_is_long() {
    let mut dense = entry("memtis").parameters();
    dense.set("shortest_period", "1").expect("a period");
    dense.set("longest_period", "1").expect("a period");
    let mut profile = plain_machine();
    profile.set("costs.ring_samples", "8000000").expect("a size");
    let runs = long_runs_of(
        &hot_at_the_end(),
        &profile,
        vec![(entry("memtis"), dense)],
        Length::Rounds(ROUNDS),
        16_000.0,
    );
    let run = &runs[0];
    assert!(run.time_scale < 1000.0, "times are longer than the footprint's: {}", run.time_scale);
    assert!(run.samples > 500_000 && run.samples_lost == 0, "{} lost of {}", run.samples_lost, run.samples);
}

#[test]
fn what_is_learned_once_pays_back_and_chasing_what_is_gone_never_does() {
    let hot = long_run(&hot_at_the_end(), "lru", ROUNDS);
    let first_touch = long_run(&hot_at_the_end(), "first-touch", ROUNDS);
    let pays_back = hot.pays_back_ns.expect("nine of ten accesses come to the fast tier");
    let time = |run: &LongRun, rounds: usize| -> u64 {
        let each = run.each.iter().map(|round| round.modelled_ns.0);
        each.chain(std::iter::repeat(run.round_ns.0)).take(rounds).sum()
    };
    let behind = |rounds: &usize| time(&hot, *rounds) >= time(&first_touch, *rounds);
    let last = (1..1000).rev().find(behind).unwrap_or(0);
    assert_eq!(pays_back.0, time(&hot, last + 1), "at the end of round {}", last + 1);
    assert!(hot.slowdown < first_touch.slowdown && hot.first_touch_ns > hot.modelled_ns);

    let chased = long_run(&adversary(), "lru", ROUNDS);
    assert_eq!(chased.pays_back_ns, None);
    assert!(chased.slowdown > long_run(&adversary(), "first-touch", ROUNDS).slowdown);
    assert_eq!(long_run(&hot_at_the_end(), "first-touch", ROUNDS).pays_back_ns, None, "nor does it itself");
}

#[test]
fn bounds_stay_bounds_in_the_long_run() {
    let input = hot_at_the_end();
    let names = ["all-fast", "belady", "oracle", "lru", "first-touch", "all-slow"];
    let runs = long_runs(&input, &names, Length::Rounds(30), 16_000.0);
    let of = |name: &str| {
        let run = runs.iter().find(|run| run.policy == name).expect("it ran");
        run.long_run.as_ref().expect("it was long")
    };
    assert_eq!((of("all-fast").slowdown, of("all-fast").hit_ratio), (1.0, 1.0));
    assert_eq!(of("all-slow").hit_ratio, 0.0);
    for policy in ["lru", "first-touch"] {
        assert!(of(policy).hit_ratio <= of("belady").hit_ratio, "{policy}");
        assert!(of("belady").slowdown < of(policy).slowdown && of(policy).slowdown < of("all-slow").slowdown);
    }
    assert!(of("belady").simulated <= 3, "a placement is known after two rounds");
    assert!(of("belady").pays_back_ns.is_none(), "no machine runs it");
}

#[test]
fn long_runs_are_deterministic_on_any_number_of_threads() {
    let input = hot_at_the_end();
    let runs = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let names = ["freqtier", "lru", "first-touch", "oracle"];
        let runs = pool.install(|| long_runs(&input, &names, Length::Rounds(20), 16_000.0));
        let runs = runs.into_iter().map(|run| RunResult { wall_s: 0.0, ..run });
        format!("{:?}", runs.collect::<Vec<_>>())
    };
    assert_eq!(runs(1), runs(3));
}
