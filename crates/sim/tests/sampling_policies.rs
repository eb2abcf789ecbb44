//! Policies that use PMU samples: each finds a stable hot set in slow memory.

mod support;

use support::{input, numbers, plain_machine, run, stream};

const PAGES: u32 = 4096;
const HOT: u32 = 400;
const ACCESSES: u32 = 6_000_000;
const SCALE: f64 = 1000.0;
/// Share of accesses that go to any page.
const EVEN: f64 = 0.1;
/// The fast tier's share of the pages.
const FAST: f64 = 0.2;

/// Sends 90 % of accesses to 400 pages at the end of the address space, 10 % to all; the first pass allocates
/// in order.
fn hot_set(policy: &str) -> isotherm_sim::RunResult {
    hot_set_on(&plain_machine(), policy)
}

fn hot_set_on(machine: &isotherm_machine::Profile, policy: &str) -> isotherm_sim::RunResult {
    let mut random = numbers(7, 1 << 30);
    let mut draw =
        move || if random().is_multiple_of(10) { random() % PAGES } else { PAGES - 1 - random() % HOT };
    let pages = (0..PAGES).chain((0..ACCESSES).map(|_| draw()));
    let accesses = stream(pages.collect::<Vec<_>>(), PAGES, 20, 1);
    run(&input(accesses), machine, &[policy], &["20%"], SCALE).runs.remove(0)
}

/// Returns the best hit ratio: always for the hot set, and the fast tier's share for the other accesses.
fn best() -> f64 {
    1.0 - EVEN + EVEN * FAST
}

#[test]
fn first_touch_leaves_the_hot_set_slow() {
    assert!(hot_set("first-touch").final_hit_ratio < EVEN * FAST + 0.01);
}

#[test]
fn memtis_finds_a_stable_hot_set() {
    let found = hot_set("memtis");
    assert!(found.final_hit_ratio > best() - 0.02, "{}", found.final_hit_ratio);
}

#[test]
fn memtis_with_ranges_of_2_mib_finds_it_too() {
    // The hot set lies in the last range, which alone is hotter than the others.
    let found = hot_set("memtis:huge_pages=true");
    assert!(found.final_hit_ratio > best() - 0.05, "{}", found.final_hit_ratio);
}

#[test]
fn quick_cooling_finds_most_of_it() {
    let found = hot_set("memtis-qc");
    assert!(found.final_hit_ratio > best() - 0.1, "{}", found.final_hit_ratio);
}

#[test]
fn pact_finds_most_of_it() {
    // A chain: every load costs the same, so PAC is frequency. The kernel's clock, which knows no heat,
    // demotes.
    let found = hot_set("pact");
    assert!(found.final_hit_ratio > best() - 0.15 && found.promotions > 300, "{}", found.final_hit_ratio);
}

#[test]
fn hemem_finds_it_where_its_period_gives_pages_enough_samples() {
    // At its own period, 6 M accesses would give 300 samples: less than one per hot page, of which it needs
    // four.
    let found = hot_set("hemem:sampling_period=499");
    assert!(found.final_hit_ratio > best() - 0.05, "{}", found.final_hit_ratio);
}

#[test]
fn pmu_sampling_finds_it_while_the_kernel_demotes() {
    let found = hot_set("pmu-sampling:sampling_period=200");
    assert!(found.final_hit_ratio > 0.5, "{}", found.final_hit_ratio);
    assert!(found.charges.reclaiming.0 > 0 && found.demotions > 0);
}

#[test]
fn samples_are_lost_to_moves_only_where_one_thread_does_both() {
    let mut machine = plain_machine();
    for (path, value) in [("costs.move_page", "1ms"), ("costs.ring_samples", "1024")] {
        machine.set(path, value).expect("a cost");
    }
    let lost = |policy: &str| {
        let run = hot_set_on(&machine, policy);
        assert!(run.promotions > 100, "{policy}: {}", run.promotions);
        run.samples_lost as f64 / (run.samples + run.samples_lost) as f64
    };
    assert!(lost("lru:sampling_period=20") > 0.1);
    for policy in ["memtis:shortest_period=20", "hemem:sampling_period=20", "pact:sampling_period=20"] {
        assert_eq!(lost(policy), 0.0, "{policy}");
    }
}
