//! A tier of compressed pages behind memory: faults, room and costs.

mod support;

use isotherm_machine::Profile;
use isotherm_sim::{CompressedShares, Report, RunResult, Stream};
use support::{input, numbers, run, stream};

const PAGES: u32 = 4096;
const HOT: u32 = 512;

/// Touches all pages once, and then hot ones, one access in `cold_in` to any page.
fn hot_and_cold(accesses: u32, cold_in: u32) -> Stream {
    let mut random = numbers(7, 1 << 30);
    let page = move |_| if random().is_multiple_of(cold_in) { random() % PAGES } else { random() % HOT };
    stream((0..PAGES).chain((0..accesses).map(page)), PAGES, 20, 2)
}

/// Replays with an eighth of the pages fast, and five eighths in the middle unless the machine says more.
fn replayed(stream: Stream, machine: &Profile, policies: &[&str]) -> Report {
    run(&input(stream), machine, policies, &["12.5%"], 100.0)
}

fn zswap() -> Profile {
    Profile::builtin("zswap").expect("it comes with Isotherm")
}

fn placed(run: &RunResult, tier: u8) -> u64 {
    run.page_tiers.iter().filter(|&&place| place == tier).count() as u64
}

#[test]
fn cold_pages_are_compressed_and_come_back_by_a_fault() {
    let machine = zswap();
    let report = replayed(hot_and_cold(400_000, 200), &machine, &["first-touch"]);
    let run = &report.runs[0];
    let stored = placed(run, 2);
    // Five eighths hold the store, too: a third of each page that compresses.
    assert!((u64::from(PAGES) / 4..u64::from(PAGES) / 2).contains(&stored), "{stored}");
    let ratio = (stored << 12) as f64 / run.stored_bytes.0 as f64;
    assert!((2.5..3.5).contains(&ratio), "{ratio}");
    // About 2,000 cold accesses, a third of them to stored pages.
    assert!((300..1500).contains(&run.swap_ins), "{}", run.swap_ins);
    assert_eq!(run.tier_accesses[2], 0, "nothing is accessed where it is stored");
    // A fault of 2 us with 4 KiB at 1550 MB/s, a page compressed for it, and before for each stored.
    let (fault, compressed) = (2000 + 4096 * 1000 / 1550, 4096 * 1000 / 510);
    let least = run.swap_ins * (fault + compressed);
    assert!((least..3 * least).contains(&run.charges.swapping.0), "{least} {:?}", run.charges);
    assert_eq!(run.charges.reclaiming.0 + run.charges.shootdowns.0, 0, "none of it is a policy's");
}

#[test]
fn memory_that_holds_all_compresses_nothing() {
    let mut machine = zswap();
    machine.set("tier.1.capacity", "16MiB").expect("a size");
    let report = replayed(hot_and_cold(100_000, 10), &machine, &["first-touch"]);
    let run = &report.runs[0];
    assert_eq!((run.swap_ins, run.stored_bytes.0, placed(run, 2)), (0, 0, 0));
}

#[test]
fn pages_that_do_not_compress_stay_in_memory() {
    let mut input = hot_and_cold(100_000, 10);
    let shares = |small| (0..PAGES).map(|page| if page % 2 == 0 { 255 } else { small }).collect();
    input.compressed_shares = CompressedShares { zstd: shares(32), lz4: shares(64) };
    let report = replayed(input, &zswap(), &["first-touch", "lru", "isotherm"]);
    for run in &report.runs {
        let mut stored = run.page_tiers.iter().enumerate().filter(|&(_, &tier)| tier == 2);
        assert!(stored.all(|(page, _)| page % 2 == 1), "{}", run.policy);
        assert!(run.swap_ins > 0, "{}", run.policy);
    }
}

#[test]
fn lz4_stores_less_in_the_same_memory_and_faults_take_less() {
    let mut input = hot_and_cold(200_000, 20);
    let shares = |small| vec![small; PAGES as usize];
    input.compressed_shares = CompressedShares { zstd: shares(64), lz4: shares(128) };
    let run_on = |machine: &str| {
        let machine = Profile::builtin(machine).expect("it comes with Isotherm");
        replayed(input.clone(), &machine, &["first-touch"]).runs.remove(0)
    };
    let (zstd, lz4) = (run_on("zswap"), run_on("zswap-lz4"));
    let ratio = |run: &RunResult| (placed(run, 2) << 12) as f64 / run.stored_bytes.0 as f64;
    assert!((ratio(&zstd) - 4.0).abs() < 0.3 && (ratio(&lz4) - 2.0).abs() < 0.1, "{zstd:?} {lz4:?}");
    assert!(placed(&lz4, 2) > placed(&zstd, 2), "what lz4 stores leaves less memory to the rest");
    let each = |run: &RunResult| run.charges.swapping.0 as f64 / run.swap_ins as f64;
    assert!(each(&lz4) < 0.7 * each(&zstd), "{} and {} ns a fault", each(&lz4), each(&zstd));
}

#[test]
fn policies_keep_hot_pages_fast_and_cold_ones_compressed() {
    let policies = ["first-touch", "isotherm", "memtis", "freqtier", "lru", "tpp"];
    // Hot pages are the last touched at first, and lie in the middle.
    let mut random = numbers(7, 1 << 30);
    let page = move |_| match random() % 500 {
        0 => random() % PAGES,
        _ => PAGES / 2 + random() % (HOT / 2),
    };
    let pages = (0..PAGES).chain((0..20_000_000).map(page));
    let report = run(&input(stream(pages, PAGES, 20, 2)), &zswap(), &policies, &["12.5%"], 1000.0);
    let first_touch = &report.runs[0];
    for run in &report.runs[1..] {
        assert!(run.slowdown < 0.9 * first_touch.slowdown, "{}: {}", run.policy, run.slowdown);
        let stored = placed(run, 2);
        assert!(stored > u64::from(PAGES) / 8, "{}: {stored}", run.policy);
    }
}
