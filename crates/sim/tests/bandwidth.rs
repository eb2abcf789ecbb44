//! Programs that the fast tier's bandwidth limits: weighted interleaving against first touch, and the closed
//! form of the best split against every other.

mod support;

use std::ops::ControlFlow;

use isotherm_core::{PageSize, best_shares};
use isotherm_machine::Profile;
use isotherm_sim::{Input, load_workload};
use support::run;

/// Reads of as many threads as the default machine has cores, at most `MISSES` of them.
const THREADS: &str = "52";
const MISSES: u64 = 600_000;
/// Splits into at most so many parts are tried: every share of pages to less than 5 %.
const PARTS: u32 = 21;

fn reads(pattern: &str) -> Input {
    let masim = isotherm_workloads::find("masim").expect("a known workload");
    let mut parameters = masim.parameters();
    let settings = [("pattern", pattern), ("threads", THREADS), ("footprint", "8M"), ("operations", "1M")];
    for (key, value) in settings {
        parameters.set(key, value).expect("a valid parameter");
    }
    let mut progress = |_| ControlFlow::Continue(());
    load_workload(masim, parameters, PageSize::Base, 1, MISSES, &mut progress).expect("it loads").input
}

fn machine() -> Profile {
    Profile::builtin("sapphire-rapids").expect("built in")
}

/// Returns the time of each split of at most [`PARTS`] parts, by the parts that are fast and slow.
fn times(input: &Input) -> Vec<([u32; 2], f64)> {
    let splits: Vec<[u32; 2]> = (0..=PARTS)
        .flat_map(|fast| (0..=PARTS - fast).map(move |slow| [fast, slow]))
        .filter(|&[fast, slow]| gcd(fast, slow) == 1)
        .collect();
    let policies: Vec<String> = splits.iter().map(weighted).collect();
    let policies: Vec<&str> = policies.iter().map(String::as_str).collect();
    let runs = run(input, &machine(), &policies, &["100%"], 1.0).runs;
    splits.into_iter().zip(runs.iter().map(|run| run.modelled_ns.0 as f64)).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn weighted([fast, slow]: &[u32; 2]) -> String {
    format!("weighted-interleave:tier_0={fast},tier_1={slow}")
}

#[test]
fn the_closed_form_is_within_three_percent_of_the_best_split() {
    let profile = machine();
    let bandwidths: Vec<f64> = profile.tiers.iter().map(|tier| tier.read_bandwidth as f64).collect();
    let share = best_shares(f64::INFINITY, &bandwidths)[0];
    for pattern in ["sequential", "random"] {
        let input = reads(pattern);
        let times = times(&input);
        let ([fast, slow], best) = times.iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("splits");
        let runs = run(&input, &profile, &["weighted-interleave", "first-touch"], &["100%"], 1.0).runs;
        let (closed, first_touch) = (&runs[0], runs[1].modelled_ns.0 as f64);
        let time = closed.modelled_ns.0 as f64;
        println!(
            "{pattern}: closed form {:.1} % fast, {:.2} % slower than {fast}:{slow}, the best of {}; {:.1} % \
             faster than first touch",
            100.0 * share,
            100.0 * (time / best - 1.0),
            times.len(),
            100.0 * (first_touch / time - 1.0),
        );
        assert!((closed.hit_ratio - share).abs() < 0.02, "{}", closed.hit_ratio);
        assert!(time < 1.03 * best, "{pattern}: {time} against {best}");
        assert!(
            first_touch > 1.05 * time,
            "{pattern}: first touch takes {first_touch}, not more than {time}"
        );
    }
}
