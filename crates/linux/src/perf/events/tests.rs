use tempfile::TempDir;

use super::super::pmu::tests::{CORE, tree, write};
use super::*;

/// Maps local DRAM to tier 0 and `slow` to tier 1.
fn choice(slow: Memory) -> Choice {
    let tiers = TierMap::default().with(Memory::LocalDram, TierId(0)).with(slow, TierId(1));
    Choice { tiers, latency: None }
}

fn intel(root: &TempDir, model: Model, choice: Choice) -> Result<SourceEvents, LinuxError> {
    SourceEvents::pmu(root.path(), Vendor::Intel, model, choice)
}

fn configs(specs: &[EventSpec]) -> Vec<(u64, Option<TierId>)> {
    specs.iter().map(|spec| (spec.encoding.config[0], spec.tier)).collect()
}

/// The raw numbers are those of published tiering systems: HeMem, Memtis, HybridTier, PACT.
#[test]
fn each_model_samples_the_events_that_published_systems_use() {
    let root = tree(CORE);
    let (fast, slow) = (Some(TierId(0)), Some(TierId(1)));
    let cases = [
        (Model::SkylakeSp, Memory::RemoteDram, vec![(0x1d3, fast), (0x2d3, slow)]),
        (Model::CascadeLake, Memory::LocalPmem, vec![(0x1d3, fast), (0x80d1, slow)]),
        (Model::CooperLake, Memory::LocalPmem, vec![(0x1d3, fast), (0x80d1, slow)]),
        (Model::IceLakeSp, Memory::RemotePmem, vec![(0x1d3, fast), (0x10d3, slow)]),
        (Model::SapphireRapids, Memory::RemoteDram, vec![(0x1d3, fast), (0x2d3, slow)]),
        (Model::EmeraldRapids, Memory::RemoteDram, vec![(0x1d3, fast), (0x2d3, slow)]),
        (Model::GraniteRapids, Memory::LocalCxl, vec![(0x1d3, fast), (0x80d1, slow)]),
    ];
    for (model, memory, each) in cases {
        let events = intel(&root, model, choice(memory)).expect("in the table");
        assert_eq!(configs(&events.each_tier), each, "{}", model.name());
        assert_eq!(configs(&events.all_tiers), [(0x20d1, None)], "{}", model.name());
        let stores = events.stores.expect("in the table");
        assert_eq!((stores.encoding.config[0], stores.operation), (0x82d0, Operation::Store));
        assert_eq!((stores.precise, stores.min_precise), (3, 1));
    }
}

#[test]
fn a_memory_that_the_model_cannot_tell_apart_has_no_event() {
    let root = tree(CORE);
    for (model, memory) in [
        (Model::SkylakeSp, Memory::LocalPmem),
        (Model::SapphireRapids, Memory::LocalCxl),
        (Model::EmeraldRapids, Memory::LocalPmem),
        // Counted, but its samples have no address.
        (Model::GraniteRapids, Memory::RemoteCxl),
    ] {
        let events = intel(&root, model, choice(memory)).expect("local DRAM remains");
        assert_eq!(configs(&events.each_tier), [(0x1d3, Some(TierId(0)))], "{}", model.name());
    }
}

#[test]
fn load_latency_takes_a_threshold_and_the_leader_that_sysfs_names() {
    let root = tree(CORE);
    let slow = Choice { latency: Some(64), ..choice(Memory::RemoteDram) };
    let ice_lake = intel(&root, Model::IceLakeSp, slow).expect("in the table").all_tiers;
    assert_eq!(ice_lake[0].encoding.config, [0x1cd, 64, 0, 0]);
    assert_eq!((ice_lake[0].leader, ice_lake[0].format), (None, Format::DataSource));
    assert!(
        ice_lake[0].sample_type(true) & sample::DATA_SRC != 0
            && ice_lake[0].sample_type(true) & sample::WEIGHT != 0
    );

    // Sapphire Rapids: `MEM_LOADS_AUX`, event 0x03 with umask 0x82.
    write(root.path(), "cpu/events/mem-loads-aux", "event=0x03,umask=0x82");
    let sapphire = intel(&root, Model::SapphireRapids, slow).expect("in the table").all_tiers;
    assert_eq!(sapphire[0].leader, Some(Encoding { kind: 4, config: [0x8203, 0, 0, 0] }));
    let events = intel(&root, Model::SapphireRapids, choice(Memory::RemoteDram)).expect("in the table");
    assert!(events.all_tiers.iter().chain(&events.each_tier).all(|spec| spec.leader.is_none()));
}

#[test]
fn ibs_counts_ops_and_filters_where_it_can() {
    let zen3 = tree(&[("ibs_op/type", "11"), ("ibs_op/format/cnt_ctl", "config:19")]);
    let zen4 = tree(&[
        ("ibs_op/type", "11"),
        ("ibs_op/format/cnt_ctl", "config:19"),
        ("ibs_op/format/l3missonly", "config:16"),
    ]);
    for (root, config) in [(&zen3, 1 << 19), (&zen4, 1 << 19 | 1 << 16)] {
        let events = SourceEvents::pmu(root.path(), Vendor::Amd, Model::Zen4, choice(Memory::LocalCxl));
        let op = events.expect("there").all_tiers.remove(0);
        assert_eq!(op.encoding, Encoding { kind: 11, config: [config, 0, 0, 0] });
        assert_eq!((op.period_step, op.format), (16, Format::Ibs));
        assert!(op.sample_type(true) & sample::RAW != 0);
    }
}

#[test]
fn machines_without_a_pmu_hear_what_is_missing() {
    let empty = tree(&[("software/type", "1")]);
    for (vendor, model, text) in [
        (Vendor::Intel, Model::GraniteRapids, "virtual PMU"),
        (Vendor::Amd, Model::Zen4, "IBS"),
        (Vendor::Arm, Model::NeoverseV2, "--source"),
        (Vendor::Other, Model::Unknown, "event table"),
    ] {
        let error =
            SourceEvents::pmu(empty.path(), vendor, model, choice(Memory::LocalCxl)).expect_err("nothing");
        assert!(error.to_string().contains(text), "{error}");
    }
    let error = intel(&tree(CORE), Model::Haswell, choice(Memory::RemoteDram)).expect_err("not in the table");
    assert!(error.to_string().contains("haswell"), "{error}");
}

#[test]
fn every_row_has_a_source_and_no_model_two_events_for_one_thing() {
    let rows: Vec<_> = ROWS.iter().copied().flatten().collect();
    for (index, row) in rows.iter().enumerate() {
        assert!(row.source.contains("intel/perfmon") && !row.models.is_empty(), "{}", row.name);
        for other in &rows[index + 1..] {
            let shared = row.models.iter().any(|model| other.models.contains(model));
            assert!(!shared || row.quantity != other.quantity, "{} and {}", row.name, other.name);
        }
    }
}
