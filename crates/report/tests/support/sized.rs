//! A sizing of a small stream, computed by the simulator.

use isotherm_core::parameters::Scale;
use isotherm_machine::Profile;
use isotherm_sim::{Access, Input, SizeExperiment, SizeReport, Stream, size};

const PAGES: u32 = 3000;

/// Returns a sizing of dependent accesses, most of them to few pages, under one policy of each kind.
pub fn sizing(budget: f64) -> SizeReport {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 31)
    };
    let mut page = || (f64::from(PAGES) * random().powi(4)) as u32;
    let access = |page| Access { page, instructions: 30, thread: 0, dependence: 1, ..Access::default() };
    let stream = Stream {
        accesses: (0..120_000).map(|_| access(page())).collect(),
        pages: (0..u64::from(PAGES)).map(|page| (0, page << 12)).collect(),
        threads: 1,
        ..Stream::default()
    };
    let name = "folder/small.trace".into();
    let input = Input {
        name,
        workload: false,
        parameters: None,
        provenance: [("command".to_owned(), "small".to_owned())].into(),
        stream,
        ranges: Vec::new(),
        mappings: Vec::new(),
    };
    let profile = Profile::builtin("pact").expect("a built-in profile");
    let policies = ["first-touch", "freqtier", "oracle", "belady"];
    let entry = |name: &str| isotherm_policies::find(name).expect("a known policy");
    let experiment = SizeExperiment {
        policies: policies.iter().map(|name| (entry(name), entry(name).parameters())).collect(),
        profile: &profile,
        budget,
        seed: 1,
        seeds: 3,
        sample_accesses: 30_000,
        scale: Scale { footprint: 1000.0, time: 100.0 },
        length: None,
        version: "test",
        stop: None,
    };
    size(&input, &experiment, &|| ()).expect("a valid experiment")
}
