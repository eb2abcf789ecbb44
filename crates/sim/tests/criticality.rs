//! PACT against the core model: Equation 1 against stalls, PAC against the stall of each page, and the value
//! of the result.

mod support;

use std::ops::ControlFlow;

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_core::{Nanos, PageSize, TierId};
use isotherm_machine::Profile;
use isotherm_sim::{Access, Criticality, PageStall, Stream, load_workload, pearson, stall_window};
use support::{UNTHROTTLED, input, machine, numbers, stream};

const PAGES: u32 = 2048;
/// The second half of the pages is chased.
const CHASED: u32 = PAGES / 2;
/// Accesses of a phase: about ten windows of 20 ms / `SCALE`.
const PHASE: u32 = 40_000;
const SCALE: f64 = 200.0;

/// Alternates two phases: independent random accesses to the first half of the pages, and dependent accesses
/// to the second half. All pages are accessed equally often.
fn phases(count: u32) -> Stream {
    let mut random = numbers(11, 1 << 30);
    let mut accesses = stream(0..PAGES, PAGES, 20, 0);
    for phase in 0..count {
        let chased = phase % 2;
        accesses.accesses.extend((0..PHASE).map(|_| Access {
            page: chased * CHASED + random() % CHASED,
            instructions: 20,
            thread: 0,
            dependence: chased as u8,
            ..Access::default()
        }));
    }
    accesses
}

fn measured(stream: Stream, settings: &[(&str, &str)]) -> Vec<PageStall> {
    let [often, long] = UNTHROTTLED;
    let numbers = [often, long, ("costs.sample", "0ns"), ("core.cores", "4")];
    let (input, profile) = (input(stream), machine(&numbers));
    let scale = Scale { footprint: SCALE, time: SCALE };
    let bench = Criticality::new(&input, &profile, scale, 1).expect("two tiers");
    let mut pages = bench.truth(TierId(1), Nanos(100_000)).pages;
    let mut parameters: Parameters = isotherm_policies::find("pact").expect("it exists").parameters();
    settings.iter().for_each(|(key, value)| parameters.set(key, value).expect("in range"));
    bench.measure(&parameters, &mut pages).expect("the simulator has every signal");
    pages
}

fn rank_correlation(pages: &[PageStall]) -> f64 {
    PageStall::rank_correlation(pages).expect("both vary")
}

/// Returns the mean of a value over the streamed pages, and over the chased ones.
fn halves(pages: &[PageStall], value: impl Fn(&PageStall) -> f64) -> [f64; 2] {
    let (streamed, chased): (Vec<&PageStall>, Vec<&PageStall>) =
        pages.iter().partition(|page| page.page.0 < CHASED);
    [streamed, chased].map(|half| half.iter().map(|page| value(page)).sum::<f64>() / half.len() as f64)
}

/// Loads per sample that lose none: the tiering thread keeps up with the streaming phases.
const PERIOD: (&str, &str) = ("sampling_period", "8");

#[test]
fn pages_of_equal_frequency_separate_by_what_they_cost() {
    let pages = measured(phases(20), &[PERIOD]);
    let [streamed, chased] = halves(&pages, |page| page.stall.0 as f64);
    assert!(chased > 4.0 * streamed, "the model: {chased} against {streamed}");
    let pac = halves(&pages, |page| f64::from(page.pac));
    // Less far apart than they are: Equation 1 counts as stall what the reorder window hides of overlapping
    // misses.
    let ratio = (pac[1] / pac[0]) / (chased / streamed);
    assert!((0.5..1.1).contains(&ratio), "PAC: {pac:?}, true {streamed} {chased}");
    // Within a kind pages differ only by chance, so the ranks of each half are nearly random: 0.75 if they
    // were.
    let found = rank_correlation(&pages);
    assert!(found > 0.78, "{found}");
}

/// Negative control of the test above: counting the same samples tells nothing.
#[test]
fn counting_does_not_tell_pages_of_equal_frequency_apart() {
    let pages = measured(phases(20), &[PERIOD, ("score", "frequency")]);
    let [streamed, chased] = halves(&pages, |page| f64::from(page.loads));
    assert_eq!(streamed, chased, "the program reads both halves equally often");
    let [streamed, chased] = halves(&pages, |page| f64::from(page.pac));
    assert!((0.97..1.03).contains(&(chased / streamed)), "samples a page: {streamed} and {chased}");
    // A page that is read more often than another of its kind, by chance, also stalls for slightly longer.
    let found = rank_correlation(&pages);
    assert!(found.abs() < 0.2, "{found}");
}

/// Shows why counting seems as good as PAC where every load is sampled: streaming gives samples ten times as
/// fast as the tiering thread takes them, the ring loses them, and the remaining ones count time.
#[test]
fn samples_that_are_lost_make_counts_follow_time() {
    let pages = measured(phases(20), &[("sampling_period", "1"), ("score", "frequency")]);
    let kept = halves(&pages, |page| f64::from(page.pac) / f64::from(page.loads));
    assert!(kept[0] < 0.3 && kept[1] > 0.9, "of streamed and of chased loads are delivered {kept:?}");
    assert!(rank_correlation(&pages) > 0.8);
}

#[test]
fn without_windows_of_one_kind_only_exposed_latency_tells_pages_apart() {
    // Both kinds in every window: accesses of two threads in turn.
    let mixed = || {
        let mut stream = phases(2);
        let kinds: Vec<Vec<Access>> = stream.accesses[PAGES as usize..]
            .chunks(PHASE as usize)
            .enumerate()
            .map(|(thread, chunk)| {
                chunk.iter().map(|&access| Access { thread: thread as u16, ..access }).collect()
            })
            .collect();
        let turns = kinds[0].iter().zip(&kinds[1]).flat_map(|(&one, &other)| [one, other]);
        stream.accesses.truncate(PAGES as usize);
        stream.accesses.extend(turns);
        stream.threads = 2;
        stream
    };
    let ratio = |attribution| {
        let settings = [("sampling_period", "1"), ("attribution", attribution)];
        let [streamed, chased] = halves(&measured(mixed(), &settings), |page| f64::from(page.pac));
        chased / streamed
    };
    assert!((0.8..1.25).contains(&ratio("proportional")));
    assert!(ratio("exposed") > 3.0, "{}", ratio("exposed"));
}

/// Returns the PAC of a program's pages where every load is sampled and PACT's own work costs nothing; all
/// memory is slow.
fn pac_of(workload: &str, settings: &[(&str, &str)], attribution: &str, own_pace: bool) -> f64 {
    let free = ["costs.sample", "costs.drain_sample", "costs.cached_touch", "costs.operation"];
    let mut costs = free.map(|cost| (cost, "0ns")).to_vec();
    costs.push(("costs.ring_samples", "1000000000"));
    costs.extend(UNTHROTTLED);
    // Metadata that misses the cache would cost the fast tier's latency.
    costs.push(("llc.size", "1TiB"));
    let profile = machine(&costs);
    let workload = isotherm_workloads::find(workload).expect("it exists");
    let mut parameters = workload.parameters();
    settings.iter().for_each(|(key, value)| parameters.set(key, value).expect("in range"));
    let go_on = &mut |_| ControlFlow::Continue(());
    let mut loaded =
        load_workload(workload, parameters, PageSize::Base, 1, u64::MAX, go_on).expect("it loads");
    if own_pace {
        loaded.input.stream = loaded.input.stream.at_own_pace(&profile, TierId(1));
    }
    let bench = Criticality::new(&loaded.input, &profile, loaded.scale, 1).expect("two tiers");
    let mut pages = bench.truth(TierId(1), stall_window(loaded.scale)).pages;
    let mut parameters: Parameters = isotherm_policies::find("pact").expect("it exists").parameters();
    for (key, value) in [("sampling_period", "1"), ("attribution", attribution)] {
        parameters.set(key, value).expect("in range");
    }
    bench.measure(&parameters, &mut pages).expect("the simulator has every signal");
    rank_correlation(&pages)
}

/// The paper's three programs (Fig. 1), smaller. GUPS passes over its table in order and at random in turn,
/// so that only its accesses' latencies tell its pages apart.
#[test]
fn pages_of_real_programs_are_ranked_by_their_stalls() {
    let masim = [("footprint", "16M"), ("operations", "2M")];
    let gups = [("preset", "pact"), ("footprint", "16M"), ("burst", "2M"), ("operations", "4M")];
    let tc = [("scale", "15"), ("threads", "8")];
    let exposed = [
        pac_of("masim", &masim, "exposed", true),
        pac_of("gups", &gups, "exposed", false),
        pac_of("gapbs-tc-kron", &tc, "exposed", false),
    ];
    // A stream's late lines stall and are no samples: two of a page's 64 were, one is since pairs complete.
    assert!(exposed.iter().all(|&correlation| correlation > 0.85), "{exposed:?}");
    let proportional =
        [pac_of("masim", &masim, "proportional", true), pac_of("gapbs-tc-kron", &tc, "proportional", false)];
    assert!(proportional.iter().all(|&correlation| correlation > 0.88), "{proportional:?}");
}

/// Returns streams of different parallelism, by dependence and by instructions between misses.
fn varied() -> Vec<Stream> {
    let mut random = numbers(5, 1 << 30);
    let mut all = Vec::new();
    for dependence in [0, 1, 2, 4] {
        for instructions in [5, 40, 150] {
            let count = 40_000 + random() % 80_000;
            let pages: Vec<u32> = (0..count).map(|_| random() % PAGES).collect();
            all.push(stream(pages, PAGES, instructions, dependence));
        }
    }
    all
}

#[test]
fn equation_one_follows_stalls_and_misses_alone_do_not() {
    let profile: Profile = machine(&[("core.cores", "4")]);
    let found: Vec<_> = varied()
        .into_iter()
        .map(|stream| {
            let input = input(stream);
            let bench = Criticality::new(&input, &profile, Scale::NONE, 1).expect("two tiers");
            bench.truth(TierId(1), Nanos(200_000)).tier
        })
        .collect();
    let correlation = |value: fn(&isotherm_sim::TierStall) -> f64| {
        let pairs: Vec<(f64, f64)> = found.iter().map(|tier| (value(tier), tier.stall.0 as f64)).collect();
        pearson(&pairs).expect("both vary")
    };
    let (equation, misses) = (correlation(|tier| tier.serial_misses), correlation(|tier| tier.misses as f64));
    // What is missing to 1 are page walks, which stall and are no misses.
    assert!(equation > 0.97 && misses < 0.9, "{equation} against {misses}");
}
