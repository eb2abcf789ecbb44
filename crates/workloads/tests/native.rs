//! The instrumented run touches what a native one touches: workloads run natively under the recorder (the
//! example `native` in QEMU), and their misses are compared, page by page, with those of the instrumented run
//! behind the same cache.
//!
//! Needs qemu-user. Cargo builds the example before it runs this test, except with `--test native`.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use isotherm_core::Bytes;
use isotherm_core::cache::Geometry;
use isotherm_trace::record::{RecordOptions, record};
use isotherm_trace::{Rows, TraceReader};
use isotherm_workloads::{Limits, MissRecorder, PageProfile, find};

/// Workloads, with settings that make their data several times the cache.
const PROGRAMS: &[(&str, &[(&str, &str)])] = &[
    ("btree", &[("footprint", "4M"), ("operations", "100k")]),
    ("redis", &[("footprint", "4M"), ("operations", "10k")]),
    ("silo", &[("footprint", "4M"), ("operations", "50k"), ("ycsb", "f")]),
    ("flexkvs", &[("footprint", "8M"), ("operations", "20k")]),
    ("social-network", &[("operations", "1200"), ("users", "200")]),
    ("gapbs-bfs-kron", &[("scale", "17"), ("degree", "8"), ("trials", "2")]),
    ("gapbs-bfs-urand", &[("scale", "17"), ("degree", "8"), ("trials", "2")]),
    ("gapbs-pr-kron", &[("scale", "17"), ("degree", "8"), ("iterations", "3")]),
    ("gapbs-pr-urand", &[("scale", "17"), ("degree", "8"), ("iterations", "3")]),
];

/// The last-level cache of both sides: small, so that little data and few accesses suffice.
const CACHE: Bytes = Bytes(256 << 10);
/// Shares of the hottest pages that are compared, and the permitted difference of their misses.
const SHARES: [f64; 3] = [0.01, 0.1, 0.5];
const TOLERANCE: f64 = 0.05;
/// Least rank correlation of pages by misses.
const CORRELATION: f64 = 0.9;
/// The seed of the example.
const SEED: u64 = 1;

/// Misses of a page, native and instrumented.
type Misses = BTreeMap<u64, [u64; 2]>;

/// An allocation: its address in the workload's address space, its bytes, its address in the process.
struct Place {
    start: u64,
    bytes: u64,
    real: u64,
}

fn geometry() -> Geometry {
    Geometry::new(CACHE, 16).expect("a valid size")
}

fn example() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let profile = test.parent().and_then(Path::parent).expect("target/PROFILE/deps");
    let example = profile.join("examples/native");
    assert!(
        example.exists(),
        "{} is missing: cargo build -p isotherm-workloads --examples",
        example.display()
    );
    example
}

/// Runs the workload under the recorder; returns its rows and where its allocations lay.
fn run_native(name: &str, settings: &[(&str, &str)]) -> (Rows, Vec<Place>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (map, trace) = (directory.path().join("map"), directory.path().join("trace"));
    let mut command: Vec<OsString> = vec![example().into(), map.clone().into(), name.into()];
    command.extend(settings.iter().map(|(key, value)| format!("{key}={value}").into()));
    let options =
        RecordOptions { cache: geometry(), dependence: false, ..RecordOptions::new(command, &trace) };
    let summary = record(&options, &mut |_| {}).expect("qemu-user and the plugin (make setup)");
    assert_eq!((summary.status, summary.lost), (0, 0));
    let (mut rows, mut batch) = (Rows::default(), Rows::default());
    let mut reader = TraceReader::open(&trace).expect("the trace opens");
    while reader.next(&mut batch).expect("the trace reads") {
        batch.iter().for_each(|row| rows.push(row));
    }
    let mut places: Vec<Place> =
        std::fs::read_to_string(map).expect("the map").lines().map(parse_place).collect();
    places.sort_by_key(|place| place.real);
    let apart = places.windows(2).all(|pair| pair[0].real + pair[0].bytes <= pair[1].real);
    assert!(apart, "{name}: two allocations lay at the same address");
    (rows, places)
}

fn parse_place(line: &str) -> Place {
    let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().expect("a number")).collect();
    let [start, bytes, real] = numbers[..] else { panic!("three numbers expected: {line}") };
    Place { start, bytes, real }
}

/// Returns the page of a recorded line in the workload's address space, or `None` outside its memory.
fn translate(line: u64, places: &[Place]) -> Option<u64> {
    // The line's last byte decides: an allocation may start within the line.
    let address = (line << 6) + 63;
    let place = &places[places.partition_point(|place| place.real <= address).checked_sub(1)?];
    let offset = (line << 6).saturating_sub(place.real);
    (offset < place.bytes).then_some((place.start + offset) >> 12)
}

/// Counts the pages of the instrumented run's rows.
fn run_instrumented(name: &str, settings: &[(&str, &str)], mut count: impl FnMut(u64)) {
    let workload = find(name).expect("a workload of that name");
    let mut parameters = workload.parameters();
    settings.iter().for_each(|(key, value)| parameters.set(key, value).expect("in range"));
    let mut recorder = MissRecorder::new(geometry(), Limits::NONE, |rows: &mut Rows| {
        rows.line.iter().for_each(|line| count(line >> 6));
        ControlFlow::Continue(())
    });
    workload.build(&parameters, SEED).expect("consistent settings").run(&mut recorder);
    recorder.finish();
}

/// Returns the misses of the hottest shares of pages on one side.
fn shares(misses: &Misses, side: usize) -> Vec<f64> {
    let mut profile = PageProfile::default();
    misses.iter().for_each(|(page, counts)| profile.count(page << 6, counts[side]));
    profile.shares_of_hottest(&SHARES)
}

/// Returns the rank of each count; equal counts share their mean rank.
fn ranks(counts: impl Iterator<Item = u64>) -> Vec<f64> {
    let counts: Vec<u64> = counts.collect();
    let mut sorted = counts.clone();
    sorted.sort_unstable();
    let mut rank: HashMap<u64, f64> = HashMap::new();
    for group in sorted.chunk_by(|a, b| a == b) {
        let below = sorted.partition_point(|&count| count < group[0]) as f64;
        rank.insert(group[0], below + (group.len() - 1) as f64 / 2.0);
    }
    counts.iter().map(|count| rank[count]).collect()
}

/// Returns Spearman's rank correlation of the two sides.
fn correlation(misses: &Misses) -> f64 {
    let [native, instrumented] = [0, 1].map(|side| ranks(misses.values().map(|counts| counts[side])));
    let mean = (native.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    product(&native, &instrumented)
        / (product(&native, &native) * product(&instrumented, &instrumented)).sqrt()
}

fn compare(name: &str, settings: &[(&str, &str)]) {
    let mut misses = Misses::new();
    let (rows, places) = run_native(name, settings);
    let pages = rows.line.iter().filter_map(|&line| translate(line, &places));
    pages.for_each(|page| misses.entry(page).or_default()[0] += 1);
    run_instrumented(name, settings, |page| misses.entry(page).or_default()[1] += 1);
    let [native, instrumented] = [0, 1].map(|side| shares(&misses, side));
    let total = |side: usize| misses.values().map(|counts| counts[side]).sum::<u64>();
    let correlation = correlation(&misses);
    let percent = |shares: &[f64]| {
        shares.iter().map(|share| format!("{:.1}", share * 100.0)).collect::<Vec<_>>().join(" / ")
    };
    let found = format!(
        "{name}: {} pages; hottest 1 / 10 / 50 %: native {} of {} misses, instrumented {} of {}; rank correlation {correlation:.3}",
        misses.len(),
        percent(&native),
        total(0),
        percent(&instrumented),
        total(1),
    );
    println!("{found}");
    let data = misses.len() as u64 * 4096;
    assert!(data > 4 * CACHE.0, "{name}: {data} bytes of data say nothing about a cache of {CACHE}");
    assert!(native.iter().zip(&instrumented).all(|(a, b)| (a - b).abs() < TOLERANCE), "{found}");
    assert!(correlation >= CORRELATION, "{found}");
}

#[test]
fn instrumented_runs_miss_on_the_pages_that_native_runs_miss_on() {
    PROGRAMS.iter().for_each(|(name, settings)| compare(name, settings));
}
