//! Machines and streams whose results can be computed by hand.

#![allow(dead_code, unreachable_pub)] // each test binary uses its part

use std::collections::BTreeMap;

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_machine::Profile;
use isotherm_policies::{Entry, find};
use isotherm_sim::{Access, Experiment, FastSize, INTERVALS, Input, Report, Stream, simulate};

/// Sets numbers of a machine.
pub fn machine(settings: &[(&str, &str)]) -> Profile {
    let mut profile = Profile::builtin("pact").expect("a built-in profile");
    for (path, value) in settings {
        profile.set(path, value).expect("a valid number");
    }
    profile
}

/// A TLB that holds every page.
pub const ENDLESS_TLB: (&str, &str) = ("tlb.first_entries", "1073741824");
/// A kernel that takes however many samples are asked for.
pub const UNTHROTTLED: [(&str, &str); 2] =
    [("costs.sample_rate_limit", "1000000000"), ("costs.sample_time_limit", "0%")];

/// Returns a machine with one core on which only latencies cost time: neither lines are prefetched nor pages
/// walked for, and samples are never throttled.
pub fn plain_machine() -> Profile {
    machine(&[
        ENDLESS_TLB,
        UNTHROTTLED[0],
        UNTHROTTLED[1],
        ("core.cores", "1"),
        ("core.l2_registers", "0"),
        ("core.l2_latency", "0"),
        ("tlb.second_latency", "0"),
        ("tier.0.loaded_latency_factor", "1"),
        ("tier.1.loaded_latency_factor", "1"),
        ("costs.reserve", "0%"),
    ])
}

/// Builds one access per page in the order of `pages`, each `instructions` after the one before.
pub fn stream(pages: impl IntoIterator<Item = u32>, count: u32, instructions: u32, dependence: u8) -> Stream {
    let access = |page| Access { page, instructions, thread: 0, dependence, ..Access::default() };
    Stream {
        accesses: pages.into_iter().map(access).collect(),
        pages: (0..u64::from(count)).map(|page| (0, page << 12)).collect(),
        threads: 1,
        ..Stream::default()
    }
}

/// Returns a seeded sequence of numbers below `bound`.
pub fn numbers(seed: u64, bound: u32) -> impl FnMut() -> u32 {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(bound)) as u32
    }
}

pub fn input(stream: Stream) -> Input {
    Input {
        name: "test".into(),
        workload: false,
        parameters: None,
        provenance: BTreeMap::new(),
        stream,
        ranges: Vec::new(),
        mappings: Vec::new(),
    }
}

/// Replays under policies given as `name` or `name:key=value,key=value`.
pub fn run(input: &Input, profile: &Profile, policies: &[&str], fast: &[&str], scale: f64) -> Report {
    let select = |text: &&str| {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let entry = find(name).expect("a known policy");
        let mut parameters = entry.parameters();
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            let (key, value) = setting.split_once('=').expect("key=value");
            parameters.set(key, value).expect("a valid parameter");
        }
        (entry, parameters)
    };
    run_entries(input, profile, policies.iter().map(select).collect(), fast, scale)
}

/// Replays under policies with their parameters.
pub fn run_entries(
    input: &Input,
    profile: &Profile,
    policies: Vec<(&'static Entry, Parameters)>,
    fast: &[&str],
    scale: f64,
) -> Report {
    let experiment = Experiment {
        policies,
        sizes: fast.iter().map(|text| FastSize::parse(text).expect("a size")).collect(),
        profile,
        seed: 1,
        scale: Scale { footprint: scale, time: scale },
        intervals: INTERVALS,
        version: "test",
        stop: None,
    };
    simulate(input, &experiment, &|| ()).expect("a valid experiment")
}
