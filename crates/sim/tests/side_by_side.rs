//! Programs side by side on one fast tier, with and without an allocator.

mod support;

use isotherm_core::parameters::Scale;
use isotherm_core::{Nanos, Pages};
use isotherm_machine::Profile;
use isotherm_shares::jain;
use isotherm_sim::{Input, Program, Share, Shared, Sharing, side_by_side};
use support::{input, numbers, stream};

const PAGES: u32 = 2048;
const HOT: u32 = PAGES / 8;

/// Returns a program of which nine of ten accesses go to an eighth of its memory, which it touches last.
fn stable(seed: u64, accesses: u32) -> Input {
    let mut random = numbers(seed, 1 << 30);
    let page = move |_| match random() {
        any if any % 10 == 0 => any / 10 % PAGES,
        any => PAGES - HOT + any / 10 % HOT,
    };
    input(stream((0..PAGES).chain((0..accesses).map(page)), PAGES, 20, 0))
}

/// Returns a program that goes through four times as much memory again and again: no page is worth a move.
fn thrashing(accesses: u32) -> Input {
    let mut random = numbers(9, 1 << 30);
    let page = move |index: u32| (index / 20 + random() % 64) % (4 * PAGES);
    input(stream((0..4 * PAGES).chain((0..accesses).map(page)), 4 * PAGES, 20, 0))
}

fn program(input: &Input) -> Program<'_> {
    Program { input, protect: Pages(0), limit: Pages(u64::MAX), weight: 1.0, start: 0 }
}

fn run(programs: &[Program<'_>], fast: u64, sharing: Sharing) -> Vec<Share> {
    let profile = Profile::builtin("sapphire-rapids").expect("built in");
    let shared = Shared {
        profile: &profile,
        fast: Pages(fast),
        interval: Nanos(Nanos::MILLISECOND.0),
        policy: isotherm_policies::find("freqtier").expect("a policy"),
        scale: Scale { footprint: 1000.0, time: 1000.0 },
        seed: 1,
    };
    side_by_side(programs, &shared, sharing).expect("a policy that the simulator runs")
}

/// Prints what the allocator is worth: `cargo test -p isotherm-sim --test side_by_side -- --nocapture`.
#[test]
fn a_stable_program_keeps_its_hits_beside_a_thrashing_one() {
    let (quiet, noisy) = (stable(1, 8_000_000), thrashing(8_000_000));
    let protect = Pages(u64::from(HOT) + 32);
    let alone = run(&[program(&quiet)], protect.0, Sharing::Fair);
    let protected = Program { protect, ..program(&quiet) };
    let kept = |sharing| {
        // The thrashing program has filled the fast memory before the stable one starts.
        let programs = [Program { start: 3, ..protected }, program(&noisy)];
        run(&programs, 2 * protect.0, sharing)[0].hit_ratio / alone[0].hit_ratio
    };
    let (with, without) = (kept(Sharing::Fair), kept(Sharing::FirstCome));
    println!("hit ratio beside a thrashing program, of the one alone: {with:.3} with, {without:.3} without");
    assert!(with >= 0.95, "{with}");
    assert!(without < with - 0.2, "{without}: nothing to protect from");
}

#[test]
fn equal_programs_are_slowed_alike() {
    let inputs: Vec<Input> = (1..=4).map(|seed| stable(seed, 8_000_000)).collect();
    let programs: Vec<Program<'_>> =
        inputs.iter().zip(0..).map(|(input, start)| Program { start: 4 * start, ..program(input) }).collect();
    let index = |sharing| {
        let shares = run(&programs, u64::from(2 * HOT), sharing);
        let of = |value: fn(&Share) -> f64| jain(&shares.iter().map(value).collect::<Vec<_>>());
        [of(|share| share.slowdown), of(|share| share.hit_ratio)]
    };
    let (with, without) = (index(Sharing::Fair), index(Sharing::FirstCome));
    println!("Jain's index of slowdowns: {:.4} with, {:.4} without", with[0], without[0]);
    println!("Jain's index of hit ratios: {:.4} with, {:.4} without", with[1], without[1]);
    assert!(with.iter().all(|&index| index >= 0.95), "{with:?}");
    // Slowdowns differ less than hits: the first program loses by its moves what it gains by its memory.
    assert!(without[1] < with[1] - 0.1, "{without:?}");
}

#[test]
fn a_limit_holds_and_the_same_input_gives_the_same_result() {
    let inputs = [stable(1, 300_000), stable(2, 300_000)];
    let limited = Program { limit: Pages(100), ..program(&inputs[0]) };
    let programs = [limited, program(&inputs[1])];
    let first = run(&programs, 1000, Sharing::Fair);
    assert!(first[0].fast.iter().all(|&share| share <= Pages(100)), "{:?}", first[0].fast);
    assert!(first[0].hit_ratio < first[1].hit_ratio);
    assert_eq!(first, run(&programs, 1000, Sharing::Fair));
}
