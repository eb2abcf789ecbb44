//! A planted program with known hot pages under Isotherm's policies and the kernel's tiering: compares hit
//! ratios by the plugin's count of misses with the closed form. Policies have their papers' settings, scaled
//! to the program.

use isotherm_core::MOVED_AT_ONCE;
use isotherm_lab::measured::Measured;
use serde_json::Value;

use crate::support::{Lab, target};

pub(crate) const PAGE_LINES: f64 = 64.0;
/// Pages of the program's memory, hot pages, and pages that fit on the fast node.
pub(crate) const PAGES: f64 = 65_536.0;
pub(crate) const HOT: f64 = 8_192.0;
pub(crate) const FAST: f64 = 16_384.0;
/// Share of accesses to hot pages.
pub(crate) const SHARE: f64 = 0.9;
/// Lines of the modelled last-level cache: 2 MiB.
const CACHE: f64 = 32_768.0;
/// Maximum distance of a policy from the closed form.
pub(crate) const NEAR: f64 = 0.03;

pub(crate) const PROGRAM: [&str; 11] = [
    "planted",
    "--size",
    "256M",
    "--hot",
    "12.5%",
    "--operations",
    OPERATIONS,
    "--move-after",
    MOVE,
    "--share",
    "90%",
];
/// FreqTier's paper halves its counters after 10 samples per page of the fast tier: 20M operations take about
/// two thirds of that at its 100,000 samples a second of modelled time. Behind the move lie twice as many:
/// what was hot has to age first.
const OPERATIONS: &str = "60000000";
const MOVE: &str = "20000000";

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Hit ratios: while memory is filled and not yet tiered; when it is filled; before other pages become
    /// hot; at the end.
    pub(crate) filling: f64,
    pub(crate) before: f64,
    pub(crate) after: f64,
    pub(crate) moved: f64,
    pub(crate) run: Value,
}

/// A machine with instructions as its clock: results do not depend on the host's load.
const BY_INSTRUCTIONS: &str = "deterministic";

/// Returns a count of the moves that an engine asked the kernel for.
fn of_kernel(run: &Value, what: &str) -> u64 {
    run["counts"]["moves"]["syscall-or-cpuset"][what].as_u64().unwrap_or(0)
}

/// Returns the pages that the engine moved, by the engine's count and by the kernel's.
pub(crate) fn moves(run: &Value) -> (u64, u64) {
    let traffic = |what: &str| run["engine"]["traffic"][what].as_u64().expect("a number");
    (traffic("promotions") + traffic("demotions"), of_kernel(run, "succeeded"))
}

/// Checks that more than `least` pages moved, by the kernel's count as by the engine's; returns that.
///
/// The kernel counts a page as moved that the program frees meanwhile, as at its end; the engine finds it
/// gone.
pub(crate) fn check_moves(run: &Value, least: u64) -> u64 {
    check_moves_of(run, least, 1)
}

/// Checks the same where a page that is gone may have had so many base pages.
pub(crate) fn check_moves_of(run: &Value, least: u64, size: u64) -> u64 {
    let (engine, kernel) = moves(run);
    let gone = run["engine"]["traffic"]["refused"]["gone"].as_u64().expect("a number");
    eprintln!("the engine has moved {engine} pages and found {gone} gone, the kernel has moved {kernel}");
    assert!(
        engine > least && (engine..=engine + gone * size).contains(&kernel),
        "the counts of moves differ"
    );
    engine
}

fn number_of(program: &[&str], option: &str) -> f64 {
    let place = program.iter().position(|word| *word == option).expect("an option");
    program[place + 1].parse().expect("a number")
}

/// Runs a program of [`PAGES`] whose hot pages change once.
pub(crate) fn run(lab: &Lab, machine: &str, tiering: &[&str], program: &[&str]) -> Outcome {
    run_of(lab, machine, tiering, program, (PAGES, "64M"))
}

/// Runs one of so many pages with so much fast memory.
fn run_of(
    lab: &Lab,
    machine: &str,
    tiering: &[&str],
    program: &[&str],
    (pages, fast): (f64, &str),
) -> Outcome {
    let options = ["--machine", machine, "--fast", fast, "--json", "--time-limit", "8min"];
    let command: Vec<String> =
        std::iter::once(target()).chain(program.iter().map(|word| (*word).into())).collect();
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let guest = lab.run(&[tiering, &options].concat(), &words);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    let line = guest.err.lines().last().expect("our result");
    let result: Value = serde_json::from_str(line).expect("JSON");
    let run = result["runs"][0].clone();
    let measured: Measured =
        serde_json::from_value(run["measured"].clone()).expect("what the plugin counted");
    // The program fills, accesses and checks its memory: filling and checking miss once per line.
    let whole = pages * PAGE_LINES / measured.misses() as f64;
    let part = |from: f64, to: f64| {
        let at = |share: f64| whole + share * (1.0 - 2.0 * whole);
        measured.history.hit_ratio(at(from), at(to)).expect("a history")
    };
    let filling = measured.history.hit_ratio(0.1 * whole, 0.9 * whole).expect("a history");
    let unmoved = number_of(program, "--move-after") / number_of(program, "--operations");
    let (before, after, moved) = (part(0.0, 0.02), part(0.84 * unmoved, 0.98 * unmoved), part(0.94, 0.99));
    let outcome = Outcome { filling, before, after, moved, run };
    let tiering = outcome.run["tiering"].as_str().unwrap_or_default();
    eprintln!(
        "{tiering}: hit ratio {:.3} while filling, {:.3} before, {:.3} after, {:.3} after the move; {} s",
        outcome.filling, outcome.before, outcome.after, outcome.moved, outcome.run["elapsed_seconds"]
    );
    outcome
}

/// Pages of the program's lists of pages.
const LISTS: f64 = PAGES * 4.0 / 4096.0;

/// Returns the fast node's share of misses if it holds all hot pages and as many others as fit.
pub(crate) fn closed_form() -> f64 {
    let [hot, hot_list, cold_list, cold] = misses(PAGES, HOT);
    let room = FAST - HOT - LISTS;
    (hot + hot_list + cold_list + cold * room / (PAGES - HOT)) / misses(PAGES, HOT).iter().sum::<f64>()
}

/// Returns the same share if the node holds this many pages that were placed first: an equal part of the
/// scattered hot and cold ones. The lists that are read were made when it was full; the originals, of two
/// phases, were placed before.
fn closed_form_of_first_touch(fast: f64) -> f64 {
    let [hot, .., cold] = misses(PAGES, HOT);
    (hot + cold) * (fast - 2.0 * LISTS) / PAGES / misses(PAGES, HOT).iter().sum::<f64>()
}

/// Returns the most pages of the program on the fast node by the kernel's count; files that it reads lie
/// there, too.
fn pages_on_the_fast_node(run: &Value) -> f64 {
    let moments = run["residence"].as_array().expect("moments").iter();
    let bytes = moments.filter_map(|moment| moment["node_bytes"][0].as_f64()).fold(0.0, f64::max);
    bytes / 4096.0
}

/// Returns the misses per access of hot pages, of the lists of hot and cold ones, and of cold pages. The
/// program's lists of pages (4 bytes each) are accessed once per page.
fn misses(pages: f64, hot: f64) -> [f64; 4] {
    let cold = pages - hot;
    misses_of([
        (hot * PAGE_LINES, SHARE),
        (hot * 4.0 / 64.0, SHARE),
        (cold * 4.0 / 64.0, 1.0 - SHARE),
        (cold * PAGE_LINES, 1.0 - SHARE),
    ])
}

/// Returns the misses per operation for classes given by their lines and accesses per operation.
///
/// Uses Che's approximation of LRU (Che, Tung, Wang 2002): lines of class i, each accessed at a rate r_i, are
/// in the cache with probability 1 - exp(-r_i t), where t fills the cache.
pub(crate) fn misses_of<const N: usize>(classes: [(f64, f64); N]) -> [f64; N] {
    let held = |time: f64| -> f64 {
        classes.iter().map(|(lines, share)| lines * (1.0 - (-share / lines * time).exp())).sum()
    };
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if held(middle) < CACHE { low = middle } else { high = middle }
    }
    classes.map(|(lines, share)| share * (-share / lines * low).exp())
}

/// Checks that a policy reaches the closed form, again when other pages are hot, and that the kernel's count
/// of moves equals the engine's.
fn check_policy(lab: &Lab, policy: &str, way: &[&str]) {
    let outcome =
        run(lab, BY_INSTRUCTIONS, &[&["--policy", policy, "--start", "slow"], way].concat(), &PROGRAM);
    let (moved, batches) = (of_kernel(&outcome.run, "succeeded"), of_kernel(&outcome.run, "batches"));
    let (together, most) = (moved as f64 / batches as f64, MOVED_AT_ONCE as f64);
    assert!((most / 2.0..=most).contains(&together), "{policy}: the kernel moves {together} pages at once");
    let expected = closed_form();
    let factor = |name: &str| outcome.run["engine"][name].as_f64().expect("a factor");
    assert!((factor("scale") / factor("time_scale") - 16.0).abs() < 0.2, "{policy}: one thread of sixteen");
    // All memory starts there. The time until the first pages leave is printed, not tested.
    assert!(outcome.filling < NEAR, "{policy}: memory starts on the slow node: {:.3}", outcome.filling);
    for (ratio, when) in [(outcome.after, "before the move"), (outcome.moved, "after it")] {
        assert!((ratio - expected).abs() < NEAR, "{policy}: {ratio:.3} {when}, expected {expected:.3}");
    }
    check_moves(&outcome.run, 0);
}

#[test]
fn the_closed_form_is_that_of_a_cache_without_lines_where_there_is_none() {
    // Without a cache: the hot share, half of all accesses to the lists, and the room for cold pages.
    assert!((0.89..0.92).contains(&closed_form()), "{}", closed_form());
}

#[test]
fn first_touch_has_what_fits_and_nothing_moves_without_tiering() {
    let Some(lab) = Lab::find_all() else { return };
    // The guest's files take the fast node's memory beside the program's part.
    let Outcome { before, after, moved, run, .. } =
        run(&lab, "small", &["--kernel-tiering", "none"], &PROGRAM);
    let fast = pages_on_the_fast_node(&run);
    // Files may have taken part of it, and the kernel may have dropped earlier ones.
    assert!(fast > FAST / 2.0 && fast < 1.1 * FAST, "{fast} pages");
    let expected = closed_form_of_first_touch(fast);
    for ratio in [before, after, moved] {
        assert!((ratio - expected).abs() < NEAR, "{ratio:.3}, expected {expected:.3}");
    }
    assert_eq!(run["counts"]["promoted"].as_u64(), Some(0));
}

#[test]
fn freqtier_comes_to_the_closed_form_and_back_to_it() {
    let Some(lab) = Lab::find_all() else { return };
    check_policy(&lab, "freqtier", &[]);
}

#[test]
fn hybridtier_comes_to_the_closed_form_and_back_to_it() {
    let Some(lab) = Lab::find_all() else { return };
    // 60 batches are too few to count three samples of many of so many hot pages: it would stop sampling.
    check_policy(&lab, "hybridtier", &["--set", "hybridtier.plateau_start=1000000"]);
}

/// Isotherm moves what pays: all hot pages and none of the cold ones, though there is room for as many again.
/// A quarter of the others' memory, as half a percent of the time pays for few samples.
#[test]
fn isotherm_comes_to_all_hot_pages_and_back_to_them() {
    let Some(lab) = Lab::find_all() else { return };
    let (pages, hot) = (PAGES / 4.0, HOT / 4.0);
    let program: Vec<&str> = "planted --size 64M --hot 12.5% --operations 150000000 --move-after 80000000 \
                              --share 90%"
        .split_whitespace()
        .collect();
    let tiering = ["--policy", "isotherm", "--start", "slow"];
    let outcome = run_of(&lab, BY_INSTRUCTIONS, &tiering, &program, (pages, "16M"));
    let all = misses(pages, hot);
    let expected = (all[0] + all[1]) / all.iter().sum::<f64>();
    for (ratio, when) in [(outcome.after, "before the move"), (outcome.moved, "after it")] {
        assert!((ratio - expected).abs() < NEAR, "{ratio:.3} {when}, expected {expected:.3}");
    }
    assert!(check_moves(&outcome.run, hot as u64) < 6 * hot as u64, "two hot sets, there and back");
}

/// Free pages on processors' lists were not counted: a program had up to 26 % more than asked for, under an
/// engine most. NUMA balancing demoted files of the lab, and the program had their 2 MiB.
#[test]
fn regression_a_program_has_the_fast_memory_that_was_asked_for_under_every_tiering() {
    let Some(_) = Lab::find() else { return };
    let tierings = ["--machine", BY_INSTRUCTIONS, "--kernel", "none,numab", "--policies", "isotherm"];
    let program = [&target(), "planted", "--size", "48M", "--operations", "12000000"];
    let guests = Lab::verb("compare", &[&tierings[..], &["--fast", "16M", "--json"]].concat(), &program, &[]);
    assert_eq!(guests.code, Some(0), "{}", guests.err);
    let result: Value =
        serde_json::from_str(guests.err.trim_end().lines().last().expect("a result")).expect("JSON");
    for run in result["runs"].as_array().expect("runs") {
        let moments = run["residence"].as_array().expect("moments");
        let most = moments.iter().filter_map(|moment| moment["node_bytes"][0].as_u64()).max();
        let share = most.expect("one") as f64 / f64::from(16 << 20);
        eprintln!("{} {share:.3}", run["tiering"]);
        assert!((0.9..1.01).contains(&share), "{}: {share:.3}", run["tiering"]);
    }
}

#[test]
fn an_engine_inside_of_the_program_comes_there_too() {
    let Some(lab) = Lab::find() else { return };
    check_policy(&lab, "freqtier", &["--inside"]);
}

#[test]
fn the_kernels_tiering_moves_the_hot_pages() {
    let Some(lab) = Lab::find_all() else { return };
    let numab = run(&lab, BY_INSTRUCTIONS, &["--kernel-tiering", "numab", "--start", "slow"], &PROGRAM);
    let promoted = numab.run["counts"]["promoted"].as_u64().unwrap_or(0);
    assert!(promoted > 1000 && numab.filling < NEAR, "{promoted} {numab:?}");
    // The progress depends on the guest's clock, of which a slow program has more: it is printed, not tested.
    assert!(numab.after > numab.filling + NEAR, "{numab:?}");
}
