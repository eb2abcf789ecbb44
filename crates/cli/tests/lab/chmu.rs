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
