//! Real programs with more memory than the fast node: their output in the guest equals that outside, whoever
//! moves their pages, Isotherm's policies serve more of their misses from the fast node than first touch
//! does, and the simulator says the same of their recordings.
//!
//! `scripts/lab-programs.sh` runs all of them (`LAB_TEST=programs`) and writes the table of
//! `docs/generated/lab-programs.md`; the full set of tests runs one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use isotherm_core::Bytes;
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
    /// Tierings under which its hit ratio in the simulator may be further than [`APART`] away, and why.
    apart: &'static [(&'static str, Why)],
}

/// Reason for which simulator and lab differ. docs/guide/lab.md says what each rests on.
#[derive(Debug, Clone, Copy)]
enum Why {
    /// Pages of files lie on the fast node beside the program's own.
    Files,
    /// Freed memory makes room in the lab.
    Freed,
    /// The kernel touches the memory that it reads into before the program does.
    Filled,
    /// Its recordings are as far from each other.
    Recordings,
    /// The engine learns the size of memory as it grows.
    Rebuilt,
    /// Tiering takes time of the program in the simulator only.
    Costs,
    /// Its runs in the lab are as far from each other.
    Runs,
    /// The lab's clock has no page walks, so that a frequency gives fewer samples for as many misses.
    Samples,
}

impl Why {
    fn text(self) -> &'static str {
        match self {
            Self::Files => {
                "the guest's kernel keeps pages of files on the fast node, too, so that the program's own memory \
                has less of it than in the simulator"
            }
            Self::Freed => {
                "memory that the program frees makes room in the lab; in the simulator a page exists from its \
                first miss to the end"
            }
            Self::Filled => {
                "the kernel fills buffers that the program reads into, and so touches their pages first; in the \
                simulator the program's own first miss places a page"
            }
            Self::Recordings => {
                "its recordings differ by more, and with another the simulator is within 3 points of the lab"
            }
            Self::Rebuilt => {
                "the engine builds its policy again whenever memory in use has doubled; the simulator knows the \
                final size from the start"
            }
            Self::Costs => {
                "samples, moves and scans take time in the simulator, and none of the program's in the lab; \
                simulated without their costs, the hit ratio is within 3 points of the lab's or beyond it"
            }
            Self::Runs => {
                "its own runs in the lab differ by more, and the simulator is within 3 points of the nearest"
            }
            Self::Samples => {
                "the lab's clock has neither page walks nor costs of tiering, so that a policy that samples by \
                frequency has fewer samples for as many misses; simulated with as many, it is nearer to the lab"
            }
        }
    }
}

const PROGRAMS: [Program; 6] = [
    Program {
        name: "redis",
        what: "redis-server, YCSB-C: 50,000 records, 300,000 reads by Zipf",
        fast: "24M",
        script: "redis-server --port 0 --unixsocket /tmp/lab-redis.sock --save '' --loglevel warning >/dev/null & \
            $BIN/ycsb /tmp/lab-redis.sock 50000 300000; status=$?; kill $!; wait; exit $status",
        has_hot_pages: true,
        apart: &[("first-touch", Why::Files), ("freqtier", Why::Recordings), ("hybridtier", Why::Recordings)],
    },
    Program {
        name: "sqlite3",
        what: "sqlite3, the shop's day (`demo/shop.sql`)",
        fast: "16M",
        script: "sqlite3 :memory: <demo/shop.sql",
        has_hot_pages: true,
        apart: &[
            ("first-touch", Why::Freed),
            ("freqtier", Why::Freed),
            ("hybridtier", Why::Freed),
            ("memtis", Why::Freed),
        ],
    },
    Program {
        name: "python3",
        what: "python3, a dictionary of 200,000 customers, few of them frequent",
        fast: "24M",
        script: "PYTHONHASHSEED=0 /usr/bin/python3 crates/cli/tests/lab/customers.py",
        has_hot_pages: true,
        apart: &[("first-touch", Why::Files), ("freqtier", Why::Recordings), ("memtis", Why::Costs)],
    },
    Program {
        name: "sort",
        what: "GNU sort of 1,000,000 lines, in memory",
        fast: "16M",
        script: "seq -w 1 1000000 | rev | sort -S 100M --parallel=1 | cksum",
        has_hot_pages: false,
        apart: &[
            ("first-touch", Why::Filled),
            ("freqtier", Why::Samples),
            ("hybridtier", Why::Samples),
            ("memtis", Why::Runs),
        ],
    },
    Program {
        name: "bfs",
        what: "our native BFS (GAPBS, Kronecker graph of 2^18 vertices, degree 16, 8 sources)",
        fast: "32M",
        script: "$BIN/native - gapbs-bfs-kron scale=18 degree=16 trials=8",
        has_hot_pages: true,
        apart: &[("freqtier", Why::Rebuilt), ("hybridtier", Why::Rebuilt), ("memtis", Why::Costs)],
    },
    Program {
        name: "btree",
        what: "our native B-tree (64 MiB, 500,000 look-ups)",
        fast: "24M",
        script: "$BIN/native - btree footprint=64M operations=500k",
        has_hot_pages: true,
        apart: &[("freqtier", Why::Samples)],
    },
];
/// First touch and the policies compared with it, by the simulator's names.
const TIERINGS: [&str; 4] = ["first-touch", "freqtier", "hybridtier", "memtis"];
const HEADER: &str = "| program | memory | fast | first touch | FreqTier | HybridTier | Memtis | moved by FreqTier | by HybridTier | by Memtis |\n\
    |---|---|---|---|---|---|---|---|---|---|\n";
/// Start of the comparison: a program may begin with more of the fast node than its limit, until the engine
/// enforces it.
const SECOND_HALF: f64 = 0.5;
/// Largest distance of the simulator's hit ratio from the lab's.
const APART: f64 = 0.03;

/// Pages moved, and the hit ratio over the second half of the misses.
struct Outcome {
    hit_ratio: f64,
    moved: u64,
}

/// A run in the lab.
struct Row {
    lab: Outcome,
    footprint: u64,
    /// The most that its own memory had of the fast node.
    most_fast: u64,
    /// Its machine file.
    machine: PathBuf,
    /// The engine's knowledge, to find out why it did nothing.
    engine: String,
}

fn run(lab: &Lab, program: &Program, tiering: &str, native: &[u8]) -> Row {
    let by = if tiering == "first-touch" { ["--kernel-tiering", "none"] } else { ["--policy", tiering] };
    let folder = lab.new_folder();
    let options = ["--machine", "small", "--fast", program.fast, "--json", "--time-limit", "10min"];
    let place = ["--folder", folder.to_str().expect("a path in UTF-8")];
    let guest = Lab::verb("run", &[&by[..], &options, &place].concat(), &["sh", "-c", &script(program)], &[]);
    assert_eq!(guest.code, Some(0), "{}: {}", program.name, guest.err);
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(shown(&guest.out), shown(native), "{} under {tiering}", program.name);
    let result: Value =
        serde_json::from_str(guest.err.lines().last().unwrap_or_default()).expect("our result");
    let run = &result["runs"][0];
    let measured: Measured = serde_json::from_value(run["measured"].clone()).expect("counts");
    let moments: Vec<Vec<u64>> = run["residence"].as_array().expect("moments").iter().map(nodes).collect();
    Row {
        lab: Outcome {
            hit_ratio: measured.history.hit_ratio(SECOND_HALF, 1.0).expect("a history"),
            moved: run["counts"]["moved"].as_u64().expect("a number"),
        },
        footprint: moments.iter().map(|nodes| nodes.iter().sum()).max().unwrap_or(0),
        most_fast: moments.iter().filter_map(|nodes| nodes.first().copied()).max().unwrap_or(0),
        machine: folder.join("machine.toml"),
        engine: ["process_names", "footprint_bytes", "traffic", "warnings"]
            .map(|field| run["engine"][field].to_string())
            .join(" "),
    }
}

/// Returns the bytes of a moment on each node.
fn nodes(moment: &Value) -> Vec<u64> {
    moment["node_bytes"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
}

/// Records the program outside with the lab's cache, and replays that on the lab's machine.
fn simulate(program: &Program, machine: &Path, tierings: &[&str]) -> Vec<Outcome> {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("program.trace");
    let mut record = Command::new(BINARY);
    record.args(["record", "--no-dependence", "--cache", "2M", "--ways", "16", "-q", "-o"]).arg(&trace);
    ok(record.args(["sh", "-c", &script(program)]).current_dir(root()));
    let mut simulate = Command::new(BINARY);
    simulate.args(["simulate", "-q", "--json", "--fast", program.fast, "--machine"]).arg(machine);
    let result = ok(simulate.args(["--policy", &tierings.join(",")]).arg(&trace));
    let result: Value = serde_json::from_slice(&result).expect("our result");
    let outcome = |tiering: &&str| {
        let mut runs = result["runs"].as_array().expect("runs").iter();
        let run = runs.find(|run| run["policy"] == *tiering).expect("its run");
        let timeline = run["timeline"].as_array().expect("intervals");
        let second = &timeline[timeline.len() / 2..];
        let sum = |part: &[Value], field: &str| part.iter().filter_map(|each| each[field].as_u64()).sum();
        let (hits, accesses): (u64, u64) = (sum(second, "hits"), sum(second, "accesses"));
        let moved: u64 = sum(timeline, "promotions") + sum(timeline, "demotions");
        Outcome { hit_ratio: hits as f64 / accesses as f64, moved }
    };
    tierings.iter().map(outcome).collect()
}

fn script(program: &Program) -> String {
    let bin = Path::new(BINARY).with_file_name("examples");
    program.script.replace("$BIN", bin.to_str().expect("UTF-8"))
}

/// Runs a program outside, in guests and in the simulator; returns its line of the table, and what is wrong.
fn check(lab: &Lab, program: &Program, tierings: &[&str]) -> (String, Vec<String>) {
    let native = ok(Command::new("sh").args(["-c", &script(program)]).current_dir(root()));
    assert!(!native.is_empty());
    let rows: Vec<Row> = tierings.iter().map(|tiering| run(lab, program, tiering, &native)).collect();
    let simulated = simulate(program, &rows[0].machine, tierings);
    let (first_touch, ours) = rows.split_first().expect("there are some");
    let mut line = format!("| {} | {} MiB | {} |", program.what, first_touch.footprint >> 20, program.fast);
    for (Row { lab, .. }, simulated) in rows.iter().zip(&simulated) {
        let _ = write!(line, " {:.1} ({:.1}) % |", 100.0 * lab.hit_ratio, 100.0 * simulated.hit_ratio);
    }
    for (Row { lab, .. }, simulated) in ours.iter().zip(&simulated[1..]) {
        let _ = write!(line, " {} ({}) |", lab.moved, simulated.moved);
    }
    eprintln!("{line}");
    let mut wrong = Vec::new();
    let mut demand = |holds: bool, what: &str, tiering: &str| {
        if !holds {
            wrong.push(format!("{} under {tiering}: {what}: {line}", program.name));
        }
    };
    demand(first_touch.lab.moved == 0, "pages moved", tierings[0]);
    let fast = program.fast.parse::<Bytes>().expect("a size").0 as f64;
    let files = program.apart.iter().any(|(_, why)| matches!(why, Why::Files));
    let share = first_touch.most_fast as f64 / fast;
    demand(share > 0.7 || files, "its memory has too little of its share", tierings[0]);
    for (row, tiering) in ours.iter().zip(&tierings[1..]) {
        // An engine gives memory back to the slow node when it scans.
        demand(row.most_fast as f64 <= 1.4 * fast, "its memory has more than its share", tiering);
        demand(row.lab.moved > 0, &format!("nothing moved ({})", row.engine), tiering);
        let better = row.lab.hit_ratio > first_touch.lab.hit_ratio;
        demand(better || !program.has_hot_pages, "no better than first touch", tiering);
    }
    for ((row, simulated), tiering) in rows.iter().zip(&simulated).zip(tierings) {
        let near = (row.lab.hit_ratio - simulated.hit_ratio).abs() <= APART;
        let excused = program.apart.iter().any(|(named, _)| named == tiering);
        demand(near || excused, "the simulator says something else", tiering);
    }
    (line, wrong)
}

#[test]
fn a_graph_is_searched_as_outside_and_tiered_better_than_by_first_touch() {
    let Some(lab) = Lab::find_all() else { return };
    let bfs = PROGRAMS.iter().find(|program| program.name == "bfs").expect("it is there");
    let (_, wrong) = check(&lab, bfs, &TIERINGS[..2]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Formats the table.
#[test]
fn real_programs() {
    // scripts/lab-programs.sh runs it.
    let Some(lab) = Lab::find_for("programs") else { return };
    let wanted = std::env::var("LAB_PROGRAMS").unwrap_or_default();
    let chosen = |program: &&Program| wanted.is_empty() || wanted.split(',').any(|name| name == program.name);
    let (lines, wrong): (Vec<String>, Vec<Vec<String>>) =
        PROGRAMS.iter().filter(chosen).map(|program| check(&lab, program, &TIERINGS)).unzip();
    if let Some(path) = std::env::var_os("LAB_TABLE") {
        std::fs::write(path, format!("{HEADER}{}\n\n{}", lines.join("\n"), reasons()))
            .expect("the table is written");
    }
    let wrong = wrong.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the known differences as a list.
fn reasons() -> String {
    let mut text = String::new();
    for program in &PROGRAMS {
        for (tiering, why) in program.apart {
            let _ = writeln!(text, "- {}, {tiering}: {}", program.name, why.text());
        }
    }
    text
}
