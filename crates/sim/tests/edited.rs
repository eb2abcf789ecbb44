//! A policy of the tree that `make edit` built as a library runs as the policy itself.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::Command;

use isotherm_core::parameters::Scale;
use isotherm_machine::Profile;
use isotherm_sim::{Access, Experiment, FastSize, Input, RunResult, Stream, simulate};

#[test]
fn a_policy_of_the_tree_as_a_library_has_its_results() {
    let test = env::current_exe().expect("this test");
    // The test lies in target/debug/deps.
    let target = test.ancestors().nth(3).expect("the target folder");
    let build = ["build", "--offline", "-p", "isotherm-policies", "--example", "edited", "--target-dir"];
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(build).arg(target).env("ISOTHERM_EDIT", "lru");
    let built = cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR"))).output().expect("cargo runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let library = isotherm_plugin::load(&target.join("debug/examples/libedited.so")).expect("a policy");
    let lru = isotherm_policies::find("lru").expect("a policy");

    let access = |index: u64| Access {
        page: (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as u32
            % if index.is_multiple_of(3) { 4096 } else { 64 },
        instructions: 20,
        ..Access::default()
    };
    let stream = Stream {
        accesses: (0..2_000_000).map(access).collect(),
        pages: (0..4096).map(|page| (0, page << 12)).collect(),
        threads: 1,
        ..Stream::default()
    };
    let input = Input {
        name: "planted".into(),
        workload: true,
        parameters: None,
        provenance: BTreeMap::new(),
        stream,
        ranges: Vec::new(),
        mappings: Vec::new(),
    };
    let experiment = Experiment {
        policies: [library, lru].map(|entry| (entry, entry.parameters())).to_vec(),
        sizes: vec![FastSize::parse("1:8").expect("a size")],
        profile: &Profile::builtin("sapphire-rapids").expect("built in"),
        seed: 1,
        scale: Scale { footprint: 1000.0, time: 1000.0 },
        intervals: 10,
        version: "test",
        stop: None,
    };
    let runs = simulate(&input, &experiment, &|| ()).expect("both run").runs;
    let [edited, itself] = <[RunResult; 2]>::try_from(runs).expect("two runs");
    assert!(itself.promotions > 0 && itself.samples > 1000, "{itself:?}");
    assert_eq!((edited.policy.as_str(), itself.policy.as_str()), ("edited", "lru"));
    assert_eq!(edited.parameters.iter().count(), itself.parameters.iter().count());
    let moved =
        |run: &RunResult| (run.modelled_ns, run.samples, run.promotions, run.demotions, run.metadata_bytes);
    assert_eq!(moved(&edited), moved(&itself));
    assert_eq!(edited.page_tiers, itself.page_tiers);
}
