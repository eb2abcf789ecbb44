//! CXL's hotness monitoring unit in the guest: its driver and NeoMem's policy find the hot pages through its
//! registers and its hot list, and the kernel moves them. `isotherm` counts slow accesses by it.

use std::path::Path;

use serde_json::Value;

use crate::neoprof::{BTREE, Counted, POLICY, check_ratios, closed_form_of_btree, measured, small, warnings};
use crate::support::{BINARY, Lab};
use crate::tiering::{PROGRAM, check_moves, closed_form, run};

/// A unit has no histogram, so the threshold is fixed: a hot page has about 90 accesses between two clears, a
/// cold one 1 or 2.
const FIXED: [&str; 2] = ["--set", "neomem.threshold=16"];
/// Each epoch clears the counts, and one that is cut short tells nothing.
const NO_CLEARS: [&str; 2] = ["--set", "neomem.clear_interval=1h"];

/// Checks that unit, engine and kernel agree; returns how often the list was full.
fn check_unit(run: &Value, kind: &str) -> u64 {
    let (measured, device) = measured(run);
    assert_eq!((device.kind.as_str(), device.reads), (kind, measured.tiers[1].misses()), "each slow miss");
    let engine = check_moves(run, 100);
    assert!(engine <= device.hot_pages && !warnings(run).contains("device: "), "{}", warnings(run));
    device.hot_refused
}

#[test]
fn a_small_program_s_hot_pages_are_told_by_a_hotness_monitoring_unit() {
    let Some(lab) = Lab::find() else { return };
    let settings = ["--set", "neomem.threshold=2", "--set", "neomem.clear_interval=50ms"];
    let (guest, run) = small(&lab, &Counted::new("chmu", &[]).file, &settings);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    check_unit(&run, "chmu");
}

#[test]
fn gups_comes_to_the_closed_form_and_back_to_it() {
    let Some(lab) = Lab::find_for("neoprof") else { return };
    let outcome = run(&lab, &Counted::new("chmu", &[]).file, &[&POLICY[..], &FIXED].concat(), &PROGRAM);
    check_ratios(&outcome, closed_form());
    check_unit(&outcome.run, "chmu");
}

#[test]
fn a_b_tree_does() {
    let Some(lab) = Lab::find_for("neoprof") else { return };
    let outcome = run(&lab, &Counted::new("chmu", &[]).file, &[&POLICY[..], &FIXED].concat(), &BTREE);
    check_ratios(&outcome, closed_form_of_btree());
    check_unit(&outcome.run, "chmu");
}

#[test]
fn by_epochs_gups_does_although_an_epoch_has_more_hot_pages_than_the_list_holds() {
    let Some(lab) = Lab::find_for("neoprof") else { return };
    let machine = Counted::new("chmu", &[("kind = \"chmu\"", "kind = \"chmu-epochs\"")]);
    let outcome = run(&lab, &machine.file, &[&POLICY[..], &FIXED, &NO_CLEARS].concat(), &PROGRAM);
    check_ratios(&outcome, closed_form());
    assert!(check_unit(&outcome.run, "chmu-epochs") > 0, "8,192 hot pages, 1,023 entries");
}

/// Embedding bags: scattered rows by a power law, 32 MiB of them.
const BAGS: [&str; 4] = ["+", "dlrm", "footprint=32M", "operations=60000"];

#[test]
fn isotherm_counts_slow_accesses_by_a_unit_and_brings_up_the_hot_rows() {
    let Some(lab) = Lab::find_for("neoprof") else { return };
    let native = Path::new(BINARY).with_file_name("examples").join("native");
    let machine = Counted::new("chmu", &[]);
    let options = ["--machine", &machine.file, "--policy", "isotherm", "--fast", "7M", "--json"];
    let guest = lab.run(&options, &[&[native.to_str().expect("UTF-8")], &BAGS[..]].concat());
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    let line = guest.err.lines().last().expect("our result");
    let run = serde_json::from_str::<Value>(line).expect("JSON")["runs"][0].clone();
    let told = check_unit(&run, "chmu");
    assert_eq!(told, 0, "the list is never full");
    let (measured, device) = measured(&run);
    let part = |from, to| measured.history.hit_ratio(from, to).expect("a history");
    let (first, last) = (part(0.1, 0.2), part(0.9, 1.0));
    eprintln!("embedding bags: hit ratio {first:.3}, later {last:.3}; {} pages told", device.hot_pages);
    assert!(device.hot_again > 1000, "it tells pages again: {}", device.hot_again);
    assert!(first < 0.1 && last > 0.3, "{first:.3} {last:.3}");
}

#[test]
fn a_unit_that_goes_wrong_is_told_in_one_line_and_the_program_goes_on() {
    let Some(lab) = Lab::find_for("neoprof") else { return };
    let settings = ["--set", "neomem.threshold=2", "--set", "neomem.clear_interval=20ms"];
    let with = |fault: &str| {
        let fault = format!("kind = \"chmu\"\nfault = \"{fault}\"");
        small(&lab, &Counted::new("chmu", &[("kind = \"chmu\"", &fault)]).file, &settings)
    };
    for (fault, expected) in [
        ("vanishes", "it has vanished (its registers read all ones)"),
        ("stuck", "its status stands still at "),
    ] {
        let (guest, run) = with(fault);
        assert_eq!(guest.code, Some(0), "{}", guest.err);
        assert!(warnings(&run).contains(expected), "{fault}: {}", warnings(&run));
    }
    let (guest, run) = with("version");
    assert!(guest.err.contains("version 3 of its registers; this driver speaks 1"), "{}", guest.err);
    assert_eq!((guest.code, run["engine"].is_null()), (Some(2), true));
}
