//! Faults of a real kernel while pages move: the program's checksum holds, and the engine reports each fault.
//!
//! `faults.sh` runs the faults one after the other in one guest, under LRU with many samples, which moves the
//! most of all policies, and prints the kernel's count of moved pages for each.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{BINARY, Lab, ok, root, target};

/// Page counts of the small machine.
const FAULTS: [&str; 14] = [
    "nothing",
    "full",
    "hugetlb",
    "pinned",
    "locked",
    "forked",
    "written",
    "shared",
    "merged",
    "limited",
    "killed_by_limit",
    "cpuset",
    "program_killed",
    "engine_killed",
];
/// Path of the run's folder in the guest.
const SHARE: &str = "/run/isotherm-lab/share";
/// Bounds for many and few of the program's 4096 pages.
const MANY: u64 = 1000;
const FEW: u64 = 100;

/// Result of one fault.
struct Fault {
    name: String,
    facts: BTreeMap<String, u64>,
    output: String,
    /// The engine's summary; `null` if it was killed.
    engine: Value,
}

impl Fault {
    fn read(share: &Path, name: &str) -> Self {
        let text = |ending: &str| std::fs::read_to_string(share.join(format!("{name}.{ending}")));
        let facts = text("facts").unwrap_or_default();
        let facts = facts.lines().filter_map(|line| {
            let (fact, value) = line.split_once(' ')?;
            Some((fact.to_owned(), value.parse::<f64>().ok()? as u64))
        });
        let engine = text("json").ok().and_then(|text| serde_json::from_str(&text).ok());
        let output = text("out").unwrap_or_default();
        let fault =
            Self { name: name.into(), facts: facts.collect(), output, engine: engine.unwrap_or_default() };
        eprintln!("{name}: {:?}, {}, {}", fault.facts, fault.output.trim(), fault.engine["traffic"]);
        fault
    }

    #[track_caller]
    fn fact(&self, name: &str) -> u64 {
        *self.facts.get(name).unwrap_or_else(|| panic!("{}: no {name} in {:?}", self.name, self.facts))
    }

    #[track_caller]
    fn traffic(&self, what: &str) -> u64 {
        let found = self.engine.pointer(&format!("/traffic/{what}")).and_then(Value::as_u64);
        found.unwrap_or_else(|| panic!("{}: the engine says nothing of {what}: {}", self.name, self.engine))
    }

    fn moved(&self) -> u64 {
        self.traffic("promotions") + self.traffic("demotions")
    }

    fn refused(&self, why: &str) -> u64 {
        self.traffic(&format!("refused/{why}"))
    }

    /// Checks that the program's output is the same as without moves.
    #[track_caller]
    fn is_whole(&self, arguments: &[&str]) {
        let native = ok(Command::new(target()).args(["planted", "--hot", "25%"]).args(arguments));
        assert_eq!(self.output, String::from_utf8_lossy(&native), "{}", self.name);
    }

    /// Checks that it ended by SIGKILL before any output.
    #[track_caller]
    fn was_killed(&self) {
        assert_eq!((self.fact("status"), self.output.as_str()), (137, ""), "{}", self.name);
    }

    /// Checks that the kernel's count of moves equals the engine's.
    #[track_caller]
    fn agrees_with_the_kernel(&self) {
        assert_eq!(self.moved(), self.fact("moved"), "{}", self.name);
    }

    /// Checks the same where the kernel replaces or moves pages meanwhile: one that lies on its target node
    /// already counts for the engine alone, one that is gone before the engine asks for the kernel alone.
    #[track_caller]
    fn nearly_agrees_with_the_kernel(&self) {
        let (engine, kernel) = (self.moved(), self.fact("moved"));
        assert!(kernel > MANY && engine.abs_diff(kernel) < FEW, "{}: {engine} {kernel}", self.name);
    }

    /// Checks that moves were refused for this reason and that the engine explains it.
    #[track_caller]
    fn is_told(&self, words: &str) {
        let told = self.engine["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        assert!(
            told.into_iter().any(|text| text.contains(words)),
            "{}: {}",
            self.name,
            self.engine["warnings"]
        );
    }
}

/// Runs the faults in one guest.
fn run(lab: &Lab, machine: &str, names: &[&str]) -> Vec<Fault> {
    let folder = lab.new_folder();
    let script = root().join("crates/cli/tests/lab/faults.sh");
    let (script, place) = (script.to_str().expect("UTF-8"), folder.to_str().expect("UTF-8"));
    let options = ["--machine", machine, "--kernel-tiering", "none", "--quiet", "--folder", place];
    let target = target();
    let program = [&["sh", script, BINARY, &target, SHARE], names].concat();
    let guest = Lab::verb("run", &[&options[..], &["--time-limit", "5min"]].concat(), &program, &[]);
    assert_eq!((guest.code, guest.out.as_slice()), (Some(0), &b"done\n"[..]), "{}", guest.err);
    names.iter().map(|name| Fault::read(&folder.join("share"), name)).collect()
}

const USUAL: [&str; 4] = ["--size", "16M", "--operations", "1000000"];
const READ_ONLY: [&str; 5] = ["--size", "16M", "--operations", "1000000", "--read-only"];

#[test]
fn memory_stays_whole_and_the_engine_tells_what_happened() {
    let Some(lab) = Lab::find_all() else { return };
    for fault in run(&lab, "small", &FAULTS) {
        let refused = |why: &str| fault.refused(why);
        match fault.name.as_str() {
            "engine_killed" => assert!(fault.engine.is_null(), "it was killed"),
            "written" | "merged" => fault.nearly_agrees_with_the_kernel(),
            _ => fault.agrees_with_the_kernel(),
        }
        match fault.name.as_str() {
            "killed_by_limit" | "program_killed" => fault.was_killed(),
            "forked" | "shared" | "merged" => fault.is_whole(&READ_ONLY),
            "full" => fault.is_whole(&["--size", "48M", "--operations", "2000000"]),
            "engine_killed" => fault.is_whole(&["--size", "16M", "--operations", "3000000"]),
            _ => fault.is_whole(&USUAL),
        }
        match fault.name.as_str() {
            "nothing" => {
                assert!(fault.moved() > MANY);
                let refused = refused("no_room") + refused("busy") + refused("denied");
                assert!(refused < FEW, "a page of zeros may be asked for: {refused}");
            }
            // A locked page moves and stays locked.
            "locked" => assert!(fault.moved() > MANY && refused("busy") < FEW),
            // Of the 96 MiB that were asked for, the engine counts on what the kernel can give.
            "full" => {
                let fast = fault.engine.pointer("/tiers/0/capacity_bytes").and_then(Value::as_u64);
                assert!(fast.is_some_and(|fast| fast < 48 << 20) && fault.moved() > FEW, "{fast:?}");
            }
            // The engine skips huge pages of the reserve, which it would otherwise move 512 times.
            "hugetlb" => {
                let samples = fault.engine["samples_foreign"].as_u64().unwrap_or(0);
                assert!(
                    fault.fact("pages") == 8 && samples > MANY && fault.moved() < FEW,
                    "{}",
                    fault.engine
                );
            }
            "pinned" => assert!(refused("busy") > MANY && fault.moved() < FEW),
            "forked" | "shared" => {
                assert!(refused("denied") > MANY && fault.moved() < FEW);
                fault.is_told("pages that several processes map");
            }
            // Written pages belong to the parent alone.
            "written" => assert!(fault.moved() > MANY),
            "merged" => {
                assert!(fault.fact("shared") > MANY && refused("denied") > FEW);
                fault.is_told("pages that several processes map");
            }
            "limited" => assert!(fault.moved() > MANY && fault.fact("peak") <= 17 << 20),
            "killed_by_limit" => assert_eq!(fault.fact("oom"), 1),
            "cpuset" => {
                assert!(refused("denied") > MANY && fault.moved() == 0);
                fault.is_told("outside of the program's cpuset");
            }
            "program_killed" => assert!(fault.moved() >= 200),
            "engine_killed" => {
                let facts = ["status", "lives", "afterwards"].map(|name| fault.fact(name));
                assert!(facts == [137, 1, 0] && fault.fact("moved") >= 200);
            }
            other => panic!("{other} is not judged"),
        }
    }
}

#[test]
fn a_slow_node_may_go_away() {
    let Some(lab) = Lab::find_all() else { return };
    for fault in run(&lab, "cxl", &["removed"]) {
        fault.is_whole(&["--size", "16M", "--operations", "16000000"]);
        // The node's 512 MiB are offlined: the kernel has moved the program's pages from there.
        assert!(fault.fact("offline") == 4 && fault.fact("removed") > FEW, "{:?}", fault.facts);
        fault.nearly_agrees_with_the_kernel();
        fault.is_told("moving pages to a node without memory");
    }
}
