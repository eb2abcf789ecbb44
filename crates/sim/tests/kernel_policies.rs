//! Policies that use hint faults, accessed bits and the kernel's LRU, against the properties of each.

mod support;

use isotherm_machine::Profile;
use isotherm_sim::{Kind, RunResult, Stream};
use support::{ENDLESS_TLB, input, machine, numbers, plain_machine, run, stream};

const PAGES: u32 = 4096;
const HOT: u32 = PAGES / 10;
const ALL: [&str; 7] = ["nbt", "tpp", "nomad", "colloid", "alto", "multi-clock", "pte-scan"];
/// The footprint of 16 MiB stands for 64 GB: a scan is 16 pages, and no scan is shorter than a block of the
/// replay.
const SCALE: f64 = 4096.0;

/// Touches every page once, so that first touch fills the fast tier in address order; then sends 90 % of
/// accesses to the last tenth of the pages and 10 % to all.
fn misplaced(accesses: u32) -> Stream {
    let mut random = numbers(3, 1 << 30);
    let mut draw =
        move || if random().is_multiple_of(10) { random() % PAGES } else { PAGES - 1 - random() % HOT };
    stream((0..PAGES).chain((0..accesses).map(|_| draw())), PAGES, 50, 0)
}

fn one(stream: Stream, profile: &Profile, policy: &str) -> RunResult {
    run(&input(stream), profile, &[policy], &["20%"], SCALE).runs.remove(0)
}

#[test]
fn each_finds_a_stable_hot_set_that_first_touch_misplaced() {
    let policies: Vec<&str> = ["first-touch"].into_iter().chain(ALL).collect();
    let runs = run(&input(misplaced(6_000_000)), &plain_machine(), &policies, &["20%"], SCALE).runs;
    let first_touch = &runs[0];
    for run in &runs[1..] {
        let (hits, before) = (run.final_hit_ratio, first_touch.final_hit_ratio);
        assert!(hits > 0.85, "{}: {hits} after {before}", run.policy);
        let used = run.timeline.last().expect("intervals").hits as f64;
        assert!(used > 0.0 && run.promotions >= u64::from(HOT) / 2, "{}", run.policy);
        assert!(run.metadata_bytes.0 < 64 * u64::from(PAGES), "{}: {}", run.policy, run.metadata_bytes);
    }
}

#[test]
fn what_works_in_the_program_delays_it_by_what_it_is_charged() {
    let costs = ["costs.fault", "costs.arm_page", "costs.move_page"];
    let with = |policy: &str, free: &[&str]| {
        let mut profile = plain_machine();
        profile.set("costs.copy_bandwidth", "1000GB/s").expect("a bandwidth");
        free.iter().for_each(|path| profile.set(path, "0ns").expect("a cost"));
        one(misplaced(1_000_000), &profile, policy)
    };
    let charged = |run: &RunResult| {
        let charges = &run.charges;
        let program =
            charges.shootdowns + charges.faulting + charges.scanning + charges.arming + charges.moving;
        (program + charges.tracking + charges.reclaiming).0 as f64
    };
    // Placement varies a little with the timing of moves: compare time less stalls.
    let overhead = |run: &RunResult| {
        let stalls: u64 = run.stall_ns.iter().map(|stall| stall.0).sum();
        run.modelled_ns.0 as f64 - stalls as f64
    };
    for policy in ["nbt", "tpp", "colloid"] {
        let full = with(policy, &[]);
        assert!(full.hint_faults > 1_000, "{policy}: {}", full.hint_faults);
        for cost in costs {
            let without = with(policy, &[cost]);
            let (saved, expected) =
                (overhead(&full) - overhead(&without), charged(&full) - charged(&without));
            let share = (saved / expected - 1.0).abs();
            assert!(
                share < 0.02 + 20_000.0 / expected,
                "{policy} without {cost}: {saved} ns against {expected} ns"
            );
        }
    }
}

#[test]
fn nomad_aborts_copies_of_pages_that_are_written_and_only_those() {
    // A third of all accesses go to the last page: several fall into the time of a copy.
    let aborted = |kind: Kind| {
        let mut stream = misplaced(4_000_000);
        for access in stream.accesses.iter_mut().skip(PAGES as usize).step_by(3) {
            (access.page, access.kind) = (PAGES - 1, kind);
        }
        let run = one(stream, &plain_machine(), "nomad");
        assert!(run.promotions > 0);
        run.failed_moves.busy
    };
    assert_eq!(aborted(Kind::LOAD), 0);
    assert!(aborted(Kind::STORE) >= 8, "{}", aborted(Kind::STORE));
}

#[test]
fn a_shadowed_page_is_demoted_without_a_copy() {
    // The hot set alternates, so that clean promoted pages are demoted.
    let mut random = numbers(5, 1 << 30);
    let phases = (0..3_000_000u32).map(|index| index / 500_000 % 6 * 600 + random() % 600);
    let moving = stream((0..PAGES).chain(phases), PAGES, 50, 0);
    let runs = run(&input(moving), &plain_machine(), &["nomad", "tpp"], &["20%"], SCALE).runs;
    let copied = |run: &RunResult| run.bytes_moved.0 >> 12;
    let moved = |run: &RunResult| run.promotions + run.demotions;
    let [nomad, tpp] = runs.as_slice() else { panic!("two runs") };
    assert_eq!(copied(tpp), moved(tpp));
    assert!(
        nomad.demotions > 500 && copied(nomad) + 300 < moved(nomad),
        "{} {}",
        copied(nomad),
        moved(nomad)
    );
    assert!(nomad.shadow_bytes.0 > 0 && tpp.shadow_bytes.0 == 0);
}

#[test]
fn colloid_leaves_hot_pages_in_the_slow_tier_while_the_fast_one_is_the_slower() {
    // Eight threads exceed the fast tier's bandwidth: its loaded latency is beyond the slow tier's.
    // Page tables would take as much of it as pages.
    let profile = machine(&[
        ENDLESS_TLB,
        ("core.cores", "8"),
        ("tier.0.read_bandwidth", "3GB/s"),
        ("tier.0.loaded_latency_factor", "6"),
        ("tier.1.read_bandwidth", "30GB/s"),
        ("costs.reserve", "0%"),
    ]);
    let mut busy = misplaced(4_000_000);
    busy.accesses.iter_mut().enumerate().for_each(|(index, access)| access.thread = (index % 8) as u16);
    busy.threads = 8;
    let runs = run(&input(busy), &profile, &["nbt", "colloid"], &["20%"], SCALE).runs;
    let [nbt, colloid] = runs.as_slice() else { panic!("two runs") };
    assert!(
        colloid.final_hit_ratio + 0.1 < nbt.final_hit_ratio,
        "{} {}",
        colloid.final_hit_ratio,
        nbt.final_hit_ratio
    );
    assert!(colloid.modelled_ns < nbt.modelled_ns, "{} {}", colloid.modelled_ns, nbt.modelled_ns);
    let shifts: Vec<f64> = colloid.timeline.iter().map(|interval| interval.gauges["shift"]).collect();
    assert!(shifts.iter().any(|&shift| shift > 0.0) && shifts.iter().any(|&shift| shift < 0.0), "both ways");
}
