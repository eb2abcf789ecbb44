//! Checks the papers' files: names exist (policies may be planned), settings are valid, values are in range.

use std::collections::BTreeSet;

use isotherm_core::parse_share;
use isotherm_machine::Profile;
use isotherm_score::{Metric, Paper, papers};
use isotherm_sim::FastSize;

#[test]
fn every_workload_and_its_settings_are_valid() {
    for paper in papers() {
        for (id, ours) in &paper.workload {
            assert!(!ours.why.is_empty(), "{} {id}: why these sizes?", paper.name);
            for size in ours.sizes.values() {
                FastSize::parse(size).expect("a size of the fast tier");
                assert!(parse_share(size).is_some(), "{id}: {size} depends on the footprint");
            }
            let all = isotherm_workloads::ALL.iter().copied();
            let named: Vec<_> =
                all.filter(|workload| ["*", workload.name].contains(&ours.name.as_str())).collect();
            assert!(!named.is_empty(), "{}: no workload {}", paper.name, ours.name);
            for (workload, set) in named.iter().flat_map(|&one| [(one, &ours.set), (one, &ours.quick)]) {
                let mut parameters = workload.parameters();
                set.iter().for_each(|(key, value)| parameters.set(key, value).expect("a valid setting"));
                workload.build(&parameters, 1).expect("parameters that fit each other");
            }
        }
    }
}

/// Shares of the peak while building a graph were taken of the trials' memory, half as large.
#[test]
fn gaps_fast_tiers_are_shares_of_the_memory_that_lives_in_trials() {
    let gigabytes = [("1:32", 16.0), ("1:16", 32.0), ("1:8", 64.0), ("1:4", 128.0)];
    for paper in papers().iter().filter(|paper| ["freqtier", "hybridtier"].contains(&paper.name.as_str())) {
        for (id, ours) in paper.workload.iter().filter(|(_, ours)| ours.name.starts_with("gapbs-")) {
            let lives = ours.reference.as_deref().and_then(|text| text.strip_suffix('G')).expect("gigabytes");
            let lives: f64 = lives.parse().expect("a number");
            let workload = isotherm_workloads::find(&ours.name).expect("it exists");
            let small = workload.reference_footprint.expect("a footprint").0 as f64 / 1e9;
            // 2^31 vertices do not fit the 4 bytes that ours have; pointers stay the same.
            assert!((1.5..2.0).contains(&(lives / small)), "{id}: {lives} GB against {small} GB");
            for (size, of) in gigabytes {
                let Some(share) = ours.sizes.get(size).and_then(|share| parse_share(share)) else { continue };
                assert!((share * lives / of - 1.0).abs() < 0.01, "{id} at {size}: {share}");
            }
        }
    }
}

#[test]
fn every_policy_and_its_settings_are_valid() {
    for paper in papers() {
        for (id, system) in &paper.system {
            let Ok(policy) = isotherm_policies::find(&system.policy) else {
                panic!("{} {id}: no policy {}", paper.name, system.policy);
            };
            for (key, value) in &system.set {
                let value = value.replace("*fast", "000");
                policy.parameters().set(key, &value).expect("a valid setting");
            }
        }
    }
}

#[test]
fn every_machine_exists_and_takes_the_numbers_that_effects_set() {
    for paper in papers() {
        let machines = paper.comparison.iter().filter_map(|comparison| comparison.machine.as_deref());
        machines
            .chain([paper.machine.as_str()])
            .for_each(|name| drop(Profile::builtin(name).expect("a machine")));
        for effect in &paper.effect {
            let mut profile = Profile::builtin(&paper.machine).expect("a machine");
            effect.machine.iter().for_each(|(path, value)| profile.set(path, value).expect("a number"));
            profile.check().expect("numbers that fit each other");
            let switched = effect.machine.len() + effect.set.len() + effect.workload_set.len();
            assert!(switched > 0 || effect.scale.is_some() || effect.huge, "{} switches nothing", effect.id);
        }
    }
}

#[test]
fn ids_are_unique_and_begin_with_their_paper() {
    let mut ids = BTreeSet::new();
    for paper in papers() {
        let comparisons = paper.comparison.iter().map(|comparison| &comparison.id);
        for id in comparisons.chain(paper.effect.iter().map(|effect| &effect.id)) {
            assert!(id.starts_with(&format!("{}.", paper.name)), "{id}");
            assert!(ids.insert(id.clone()), "{id} twice");
        }
        assert!((2..=5).contains(&paper.effect.len()), "{}: two to five effects", paper.name);
    }
}

/// Checks that everything that a comparison names is in its paper's file.
fn check_names(paper: &Paper) {
    for one in &paper.comparison {
        let known = |system: &String| assert!(one.systems.contains(system), "{}: {system}", one.id);
        one.systems
            .iter()
            .for_each(|system| assert!(paper.system.contains_key(system), "{}: {system}", one.id));
        for workload in &one.workloads {
            let ours = paper.workload.get(workload).unwrap_or_else(|| panic!("{}: {workload}", one.id));
            one.sizes.iter().for_each(|size| assert!(ours.sizes.contains_key(size), "{}: {size}", one.id));
            assert!(one.metric != Metric::Adaptation || ours.change_at.is_some(), "{}: no change", one.id);
            let every = ours.name == "*";
            assert!(!every || one.metric == Metric::WorkloadStalls, "{}: {workload} is no run", one.id);
            assert!(one.metric != Metric::Metadata || ours.reference.is_some(), "{}: no footprint", one.id);
        }
        for ordering in &one.orderings {
            known(&ordering.better);
            ordering.than.iter().for_each(known);
            assert!(
                !ordering.than.contains(&ordering.better),
                "{}: {} beats itself",
                one.id,
                ordering.better
            );
            let named = ordering.workloads.iter().flatten();
            named.for_each(|workload| assert!(one.workloads.contains(workload), "{}: {workload}", one.id));
            let sizes = ordering.sizes.iter().flatten().chain(&ordering.than_size);
            sizes.for_each(|size| assert!(one.sizes.contains(size), "{}: {size}", one.id));
        }
        for value in &one.values {
            known(&value.system);
            value.baseline.iter().filter(|name| *name != "best").for_each(known);
            value
                .workload
                .iter()
                .for_each(|name| assert!(one.workloads.contains(name), "{}: {name}", one.id));
            value.size.iter().for_each(|size| assert!(one.sizes.contains(size), "{}: {size}", one.id));
        }
        one.quick_sizes.iter().flatten().for_each(|size| assert!(one.sizes.contains(size), "{}", one.id));
    }
}

#[test]
fn comparisons_name_only_what_their_file_defines() {
    papers().iter().for_each(check_names);
}

#[test]
fn values_are_in_the_range_of_their_metric() {
    for one in papers().iter().flat_map(|paper| &paper.comparison) {
        assert!(one.after.is_none_or(|after| (0.0..1.0).contains(&after)), "{}", one.id);
        let cells = one.values.iter().filter(|value| value.baseline.is_none());
        for value in cells {
            let percent = matches!(
                one.metric,
                Metric::Performance
                    | Metric::HitRatio
                    | Metric::Agreement
                    | Metric::Metadata
                    | Metric::Saturated
            );
            let range = if one.metric.correlates() {
                -1.0..=1.0
            } else if percent {
                0.0..=100.0
            } else {
                0.0..=1e9
            };
            assert!(range.contains(&value.value), "{}: {}", one.id, value.value);
        }
        let told = !one.values.is_empty() || !one.orderings.is_empty() || one.not_yet.is_some();
        assert!(told, "{} compares nothing", one.id);
    }
}
