//! NeoProf in the guest: driver, daemon and policy find the hot pages through the registers of the simulated
//! hardware (`make hw-library`) or its model, and the kernel moves them.

use std::path::Path;

use isotherm_lab::measured::{DeviceUses, Measured};
use serde_json::Value;

use crate::support::{BINARY, Lab, RunStats, root, target};
use crate::tiering::{
    FAST, HOT, NEAR, Outcome, PAGE_LINES, PAGES, PROGRAM, SHARE, check_moves, closed_form, misses_of, moves,
    run,
};

/// NeoMem with the paper's times and sizes for a footprint of 15 GB; these programs have 256 MiB.
pub(crate) const POLICY: [&str; 6] = ["--policy", "neomem", "--scale", "60", "--start", "slow"];
/// About as many misses as the planted program has.
pub(crate) const BTREE: [&str; 11] = [
    "btree",
    "--size",
    "256M",
    "--hot",
    "12.5%",
    "--operations",
    "6000000",
    "--move-after",
    "3000000",
    "--share",
    "90%",
];
/// Keys per node of that program's tree.
const KEYS: usize = 256;
/// Maximum cost of the daemon's polling as a share of one processor. Each page that it is told costs a read
/// more.
const DAEMON: f64 = 0.0005;

/// Whether the simulated hardware is built; reports its absence on standard error.
fn has_hardware() -> bool {
    let folder = Path::new(BINARY).parent().expect("a folder");
    let found = std::env::var_os("ISOTHERM_NEOPROF_RTL").is_some()
        || ["libisotherm_neoprof_rtl.so", "../hw/release/libisotherm_neoprof_rtl.so"]
            .iter()
            .any(|name| folder.join(name).exists());
    if !found {
        eprintln!("skipped: the simulated NeoProf is not built; make hw-library builds it (verilator)");
    }
    found
}

pub(crate) fn measured(run: &Value) -> (Measured, DeviceUses) {
    let measured: Measured =
        serde_json::from_value(run["measured"].clone()).expect("what the plugin counted");
    let device = measured.device.clone().expect("the machine has a device");
    eprintln!("{device:?}");
    (measured, device)
}

/// Returns the last value of a gauge of the policy.
fn gauge(engine: &Value, name: &str) -> f64 {
    let moments = engine["timeline"].as_array().expect("moments");
    let gauges = moments.iter().filter_map(|moment| moment["gauges"].as_array()).flatten();
    let mut values = gauges.filter(|gauge| gauge[0] == name).filter_map(|gauge| gauge[1].as_f64());
    values.next_back().unwrap_or_else(|| panic!("{name} is no number of the policy"))
}

/// Checks that hot pages reached the fast node before the move and after it.
pub(crate) fn check_ratios(outcome: &Outcome, expected: f64) {
    assert!(outcome.filling < NEAR, "memory starts on the slow node: {:.3}", outcome.filling);
    for (ratio, when) in [(outcome.after, "before the move"), (outcome.moved, "after it")] {
        assert!((ratio - expected).abs() < NEAR, "{ratio:.3} {when}, expected {expected:.3}");
    }
}

/// Checks that, and that device, engine and kernel agree.
fn check(outcome: &Outcome, expected: f64) {
    check_ratios(outcome, expected);
    check_device(&outcome.run, "neoprof-rtl");
}

/// Checks that device, engine and kernel agree.
fn check_device(run: &Value, kind: &str) {
    let (measured, device) = measured(run);
    let slow = measured.tiers[1].misses();
    assert_eq!(
        (device.kind.as_str(), device.reads, device.dropped),
        (kind, slow, 0),
        "each slow miss passes the device"
    );
    let engine = check_moves(run, 100);
    // The device reports a frame once between two clears. Of the pages that lie in them, one of hundreds was
    // promoted twice all the same; why is not known.
    assert!(device.resets > 2 && device.hot_again == 0 && engine <= device.hot_pages);
    let again = gauge(&run["engine"], "promoted-again");
    assert!(again <= 0.01 * engine as f64, "{again} of {engine} promotions");
    assert!(!warnings(run).contains("device: "), "{}", warnings(run));
}

/// Returns the engine's warnings except refused moves while a cpuset holds the program on the slow node.
pub(crate) fn warnings(run: &Value) -> String {
    run["engine"]["warnings"].to_string()
}

/// Returns the fast node's share of the B-tree's misses if it holds all hot leaves, the nodes above any leaf
/// (each of which misses more often than a hot leaf), and as many other leaves as fit.
pub(crate) fn closed_form_of_btree() -> f64 {
    // Counts how often a look-up of any key of a node touches each of its lines.
    let mut touched = [0.0; PAGE_LINES as usize];
    for key in 0..KEYS {
        let mut lines = [false; PAGE_LINES as usize];
        let (mut low, mut high) = (0, KEYS);
        while low < high {
            let middle = (low + high) / 2;
            lines[middle / 8] = true;
            if middle <= key { low = middle + 1 } else { high = middle }
        }
        lines[(KEYS + key) / 8] = true;
        touched.iter_mut().zip(lines).for_each(|(sum, line)| *sum += f64::from(u8::from(line)) / KEYS as f64);
    }
    let (hot, cold) = (SHARE + (1.0 - SHARE) * HOT / PAGES, (1.0 - SHARE) * (1.0 - HOT / PAGES));
    let inner = |leaves: f64| leaves / KEYS as f64;
    // For each line of a node: hot leaves, other leaves, and the nodes above them.
    let classes: [(f64, f64); 4 * PAGE_LINES as usize] = std::array::from_fn(|class| {
        let rate = touched[class / 4].max(1e-9);
        match class % 4 {
            0 => (HOT, hot * rate),
            1 => (PAGES - HOT, cold * rate),
            2 => (inner(HOT), hot * rate),
            _ => (inner(PAGES - HOT), cold * rate),
        }
    });
    let misses = misses_of(classes);
    let of = |kind: usize| misses.iter().skip(kind).step_by(4).sum::<f64>();
    assert!(
        of(3) / inner(PAGES - HOT) > of(0) / HOT,
        "a node above cold leaves is no hotter than a hot leaf"
    );
    let room = (FAST - HOT - inner(PAGES)) / (PAGES - HOT);
    (of(0) + of(2) + of(3) + of(1) * room) / misses.iter().sum::<f64>()
}

#[test]
fn the_closed_form_of_the_b_tree_is_between_the_hot_share_and_all() {
    assert!((SHARE..0.95).contains(&closed_form_of_btree()), "{}", closed_form_of_btree());
}

#[test]
fn gups_comes_to_the_closed_form_and_back_to_it_with_the_hardware_in_the_loop() {
    let (Some(lab), true) = (Lab::find_for("neoprof"), has_hardware()) else { return };
    let machine = Counted::new("neoprof-rtl", &[]);
    check(&run(&lab, &machine.file, &POLICY, &PROGRAM), closed_form());
}

#[test]
fn a_b_tree_does_with_the_hardware_in_the_loop() {
    let (Some(lab), true) = (Lab::find_for("neoprof"), has_hardware()) else { return };
    let machine = Counted::new("neoprof-rtl", &[]);
    check(&run(&lab, &machine.file, &POLICY, &BTREE), closed_form_of_btree());
}

/// A lab machine with instructions as its clock, so that nothing depends on the host's load.
pub(crate) struct Counted {
    pub(crate) file: String,
    /// Folder of the machine's file.
    _folder: tempfile::TempDir,
}

impl Counted {
    /// Replaces words of the machine's file.
    pub(crate) fn new(name: &str, changes: &[(&str, &str)]) -> Self {
        let file = root().join(format!("lab/machines/{name}.toml"));
        let text = std::fs::read_to_string(file).expect("the machine");
        let replaced = |text: String, (from, to): &(&str, &str)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        };
        let clock = [("deterministic = false", "deterministic = true")];
        let text = clock.iter().chain(changes).fold(text, replaced);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("counted.toml");
        std::fs::write(&file, text).expect("writable");
        Self { file: file.to_str().expect("UTF-8").into(), _folder: folder }
    }
}

#[test]
fn a_small_program_s_hot_pages_are_found() {
    let Some(lab) = Lab::find() else { return };
    let kind = if has_hardware() { "neoprof-rtl" } else { "neoprof" };
    let machine = Counted::new(kind, &[]);
    let (guest, run) = small(&lab, &machine.file, &["--set", "neomem.clear_interval=20ms"]);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    check_device(&run, kind);
}

#[test]
fn without_migration_the_daemon_costs_next_to_nothing() {
    let Some(lab) = Lab::find_for("neoprof") else { return };
    // Its processor time is its instructions, including those of the kernel on its behalf.
    let machine = Counted::new("neoprof", &[]);
    let policy = ["--policy", "neomem", "--scale", "1", "--set", "neomem.migrate=false", "--start", "slow"];
    let program = [
        "planted",
        "--size",
        "64M",
        "--hot",
        "12.5%",
        "--operations",
        "20000000",
        "--move-after",
        "16000000",
    ];
    let outcome = run(&lab, &machine.file, &policy, &program);
    let (measured, device) = measured(&outcome.run);
    let modelled = measured.modelled_ns as f64;
    let number = |name: &str| outcome.run["engine"].pointer(name).and_then(Value::as_f64).expect("a number");
    let (registers, processor) =
        (device.register_ns as f64 / modelled, number("/engine/cpu_ns") / number("/duration_ns"));
    // The program is shorter than an interval of clearing, in which a page is told once.
    let polls = device.register_reads - device.hot_pages;
    let polling = registers * polls as f64 / device.register_reads as f64;
    eprintln!(
        "of one processor: registers {:.4} %, without reported pages {:.4} %, instructions of the whole engine \
        {:.3} %",
        100.0 * registers,
        100.0 * polling,
        100.0 * processor
    );
    assert_eq!((moves(&outcome.run), device.hot_again), ((0, 0), 0));
    assert!(polls > 100 && polling < DAEMON, "{polling}");
}

/// Runs a small program.
pub(crate) fn small(lab: &Lab, machine: &str, settings: &[&str]) -> (RunStats, Value) {
    let options = ["--machine", machine, "--fast", "16M", "--json"];
    let program = ["planted", "--size", "16M", "--hot", "12.5%", "--operations", "2000000"];
    let target = target();
    let words = [&[target.as_str()], &program[..]].concat();
    let guest = lab.run(&[&options, &POLICY[..], settings].concat(), &words);
    let result: Value = serde_json::from_str(guest.err.lines().last().unwrap_or_default()).expect("JSON");
    let run = result["runs"][0].clone();
    (guest, run)
}

/// Runs a small program while a device fails.
fn with_fault(lab: &Lab, changes: &[(&str, &str)], settings: &[&str]) -> (RunStats, Value) {
    small(lab, &Counted::new("neoprof", changes).file, settings)
}

#[test]
fn a_device_that_goes_wrong_is_told_in_one_line_and_the_program_goes_on() {
    let Some(lab) = Lab::find_for("neoprof") else { return };
    let fault = |name: &str| format!("kind = \"neoprof\"\nfault = \"{name}\"");
    for (name, expected) in [
        ("vanishes", "it has vanished (its registers read all ones)"),
        ("stuck", "its hot page stands still at 0x3"),
    ] {
        let (guest, run) = with_fault(&lab, &[("kind = \"neoprof\"", &fault(name))], &[]);
        assert_eq!(guest.code, Some(0), "{}", guest.err);
        assert!(warnings(&run).contains(expected), "{name}: {}", warnings(&run));
    }
    // An unknown version of the device ends the run before the program begins.
    let (guest, run) = with_fault(&lab, &[("kind = \"neoprof\"", &fault("version"))], &[]);
    assert!(guest.err.contains("version 3 of its registers; this driver speaks 1"), "{}", guest.err);
    assert_eq!((guest.code, run["engine"].is_null()), (Some(2), true));
}

#[test]
fn a_hot_page_buffer_that_overflows_is_counted_and_loses_no_page_for_good() {
    let Some(lab) = Lab::find_for("neoprof") else { return };
    let small = ("[guest]", "\"device.hot_entries\" = { value = \"16\", source = \"a test\" }\n\n[guest]");
    let settings = ["--set", "neomem.threshold=2", "--set", "neomem.clear_interval=50ms"];
    let (guest, run) = with_fault(&lab, &[small], &settings);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    let refused = run["measured"]["device"]["hot_refused"].as_u64().expect("a number");
    let promoted = run["engine"]["traffic"]["promotions"].as_u64().expect("a number");
    assert!(refused > 0 && promoted > 100 && !warnings(&run).contains("device: "), "{run}");
}
