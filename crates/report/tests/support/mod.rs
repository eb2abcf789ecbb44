//! A made-up report of realistic shape for tests and previews: seven policies, three sizes, a skewed and
//! moving hot set. It is deterministic; its numbers are not results.

#![allow(dead_code, unreachable_pub)] // each test binary uses its part

pub mod browser;
pub mod documented;
pub mod live;
pub mod sized;
pub mod validator;

use std::collections::BTreeMap;

use isotherm_core::manifest::{Fingerprint, Manifest};
use isotherm_core::parameters::{Kind, Parameters, Spec};
use isotherm_core::{Bytes, Nanos, PageSize};
use isotherm_machine::MachineNumber;
use isotherm_machine::MachineSummary;
use isotherm_sim::{
    Charges, FailedMoves, Heatmap, Held, InputSummary, Interval, LongRun, Region, Report, Round, RunResult,
    TimeParts,
};

const FREQTIER: &[Spec] = &[
    Spec {
        name: "batch",
        kind: Kind::Count(64, 10_000_000),
        default: "100k",
        unit: "samples",
        source: "FreqTier section V-A",
        help: "Samples taken in before a decision.",
        scaled: true,
        rate: false,
    },
    Spec {
        name: "window",
        kind: Kind::Duration(Nanos(1), Nanos(u64::MAX)),
        default: "60s",
        unit: "",
        source: "FreqTier section V-C",
        help: "Time over which the hit ratio must be stable.",
        scaled: true,
        rate: false,
    },
    Spec {
        name: "counter_bits",
        kind: Kind::Choice(&["4", "8"]),
        default: "4",
        unit: "bits",
        source: "FreqTier section V-B",
        help: "Width of a counter.",
        scaled: false,
        rate: false,
    },
];

const GUPS: &[Spec] = &[Spec {
    name: "hot_share",
    kind: Kind::Number(0.0, 1.0),
    default: "0.1",
    unit: "",
    source: "ours: a tenth is what the papers use",
    help: "Share of the pages that are hot.",
    scaled: false,
    rate: false,
}];

/// Policies: name, share of the oracle's hit ratio at the middle size, and slowdown by tiering itself.
const POLICIES: [(&str, f64, f64); 7] = [
    ("first-touch", 0.45, 0.0),
    ("all-fast", 1.0, 0.0),
    ("all-slow", 0.0, 0.0),
    ("lru", 0.78, 0.05),
    ("freqtier", 0.93, 0.02),
    ("oracle", 1.0, 0.0),
    ("belady", 1.0, 0.0),
];

const SIZES: [(&str, u64); 3] = [("1:4", 5), ("1:8", 9), ("1:16", 17)];

const FOOTPRINT: u64 = 2160 << 20;
const ACCESSES: u64 = 60_000_000;

/// Generator of noise (xorshift).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Returns seven policies at three sizes with 100 intervals each.
#[allow(unreachable_pub, reason = "shared by tests and the preview")]
pub fn report() -> Report {
    sized(100, 128, 64, 1)
}

/// Returns the same with a given number of intervals and heatmap cells, and every run repeated.
#[allow(unreachable_pub, reason = "shared by tests and the preview")]
pub fn sized(intervals: usize, columns: usize, rows: usize, repeat: usize) -> Report {
    let runs =
        SIZES.iter().flat_map(|size| POLICIES.iter().map(move |policy| run(*policy, *size, intervals)));
    let mut runs: Vec<_> = runs.collect();
    for run in runs.iter_mut().filter(|run| !["oracle", "belady"].contains(&run.policy.as_str())) {
        run.fast_cells = fast_cells(columns, rows, run.fast_bytes.0 as f64 / FOOTPRINT as f64);
    }
    let runs = std::iter::repeat_n(runs, repeat).flatten().collect();
    Report {
        version: "0.1.0".into(),
        manifest: manifest(),
        input: input(columns, rows),
        machine: machine(),
        runs,
    }
}

/// Returns a manifest with every field.
#[allow(unreachable_pub, reason = "shared by tests and the preview")]
pub fn manifest() -> Manifest {
    Manifest {
        binary: Some(Fingerprint::Build(vec![0xb1])),
        input: Some(Fingerprint::Contents(1)),
        machine: "a server, 104 threads".into(),
        kernel: Some("6.12.1-amd64".into()),
        free_dram_bytes: Some(Bytes(64 << 30)),
        policy_libraries: BTreeMap::new(),
        options: [("overhead", "0.02".to_owned())].into(),
    }
}

fn input(columns: usize, rows: usize) -> InputSummary {
    let provenance = [
        (
            "command",
            "sqlite3 :memory: \"create table t(a); insert into t select value from generate_series(1, 9e6)\"",
        ),
        ("recorder", "qemu-user 7.2 with the Isotherm plugin 0.1.0"),
        ("cache model", "2M, 16 ways, LRU"),
    ];
    InputSummary {
        name: "gups".into(),
        kind: "workload",
        parameters: Some(Parameters::new("gups", GUPS)),
        provenance: provenance.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
        seed: 42,
        scale: 100.0,
        time_scale: 25.0,
        accesses: ACCESSES,
        instructions: 11 * ACCESSES,
        threads: 4,
        footprint_bytes: Bytes(FOOTPRINT),
        heatmap: heatmap(columns, rows),
        page_cdf: (0..=200)
            .map(|point| f64::from(point) / 200.0)
            .map(|pages| (pages * pages, pages.powf(0.4)))
            .collect(),
        regions: regions(),
    }
}

/// Returns a hot band that moves at half time, a stream over all memory, and a cold rest with some gaps.
fn heatmap(columns: usize, rows: usize) -> Heatmap {
    let mut noise = Noise(7);
    let mut counts = Vec::with_capacity(columns * rows);
    for row in 0..rows {
        for column in 0..columns {
            let (x, y) = (column as f64 / columns as f64, row as f64 / rows as f64);
            let middle = if x < 0.5 { 0.3 } else { 0.62 };
            let hot = 40_000.0 * (-((y - middle) / 0.05).powi(2)).exp();
            let stream = if (y - (x * 4.0).fract()).abs() < 0.02 { 1_500.0 } else { 0.0 };
            let cold = if noise.next() < 0.3 { 20.0 * noise.next() } else { 0.0 };
            counts.push((hot * (0.5 + noise.next()) + stream + cold) as u32);
        }
    }
    let bytes_per_row = FOOTPRINT / rows as u64;
    let addresses = (0..rows as u64).map(|row| {
        let base = if row * 5 < 4 * rows as u64 { 0x5555_5540_0000 } else { 0x7fff_f000_0000 };
        base + row * bytes_per_row
    });
    Heatmap {
        columns,
        rows,
        accesses_per_column: ACCESSES.div_ceil(columns as u64),
        pages_per_row: (FOOTPRINT >> 12) as f64 / rows as f64,
        addresses: addresses.collect(),
        counts,
        objects: objects(),
    }
}

/// Returns what the pages hold, a half of them in one table.
fn objects() -> Vec<Held> {
    let held = |name: &str, mib: u64, accesses| Held { name: name.into(), pages: mib << 8, accesses };
    vec![
        held("table", 1900, 41_000_000),
        held("", 39, 0),
        held("index", 120, 12_000_000),
        held("log", 100, 6_400_000),
        held("[stack]", 1, 600_000),
    ]
}

/// Returns whether the page is fast, in 255ths for each cell: the lowest rows, more of them later.
fn fast_cells(columns: usize, rows: usize, share: f64) -> Vec<u8> {
    let fast = |index: usize| {
        let (row, column) = (index / columns, index % columns);
        let until = rows as f64 * share * (0.5 + column as f64 / columns as f64 / 2.0);
        ((until - row as f64).clamp(0.0, 1.0) * 255.0) as u8
    };
    (0..columns * rows).map(fast).collect()
}

fn regions() -> Vec<Region> {
    let region =
        |name: &str, bytes: u64, accesses| Region { name: name.into(), bytes: Bytes(bytes << 20), accesses };
    vec![
        region("table", 1900, 41_000_000),
        region("index", 120, 12_000_000),
        region("log", 100, 6_400_000),
        region("[stack]", 1, 600_000),
    ]
}

fn machine() -> MachineSummary {
    let number = |path: &str, value: &str, source: &str| MachineNumber {
        path: path.into(),
        value: value.into(),
        source: source.into(),
    };
    MachineSummary {
        name: "freqtier-cxl1".into(),
        title: "two sockets, the slow tier a CXL device behind an FPGA".into(),
        numbers: vec![
            number("tier.0.latency", "100ns", "FreqTier section VI"),
            number("tier.1.latency", "220ns", "FreqTier section VI"),
            number("tier.1.read_bandwidth", "20GB/s", "FreqTier section VI"),
        ],
    }
}

fn run(
    (policy, of_oracle, cost): (&str, f64, f64),
    (fast, inverse): (&str, u64),
    intervals: usize,
) -> RunResult {
    let size_effect = (17.0 - inverse as f64) / 12.0;
    let (oracle, belady) = (0.78 + 0.14 * size_effect, 0.82 + 0.13 * size_effect);
    let hit_ratio = match policy {
        "belady" => belady,
        "all-fast" => 1.0,
        // A burst, served by policies that move pages inside an interval.
        "lru" if fast == "1:16" => oracle + 0.01,
        _ => of_oracle * oracle,
    };
    let migrates = cost > 0.0;
    let moves = if migrates { 420_000 * inverse / 9 } else { 0 };
    let modelled = (5e9 * (1.0 + (1.0 - hit_ratio) * 1.2 + cost)) as u64;
    let [sampling, moving, deciding] = [0.3, 0.6, 0.1].map(|part| Nanos((5e9 * cost * part) as u64));
    let program = Nanos(modelled) - sampling - moving - deciding;
    RunResult {
        policy: policy.into(),
        parameters: Parameters::new(policy, if policy == "freqtier" { FREQTIER } else { &[] }),
        workload: Some("gups".into()),
        trace: None,
        machine: "freqtier-cxl1".into(),
        seed: 42,
        scale: 100.0,
        time_scale: 25.0,
        version: "0.1.0".into(),
        page_size: PageSize::Base,
        footprint_bytes: Bytes(FOOTPRINT),
        fast_bytes: Bytes((FOOTPRINT / inverse) >> 12 << 12),
        fast: fast.into(),
        accesses: ACCESSES,
        hit_ratio,
        final_hit_ratio: (hit_ratio * 1.02).min(1.0),
        load_hit_ratio: hit_ratio * 0.99,
        final_load_hit_ratio: hit_ratio,
        oracle_hit_ratio: oracle,
        oracle_final_hit_ratio: oracle * 1.01,
        oracle_load_hit_ratio: oracle,
        oracle_final_load_hit_ratio: oracle,
        belady_hit_ratio: belady,
        beats_oracle: !["all-fast", "belady"].contains(&policy) && hit_ratio > oracle,
        slowdown: modelled as f64 / 5e9,
        modelled_ns: Nanos(modelled),
        all_fast_ns: Nanos(5_000_000_000),
        parts: TimeParts { program, sampling, moving, deciding },
        stall_ns: vec![Nanos(1_900_000_000), Nanos(modelled / 3)],
        tier_accesses: vec![60, 40],
        tier_bytes: vec![Bytes(3 << 30), Bytes(2 << 30)],
        promotions: moves,
        demotions: moves * 9 / 10,
        failed_moves: FailedMoves { busy: u64::from(migrates) * 31, ..FailedMoves::default() },
        bytes_moved: Bytes((moves + moves * 9 / 10) << 12),
        shadow_bytes: Bytes(0),
        swap_ins: 0,
        stored_bytes: Bytes(0),
        hint_faults: 0,
        samples: if policy == "freqtier" { 1_234_567 } else { 0 },
        samples_lost: if policy == "freqtier" && fast == "1:16" { 8_910 } else { 0 },
        samples_throttled: 0,
        page_walks: 0,
        page_walk_reads: 0,
        metadata_bytes: Bytes(if policy == "freqtier" { 900 << 10 } else { 0 }),
        tiering_cpu_ns: Nanos(if migrates { 812_000_000 } else { 0 }),
        charges: Charges { moving: Nanos(if migrates { 600_000_000 } else { 0 }), ..Charges::default() },
        wall_s: 2.5,
        timeline: timeline(policy, hit_ratio, oracle, moves, modelled, intervals),
        page_tiers: Vec::new(),
        fast_cells: Vec::new(),
        long_run: None,
    }
}

/// Returns a report of every policy and bound at two sizes, with long names beside the heatmap.
#[allow(unreachable_pub, reason = "shared by some of the tests")]
pub fn full_report() -> Report {
    let mut report = report();
    let known: Vec<RunResult> = report.runs.drain(..).collect();
    for (fast, _) in &SIZES[..2] {
        for (index, entry) in isotherm_policies::ALL.iter().enumerate() {
            let like = known.iter().find(|run| run.fast == *fast && run.policy == entry.name);
            let other = known.iter().find(|run| run.fast == *fast && run.policy == "freqtier");
            let mut run = like.or(other).expect("some run").clone();
            if like.is_none() {
                let more = Nanos(40_000_000 * index as u64);
                run.policy = entry.name.into();
                run.parameters = entry.parameters();
                run.modelled_ns += more;
                run.parts.moving += more;
                run.slowdown = run.modelled_ns.0 as f64 / run.all_fast_ns.0 as f64;
            }
            report.runs.push(run);
        }
    }
    report
}

/// Returns the report as of runs of 100 rounds, 3 of them simulated: freqtier pays back, lru never does.
#[allow(unreachable_pub, reason = "shared by some of the tests")]
pub fn long_report() -> Report {
    let mut report = report();
    for run in &mut report.runs {
        let (time, slowdown) = (run.modelled_ns.0 / 3, run.modelled_ns.0 as f64 / 5e9);
        let round = |moves| Round {
            modelled_ns: Nanos(time + moves),
            slowdown,
            hit_ratio: run.hit_ratio,
            promotions: moves,
            demotions: moves,
            ..Round::default()
        };
        run.time_scale = if run.policy == "freqtier" { 2.0 } else { 1.0 };
        run.long_run = Some(LongRun {
            rounds: 100,
            simulated: 3,
            settled: run.policy != "lru",
            control_loop_ns: Nanos(if run.policy == "freqtier" { 30_000_000_000 } else { 0 }),
            round_ns: Nanos(time),
            slowdown,
            hit_ratio: run.hit_ratio,
            modelled_ns: Nanos(100 * time),
            all_fast_ns: Nanos(100 * (5_000_000_000 / 3)),
            parts: TimeParts { program: Nanos(100 * time), ..TimeParts::default() },
            first_touch_ns: Nanos(300_000_000_000),
            pays_back_ns: (run.policy == "freqtier").then_some(Nanos(40_000_000_000)),
            each: vec![round(300), round(20), round(0)],
            ..LongRun::default()
        });
    }
    report
}

fn timeline(
    policy: &str,
    hits: f64,
    oracle: f64,
    moves: u64,
    modelled: u64,
    intervals: usize,
) -> Vec<Interval> {
    let mut noise = Noise(policy.bytes().map(u64::from).sum::<u64>() + 1);
    let accesses = ACCESSES / intervals as u64;
    let interval = |index: usize| {
        let x = (index + 1) as f64 / intervals as f64;
        // The hot set moves at half time: policies that move pages fall and recover.
        let since = if x < 0.5 { x } else { x - 0.5 };
        let dip = if moves > 0 { 0.5 * (-since * 12.0).exp() } else { 0.0 };
        let wiggle = if hits == 0.0 || hits == 1.0 { 0.0 } else { 0.03 * (noise.next() - 0.5) };
        let share = (hits * (1.0 - dip) + wiggle).clamp(0.0, 1.0);
        let moved = (moves as f64 / intervals as f64 * (0.3 + 8.0 * dip) * (0.6 + 0.8 * noise.next())) as u64;
        let mut gauges = BTreeMap::new();
        if policy == "freqtier" {
            gauges.insert("hot-threshold", (3.0 + 9.0 * since + noise.next()).floor());
            gauges.insert("sampling-level", if dip > 0.1 { 2.0 } else { 0.0 });
        }
        Interval {
            end_ns: Nanos((modelled as f64 * x) as u64),
            accesses,
            hits: (accesses as f64 * share) as u64,
            loads: accesses,
            load_hits: (accesses as f64 * share) as u64,
            oracle_hits: (accesses as f64 * (oracle + 0.02 * (noise.next() - 0.5))) as u64,
            promotions: moved,
            demotions: moved * 9 / 10,
            samples: if policy == "freqtier" { 12_345 } else { 0 },
            gauges,
        }
    };
    (0..intervals).map(interval).collect()
}
