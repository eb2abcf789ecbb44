//! Three tiers: policies and bounds place pages in all of them.

mod support;

use isotherm_machine::Profile;
use isotherm_policies::{ALL, Kind};
use isotherm_sim::{Report, RunResult};
use support::{input, numbers, run, stream};

const PAGES: u32 = 2048;
const ACCESSES: u32 = 2_000_000;
/// Pages of the fast tier, and of the middle one, which is as large.
const FAST: u32 = PAGES / 8;
/// Half of all accesses go to the last pages, four of ten to those before.
const HOT: u32 = 200;
const WARM: u32 = 200;

/// Returns the default machine with more CXL memory behind a switch.
fn machine() -> Profile {
    let text = r#"
        base = "sapphire-rapids"

        [[tier]]

        [[tier]]

        [[tier]]
        name = "far CXL"
        curve = { value = "e3s-cxl", source = "the test" }
        latency = { value = "500ns", source = "the test" }
    "#;
    Profile::parse(text, "three-tiers").expect("a valid machine")
}

fn replayed(policies: &[&str]) -> Report {
    sized(policies, &["12.5%"])
}

fn sized(policies: &[&str], sizes: &[&str]) -> Report {
    let mut random = numbers(3, 1 << 30);
    let page = move |_| match (random(), random() % 10) {
        (any, 0) => any % PAGES,
        (any, 1..=5) => PAGES - 1 - any % HOT,
        (any, _) => PAGES - 1 - HOT - any % WARM,
    };
    let pages = (0..PAGES).chain((0..ACCESSES).map(page));
    run(&input(stream(pages, PAGES, 20, 1)), &machine(), policies, sizes, 1000.0)
}

/// Returns how many of the pages from `first` on are in a tier at the end.
fn placed(run: &RunResult, first: u32, count: u32, tier: u8) -> usize {
    let pages = &run.page_tiers[first as usize..][..count as usize];
    pages.iter().filter(|&&place| place == tier).count()
}

/// Policies that move nothing here: two never do, and two want more samples of a page than there are.
const STILL: [&str; 4] = ["first-touch", "weighted-interleave", "hybridtier", "hemem"];

#[test]
fn every_policy_brings_hot_pages_to_both_faster_tiers_and_keeps_to_their_sizes() {
    let policies = ALL.iter().filter(|entry| matches!(entry.kind, Kind::Policy(_))).map(|entry| entry.name);
    let report = replayed(&policies.collect::<Vec<_>>());
    let first_touch = &report.runs[0];
    assert_eq!(first_touch.policy, "first-touch");
    for run in &report.runs {
        let name = &run.policy;
        let used = [0, 1].map(|tier| placed(run, 0, PAGES, tier));
        assert!(used.iter().all(|&pages| pages <= FAST as usize), "{name}: {used:?}");
        assert_eq!(run.tier_accesses.iter().sum::<u64>(), run.accesses, "{name}");
        if !STILL.contains(&name.as_str()) {
            let hot = [0, 1].map(|tier| placed(run, PAGES - HOT - WARM, HOT + WARM, tier));
            assert!(hot.iter().all(|&pages| pages > 100), "{name}: {hot:?}");
            assert!(run.slowdown < 0.65 * first_touch.slowdown, "{name}: {}", run.slowdown);
        }
    }
}

#[test]
fn a_size_may_name_the_tiers_in_the_middle() {
    let report = sized(&["first-touch", "lru"], &["1:2:5", "1:7", "1:0:7"]);
    let middle: Vec<usize> = report.runs.iter().map(|run| placed(run, 0, PAGES, 1)).collect();
    let fast = FAST as usize;
    // Tiers keep a reserve.
    let nearly = |pages: usize, size: usize| pages <= size && pages > size - size / 10;
    assert!(middle[..2].iter().all(|&pages| nearly(pages, 2 * fast)), "{middle:?}");
    assert!(middle[2..4].iter().all(|&pages| nearly(pages, fast)), "{middle:?}");
    assert_eq!(middle[4..], [0, 0]);
    assert!(report.runs.iter().all(|run| placed(run, 0, PAGES, 0) <= fast));
    assert_eq!(report.runs[0].fast, "1:2:5");
}

#[test]
fn bounds_fill_the_middle_tier_too() {
    let report = replayed(&["first-touch", "isotherm", "paying-oracle", "oracle", "belady"]);
    let slowdown = |name| report.runs.iter().find(|run| run.policy == name).expect("replayed").slowdown;
    for run in &report.runs[2..] {
        let [fast, middle, slow] = run.tier_accesses[..] else { panic!("three tiers") };
        assert!(fast > middle && middle > slow, "{}: {:?}", run.policy, run.tier_accesses);
    }
    let order = ["belady", "oracle", "paying-oracle", "isotherm", "first-touch"].map(slowdown);
    assert!(order.is_sorted(), "{order:?}");
    // Of what an oracle would gain, at least half.
    assert!(order[4] - order[3] > 0.5 * (order[4] - order[1]), "{order:?}");
}

#[test]
fn the_middle_tier_is_as_large_as_the_machine_says() {
    let mut machine = machine();
    machine.set("tier.1.capacity", "2MiB").expect("a size");
    let pages = (0..PAGES).chain(0..PAGES);
    let report = run(&input(stream(pages, PAGES, 20, 1)), &machine, &["first-touch"], &["12.5%"], 1.0);
    let used = [0, 1, 2].map(|tier| placed(&report.runs[0], 0, PAGES, tier));
    assert_eq!(used, [256, 512, 1280]);
}
