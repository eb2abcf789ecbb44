//! Isotherm never harms: inputs written against it, each against first-touch. And it helps where it can.

mod support;

use isotherm_core::parameters::Scale;
use isotherm_machine::Profile;
use isotherm_sim::{Experiment, FastSize, INTERVALS, RunResult, simulate};
use support::{input, numbers, stream};

const PAGES: u32 = 2048;
const ACCESSES: u32 = 1_000_000;
const HOT: u32 = PAGES / 10;

/// Replays page numbers behind a first touch of all pages in order; returns the runs of `isotherm` and
/// `first-touch`, with a ninth of the memory fast.
fn runs(accesses: u32, page: impl FnMut(u32) -> u32, dependence: u8) -> [RunResult; 2] {
    let profile = Profile::builtin("sapphire-rapids").expect("built in");
    runs_on(&profile, accesses, page, dependence)
}

fn runs_on(profile: &Profile, accesses: u32, page: impl FnMut(u32) -> u32, dependence: u8) -> [RunResult; 2] {
    let pages = (0..PAGES).chain((0..accesses).map(page));
    let input = input(stream(pages, PAGES, 20, dependence));
    let policy = |name| {
        let entry = isotherm_policies::find(name).expect("a known policy");
        (entry, entry.parameters())
    };
    let experiment = Experiment {
        policies: vec![policy("isotherm"), policy("first-touch")],
        sizes: vec![FastSize::parse("1:8").expect("a size")],
        profile,
        seed: 1,
        scale: Scale { footprint: 1.0, time: 1.0 },
        intervals: INTERVALS,
        version: "test",
        stop: None,
    };
    let runs = simulate(&input, &experiment, &|| ()).expect("a valid experiment").runs;
    runs.try_into().expect("two policies")
}

/// Returns how much longer the program runs than under first-touch: 0.01 is 1 %.
fn harm([isotherm, first_touch]: &[RunResult; 2]) -> f64 {
    isotherm.modelled_ns.0 as f64 / first_touch.modelled_ns.0 as f64 - 1.0
}

/// Nine of ten accesses go to a hot set that is elsewhere in each phase of so many accesses.
fn phases(length: u32) -> impl FnMut(u32) -> u32 {
    let (mut random, sets) = (numbers(5, 1 << 30), PAGES / HOT);
    move |index| match random() {
        any if any % 10 == 0 => any / 10 % PAGES,
        any => (index / length * 7 % sets) * HOT + any / 10 % HOT,
    }
}

#[test]
fn never_harms() {
    let mut random = numbers(7, 1 << 30);
    let mut uniform = move |_: u32| random() % PAGES;
    let mut random = numbers(8, 1 << 30);
    let mut burst = move |index: u32| (index / 40).wrapping_mul(2_654_435_761) % PAGES + random() % 2 % PAGES;
    let mut random = numbers(9, 1 << 30);
    let mut first_is_best =
        move |_: u32| if !random().is_multiple_of(10) { random() % HOT } else { random() % PAGES };
    let mut random = numbers(10, 1 << 30);
    let mut decoys = move |index: u32| match random() % 10 {
        // Pages that are hot until they have been sampled often enough to be moved.
        0..5 => PAGES - 1 - (index / 3000 * 8 + random() % 8) % (PAGES / 2),
        _ => random() % HOT,
    };
    let scan = |repeats: u32| move |index: u32| index / repeats % PAGES;
    let alternating = |length: u32| {
        let mut random = numbers(11, 1 << 30);
        move |index: u32| PAGES / 2 + index / length % 2 * HOT + random() % HOT
    };
    let mut random = numbers(12, 1 << 30);
    let mut sliding = move |index: u32| (index / 100 + random() % HOT) % PAGES;
    let inputs: [(&str, &mut dyn FnMut(u32) -> u32); 16] = [
        ("uniform", &mut uniform),
        ("bursts", &mut |index| burst(index).min(PAGES - 1)),
        ("first touch is best", &mut first_is_best),
        ("decoys", &mut decoys),
        ("scan, a line a page", &mut scan(1)),
        ("scan, 64 lines a page", &mut scan(64)),
        ("alternating, quickly", &mut alternating(2_000)),
        ("alternating, slowly", &mut alternating(60_000)),
        ("a sliding window", &mut sliding),
        ("phases of 1,000", &mut phases(1_000)),
        ("phases of 4,000", &mut phases(4_000)),
        ("phases of 16,000", &mut phases(16_000)),
        ("phases of 40,000", &mut phases(40_000)),
        ("phases of 100,000", &mut phases(100_000)),
        ("phases of 250,000", &mut phases(250_000)),
        ("phases of 500,000", &mut phases(500_000)),
    ];
    let mut harmed = Vec::new();
    for (name, page) in inputs {
        for dependence in [0, 1] {
            let runs = runs(ACCESSES, &mut *page, dependence);
            println!("{name}, {dependence}: {:+.2} %, {} promoted", 100.0 * harm(&runs), runs[0].promotions);
            if harm(&runs) > 0.01 {
                harmed.push((name, dependence, harm(&runs)));
            }
        }
    }
    assert!(harmed.is_empty(), "more than 1 % slower than first-touch: {harmed:?}");
}

/// Nine of ten accesses go to the pages that were touched last.
fn at_the_end() -> impl FnMut(u32) -> u32 {
    let mut random = numbers(5, 1 << 30);
    move |_| match random() {
        any if any % 10 == 0 => any / 10 % PAGES,
        any => PAGES - 1 - any / 10 % HOT,
    }
}

/// The tiering thread's time counted as the program's although a core was free for it: with samples of 3 ns
/// all that may be spent went into counting them, and nothing moved.
#[test]
fn regression_deciding_on_a_free_core_does_not_keep_pages_from_moving() {
    let mut profile = Profile::builtin("sapphire-rapids").expect("built in");
    profile.costs.buffered_sample = isotherm_core::Nanos(3);
    let harm = harm(&runs_on(&profile, 4 * ACCESSES, at_the_end(), 1));
    assert!(harm < -0.15, "{harm}");
}

/// A tenth of the pages take nine of ten accesses. Independent accesses wait together, and those left to slow
/// pages wait alone: by these, half as much again would be saved as really is.
#[test]
fn a_misplaced_hot_set_is_found_and_the_books_show_what_it_saves() {
    for dependence in [0, 1] {
        let runs = runs(8 * ACCESSES, at_the_end(), dependence);
        let saved = -harm(&runs);
        assert!(saved > 0.15, "{saved}");
        let gauges = &runs[0].timeline.last().expect("intervals").gauges;
        let gauge = |name: &str| gauges[name] / 100.0;
        let (gross, spent) = (gauge("saved-percent"), gauge("spent-percent"));
        let booked = gross - spent;
        // The books' share is of the time that the program took.
        let really = saved / (1.0 - saved);
        eprintln!("dependence {dependence}: saved {really:.3}, by the books {booked:.3}");
        assert!((0.7..1.4).contains(&(booked / really)), "{booked} of {really}");
        assert!(spent < 0.005 + gross / 2.0, "{spent}");
    }
}
