//! CXL's hotness monitoring unit in the guest: its driver and NeoMem's policy find the hot pages through its
//! registers and its hot list, and the kernel moves them.

use serde_json::Value;

use crate::neoprof::{BTREE, Counted, POLICY, check_ratios, closed_form_of_btree, measured, small, warnings};
use crate::support::Lab;
use crate::tiering::{PROGRAM, closed_form, moves, run};

/// A unit has no histogram, so the threshold is fixed: a hot page has about 90 accesses between two clears, a
/// cold one 1 or 2.
const FIXED: [&str; 2] = ["--set", "neomem.threshold=16"];
/// Each epoch clears the counts, and one that is cut short tells nothing.
const NO_CLEARS: [&str; 2] = ["--set", "neomem.clear_interval=1h"];

/// Checks that unit, engine and kernel agree; returns how often the list was full.
fn check_unit(run: &Value, kind: &str) -> u64 {
    let (measured, device) = measured(run);
    assert_eq!((device.kind.as_str(), device.reads), (kind, measured.tiers[1].misses()), "each slow miss");
    let (engine, kernel) = moves(run);
    assert!(engine == kernel && kernel > 100, "the engine has moved {engine} pages, the kernel {kernel}");
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
