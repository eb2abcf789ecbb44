//! Two runs of a deterministic machine give the same figures.

use serde_json::Value;

use crate::support::{Lab, target};

/// Fields of a result that depend on the host: wall time and paths.
const OF_THE_HOST: [&str; 2] = ["elapsed_seconds", "folder"];

fn run(lab: &Lab, tiering: &[&str]) -> (Vec<u8>, Value) {
    let options = ["--machine", "deterministic", "--start", "slow", "--fast", "8M", "--json"];
    let program = [&target(), "planted", "--size", "16M", "--operations", "1000000"];
    let guest = lab.run(&[tiering, &options].concat(), &program);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    let result: Value =
        serde_json::from_str(guest.err.lines().last().unwrap_or_default()).expect("our result");
    let mut run = result["runs"][0].clone();
    let fields = run.as_object_mut().expect("a run");
    for field in OF_THE_HOST {
        assert!(fields.remove(field).is_some(), "{field}");
    }
    (guest.out, run)
}

#[test]
fn two_runs_of_a_deterministic_machine_are_one() {
    let Some(lab) = Lab::find() else { return };
    let options = ["--policy", "lru", "--set", "lru.sampling_period=16"];
    let (output, first) = run(&lab, &options);
    let (again, second) = run(&lab, &options);
    let moved = first["engine"]["traffic"]["promotions"].as_u64().unwrap_or(0);
    assert!(moved > 1000 && !output.is_empty() && output == again, "{moved}");
    for (field, value) in first.as_object().expect("a run") {
        assert_eq!(value, &second[field], "{field}");
    }
    assert!(first["measured"]["accesses"].as_u64().is_some_and(|accesses| accesses > 1_000_000));
}
