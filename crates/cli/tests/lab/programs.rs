//! Real programs with more memory than the fast node: their output in the guest equals that outside, whoever
//! moves their pages, and Isotherm's policies serve more of their misses from the fast node than first touch
//! does.
//!
//! `scripts/lab-programs.sh` runs all of them (`LAB_TEST=programs`) and writes the table of
//! `docs/generated/lab-programs.md`; the full set of tests runs one.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use isotherm_lab::measured::Measured;
use serde_json::Value;

use crate::support::{BINARY, Lab, ok, root};

/// A program and its limit of the fast node: about a third of its memory.
struct Program {
    name: &'static str,
    what: &'static str,
    fast: &'static str,
    /// Script for `sh -c` in the repository; `$BIN` is the folder of the built programs.
    script: &'static str,
    /// Whether it reads some of its memory repeatedly, so that better placement pays.
    has_hot_pages: bool,
}

const PROGRAMS: [Program; 6] = [
    Program {
        name: "redis",
        what: "redis-server, YCSB-C: 50,000 records, 300,000 reads by Zipf",
        fast: "24M",
        script: "redis-server --port 0 --unixsocket /tmp/lab-redis.sock --save '' --loglevel warning >/dev/null & \
            $BIN/ycsb /tmp/lab-redis.sock 50000 300000; status=$?; kill $!; wait; exit $status",
        has_hot_pages: true,
    },
    Program {
        name: "sqlite3",
        what: "sqlite3, the shop's day (`demo/shop.sql`)",
        fast: "16M",
        script: "sqlite3 :memory: <demo/shop.sql",
        has_hot_pages: true,
    },
    Program {
        name: "python3",
        what: "python3, a dictionary of 200,000 customers, few of them frequent",
        fast: "24M",
        script: "/usr/bin/python3 crates/cli/tests/lab/customers.py",
        has_hot_pages: true,
    },
    Program {
        name: "sort",
        what: "GNU sort of 1,000,000 lines, in memory",
        fast: "16M",
        script: "seq -w 1 1000000 | rev | sort -S 100M --parallel=1 | cksum",
        has_hot_pages: false,
    },
    Program {
        name: "bfs",
        what: "our native BFS (GAPBS, Kronecker graph of 2^18 vertices, degree 16, 8 sources)",
        fast: "32M",
        script: "$BIN/native - gapbs-bfs-kron scale=18 degree=16 trials=8",
        has_hot_pages: true,
    },
    Program {
        name: "btree",
        what: "our native B-tree (64 MiB, 500,000 look-ups)",
        fast: "24M",
        script: "$BIN/native - btree footprint=64M operations=500k",
        has_hot_pages: true,
    },
];
/// First touch and the policies compared with it.
const TIERINGS: [&[&str]; 3] =
    [&["--kernel-tiering", "none"], &["--policy", "freqtier"], &["--policy", "hybridtier"]];
const HEADER: &str = "| program | memory | fast | first touch | FreqTier | HybridTier | moved by FreqTier | by HybridTier |\n\
    |---|---|---|---|---|---|---|---|\n";
/// Start of the comparison: a program may begin with more of the fast node than its limit, until the engine
/// enforces it.
const SECOND_HALF: f64 = 0.5;

/// One run, with its hit ratio over the second half of the misses.
struct Row {
    tiering: String,
    hit_ratio: f64,
    moved: u64,
    footprint: u64,
    /// The engine's knowledge, to find out why it did nothing.
    engine: String,
}

fn run(lab: &Lab, program: &Program, tiering: &[&str], native: &[u8]) -> Row {
    let options = ["--machine", "small", "--fast", program.fast, "--json", "--time-limit", "5min"];
    let guest = lab.run(&[tiering, &options].concat(), &["sh", "-c", &script(program)]);
    assert_eq!(guest.code, Some(0), "{}: {}", program.name, guest.err);
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(shown(&guest.out), shown(native), "{} under {tiering:?}", program.name);
    let result: Value =
        serde_json::from_str(guest.err.lines().last().unwrap_or_default()).expect("our result");
    let run = &result["runs"][0];
    let measured: Measured = serde_json::from_value(run["measured"].clone()).expect("counts");
    let residence = run["residence"].as_array().expect("moments").iter();
    let bytes = residence.map(|moment| {
        moment["node_bytes"].as_array().into_iter().flatten().filter_map(Value::as_u64).sum::<u64>()
    });
    Row {
        tiering: run["tiering"].as_str().unwrap_or_default().into(),
        hit_ratio: measured.history.hit_ratio(SECOND_HALF, 1.0).expect("a history"),
        moved: run["counts"]["moved"].as_u64().expect("a number"),
        footprint: bytes.max().unwrap_or(0),
        engine: ["process_names", "footprint_bytes", "traffic", "warnings"]
            .map(|field| run["engine"][field].to_string())
            .join(" "),
    }
}

fn script(program: &Program) -> String {
    let bin = Path::new(BINARY).with_file_name("examples");
    program.script.replace("$BIN", bin.to_str().expect("UTF-8"))
}

/// Runs a program outside and in guests; returns its line of the table.
fn check(lab: &Lab, program: &Program, tierings: &[&[&str]]) -> String {
    let native = ok(Command::new("sh").args(["-c", &script(program)]).current_dir(root()));
    assert!(!native.is_empty());
    let rows: Vec<Row> = tierings.iter().map(|tiering| run(lab, program, tiering, &native)).collect();
    let (first_touch, ours) = rows.split_first().expect("there are some");
    let mut line = format!("| {} | {} MiB | {} |", program.what, first_touch.footprint >> 20, program.fast);
    for row in &rows {
        let _ = write!(line, " {:.1} % |", 100.0 * row.hit_ratio);
    }
    for row in ours {
        let _ = write!(line, " {} |", row.moved);
    }
    eprintln!("{line}");
    assert_eq!(first_touch.moved, 0, "nothing moves under {}", first_touch.tiering);
    for row in ours {
        // It begins with more fast memory than its limit.
        assert!(row.moved > 0, "{}: {line}: {}", row.tiering, row.engine);
    }
    for row in ours.iter().filter(|_| program.has_hot_pages) {
        assert!(row.hit_ratio > first_touch.hit_ratio, "{}: {line}", row.tiering);
    }
    line
}

#[test]
fn a_graph_is_searched_as_outside_and_tiered_better_than_by_first_touch() {
    let Some(lab) = Lab::find_all() else { return };
    let bfs = PROGRAMS.iter().find(|program| program.name == "bfs").expect("it is there");
    check(&lab, bfs, &TIERINGS[..2]);
}

/// Formats the table.
#[test]
fn real_programs() {
    // scripts/lab-programs.sh runs it.
    let Some(lab) = Lab::find_for("programs") else { return };
    let wanted = std::env::var("LAB_PROGRAMS").unwrap_or_default();
    let chosen = |program: &&Program| wanted.is_empty() || wanted.split(',').any(|name| name == program.name);
    let lines: Vec<String> =
        PROGRAMS.iter().filter(chosen).map(|program| check(&lab, program, &TIERINGS)).collect();
    if let Some(path) = std::env::var_os("LAB_TABLE") {
        std::fs::write(path, format!("{HEADER}{}\n", lines.join("\n"))).expect("the table is written");
    }
}
