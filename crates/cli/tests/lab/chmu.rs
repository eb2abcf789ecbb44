//! CXL's hotness monitoring unit in the guest: its driver and NeoMem's policy find the hot pages through its
//! registers and its hot list, and the kernel moves them.

use serde_json::Value;

use crate::neoprof::{Counted, measured, small, warnings};
use crate::support::Lab;
use crate::tiering::moves;

/// Checks that unit, engine and kernel agree.
fn check_unit(run: &Value) {
    let (measured, device) = measured(run);
    assert_eq!((device.kind.as_str(), device.reads), ("chmu", measured.tiers[1].misses()), "each slow miss");
    let (engine, kernel) = moves(run);
    assert!(engine == kernel && kernel > 100, "the engine has moved {engine} pages, the kernel {kernel}");
    assert!(engine <= device.hot_pages && !warnings(run).contains("device: "), "{}", warnings(run));
}

#[test]
fn a_small_program_s_hot_pages_are_told_by_a_hotness_monitoring_unit() {
    let Some(lab) = Lab::find() else { return };
    let settings = ["--set", "neomem.threshold=2", "--set", "neomem.clear_interval=50ms"];
    let (guest, run) = small(&lab, &Counted::new("chmu", &[]).file, &settings);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    check_unit(&run);
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
