use std::fs;
use std::sync::LazyLock;

use isotherm_core::{Bytes, TierId};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::fixtures::{self, tree, write};
use super::*;

fn read(table: &str) -> Topology {
    Topology::read(tree(table).path()).expect("a topology")
}

/// Returns the derived tiers in the form of `--tiers`.
fn derived(table: &str) -> String {
    Tiers::derive(&read(table)).to_string()
}

#[test]
fn tiers_are_those_of_the_kernel() {
    assert_eq!(derived(fixtures::LAPTOP), "0");
    assert_eq!(derived(fixtures::TWO_SOCKETS), "0+1");
    assert_eq!(derived(fixtures::CXL), "0,1");
    assert_eq!(derived(fixtures::OPTANE), "0+1,2+3");
    assert_eq!(derived(fixtures::THREE_TIERS), "0,1,2");
    assert_eq!(derived(fixtures::CXL_IN_THE_SAME_TIER), "0+1");
    assert_eq!(Tiers::derive(&read(fixtures::CXL)).origin(), Origin::Kernel);
}

#[test]
fn without_kernel_tiers_cpuless_nodes_follow_by_their_distance() {
    assert_eq!(derived(fixtures::OLD_KERNEL), "0+1,4,2+3");
    assert_eq!(Tiers::derive(&read(fixtures::OLD_KERNEL)).origin(), Origin::Distance);
    assert_eq!(derived(fixtures::HIGH_BANDWIDTH), "0+1");
}

#[test]
fn a_machine_without_nodes_is_one_node_with_all_memory() {
    let topology = read(fixtures::NO_SYS);
    assert_eq!(topology.nodes.len(), 1);
    assert_eq!(topology.nodes[0].total, Bytes(1000 * 1024));
    let tiers = Tiers::derive(&topology);
    assert_eq!((tiers.to_string().as_str(), tiers.count()), ("0", 1));
}

#[test]
fn a_tiers_size_is_the_sum_of_its_nodes() {
    let root = tree(fixtures::OPTANE);
    let topology = Topology::read(root.path()).unwrap();
    let tiers = Tiers::derive(&topology);
    let fast = tiers.get(TierId::FAST).unwrap();
    assert_eq!((fast.capacity, fast.free), (Bytes(194_000_000 * 1024), Bytes(3_000_000 * 1024)));
    assert_eq!(
        (tiers.tier_of(1), tiers.tier_of(3), tiers.tier_of(4)),
        (Some(TierId(0)), Some(TierId(1)), None)
    );
}

#[test]
fn a_node_that_no_kernel_tier_names_joins_by_its_kind() {
    let mut topology = read(fixtures::OPTANE);
    topology.kernel_tiers.as_mut().unwrap()[0].nodes = vec![1];
    topology.kernel_tiers.as_mut().unwrap()[1].nodes = vec![3, 1];
    assert_eq!(Tiers::derive(&topology).to_string(), "0+1,2+3");
}

#[test]
fn attributes_of_a_cxl_node_are_read_with_their_units() {
    let topology = read(fixtures::CXL);
    let node = topology.node(1).unwrap();
    assert_eq!((node.total, node.free), (Bytes(260_000_000 * 1024), Bytes(259_000_000 * 1024)));
    assert_eq!((node.distance(0), node.distance(1), node.distance(2)), (Some(14), Some(10), None));
    assert!(node.is_cpuless() && topology.is_slow(node));
    let rating = AccessAttributes {
        read_latency: Some(255),
        write_latency: Some(265),
        read_bandwidth: Some(26_000),
        write_bandwidth: None,
    };
    assert_eq!(node.rating(), Some(rating));
    assert_eq!(node.access[0].unwrap().read_latency, Some(250));
    assert_eq!(topology.node(0).unwrap().cpus.len(), 32);
    assert_eq!(topology.demotion, Some(true));
    assert_eq!(topology.problems, Vec::<String>::new());
}

#[test]
fn devices_are_read_with_node_size_and_driver() {
    let topology = read(fixtures::CXL);
    let cxl: Vec<_> = topology
        .cxl
        .iter()
        .map(|device| (device.name.as_str(), device.kind, device.node, device.size))
        .collect();
    let size = Some(Bytes(256 << 30));
    let expected = [
        ("decoder0.0", CxlKind::Decoder, None, size),
        ("mem0", CxlKind::Memory, Some(0), size),
        ("region0", CxlKind::Region, None, size),
    ];
    assert_eq!(cxl, expected);
    let dax = read(fixtures::DAX_NOT_ONLINE).dax;
    let states: Vec<_> =
        dax.iter().map(|device| (device.name.as_str(), device.target_node, device.state.clone())).collect();
    let expected = [
        ("dax0.0", Some(1), DaxState::DevDax),
        ("dax1.0", Some(2), DaxState::Unbound),
        ("dax2.0", Some(3), DaxState::SystemRam),
        ("dax3.0", None, DaxState::Unbound),
    ];
    assert_eq!(states, expected);
}

#[test]
fn slow_nodes_in_the_tier_of_dram_are_found_and_fast_ones_are_not() {
    let found = read(fixtures::CXL_IN_THE_SAME_TIER).same_tier_nodes();
    assert_eq!(found, [SameTier { node: 1, tier: 4 }]);
    for other in [fixtures::CXL, fixtures::OPTANE, fixtures::TWO_SOCKETS, fixtures::OLD_KERNEL] {
        assert_eq!(read(other).same_tier_nodes(), []);
    }
    let high_bandwidth = format!("{}tier 4 0-1", fixtures::HIGH_BANDWIDTH);
    assert_eq!(read(&high_bandwidth).same_tier_nodes(), []);
}

#[test]
fn the_users_tiers_are_taken_as_written() {
    let topology = read(fixtures::OPTANE);
    for (text, expected) in
        [("0,1", "0,1"), ("0+2,1+3", "0+2,1+3"), (" 2 + 0 , 1", "0+2,1"), ("3,2,1,0", "3,2,1,0")]
    {
        let tiers = Tiers::parse(text, &topology).expect(text);
        assert_eq!(tiers.to_string(), expected);
        assert_eq!(tiers.origin(), Origin::User);
    }
    assert_eq!(Tiers::parse("1+2,3", &topology).unwrap().tier_of(0), None);
}

#[test]
fn wrong_tiers_of_the_user_are_refused_in_one_clear_line() {
    let topology = read(fixtures::MEMORYLESS);
    let cases = [
        ("", "--tiers: '' is not a node's number; write nodes of one tier with '+', tiers with ',': 0+1,2"),
        (
            "0,one",
            "--tiers: 'one' is not a node's number; write nodes of one tier with '+', tiers with ',': 0+1,2",
        ),
        ("0,", "--tiers: '' is not a node's number; write nodes of one tier with '+', tiers with ',': 0+1,2"),
        ("0,7", "--tiers: there is no node 7; nodes with memory are 0, 2"),
        ("0,1", "--tiers: node 1 has no memory; nodes with memory are 0, 2"),
        ("0,2,0", "--tiers: node 0 is named twice"),
        ("2+2,0", "--tiers: node 2 is named twice"),
        ("0+2", "--tiers: '0+2' is one tier; give at least two, fastest first, such as 0,1"),
    ];
    for (text, expected) in cases {
        assert_eq!(Tiers::parse(text, &topology).unwrap_err().to_string(), expected);
    }
    assert_eq!(Tiers::derive(&topology).to_string(), "0,2");
}

#[test]
fn optional_files_that_are_nonsense_become_problems() {
    let root = tree(fixtures::CXL);
    write(root.path(), "sys/kernel/mm/numa/demotion_enabled", "perhaps");
    write(root.path(), "sys/bus/dax/devices/dax0.0/size", "-5");
    write(root.path(), "sys/bus/cxl/devices/mem0/numa_node", "one");
    write(root.path(), "sys/devices/system/node/node1/access1/initiators/read_latency", "fast");
    let topology = Topology::read(root.path()).unwrap();
    assert_eq!(topology.problems.len(), 4, "{:?}", topology.problems);
    assert!(
        topology.problems.iter().any(|line| line.ends_with("expected 'true' or 'false', found 'perhaps'"))
    );
    assert_eq!((topology.dax.len(), topology.cxl.len(), topology.demotion), (0, 2, None));
    assert_eq!(topology.node(1).unwrap().rating().unwrap().read_latency, Some(250));
    assert_eq!(Tiers::derive(&topology).to_string(), "0,1");
}

#[test]
fn nodes_and_tiers_that_are_nonsense_are_errors_that_name_the_file() {
    let node = "sys/devices/system/node";
    let tier = "sys/devices/virtual/memory_tiering/memory_tier4/nodelist";
    let cases = [
        (format!("{node}/online"), "", "online: expected a list of nodes such as 0-1, found ''"),
        (format!("{node}/online"), "5", "node5/meminfo: No such file"),
        (
            format!("{node}/node0/distance"),
            "10",
            "node0/distance: expected one distance for each node online",
        ),
        (
            format!("{node}/node0/cpulist"),
            "0-",
            "node0/cpulist: expected a list of processors such as 0-15, found '0-'",
        ),
        (
            format!("{node}/node0/meminfo"),
            "Node 0 MemTotal: 12",
            "node0/meminfo: expected MemTotal and MemFree in kB",
        ),
        (
            tier.to_owned(),
            "zero",
            "memory_tier4/nodelist: expected a list of nodes such as 0-1, found 'zero'",
        ),
    ];
    for (path, text, expected) in cases {
        let root = tree(fixtures::CXL);
        write(root.path(), &path, text);
        let message = Topology::read(root.path()).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let without_memory = tree("node 0 0 0 0 10");
    assert!(
        Topology::read(without_memory.path())
            .unwrap_err()
            .to_string()
            .contains("expected a node with memory")
    );
    assert!(Topology::read(Path::new("/nonexistent")).is_err());
}

#[test]
fn this_machine_has_a_topology_and_its_tiers_hold_its_memory() {
    let topology = Topology::read(Path::new("/")).unwrap();
    let tiers = Tiers::derive(&topology);
    let nodes: u64 = topology.nodes.iter().map(|node| node.total.0).sum();
    assert_eq!(tiers.all().iter().map(|tier| tier.capacity.0).sum::<u64>(), nodes);
    assert!(tiers.all()[0].free <= tiers.all()[0].capacity);
}

/// Files of the CXL fixture, and text to put into them.
fn spoiled() -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    let files = prop::sample::select(vec![
        "sys/devices/system/node/online",
        "sys/devices/system/node/node0/cpulist",
        "sys/devices/system/node/node1/distance",
        "sys/devices/system/node/node1/meminfo",
        "sys/devices/system/node/node1/access1/initiators/read_latency",
        "sys/devices/virtual/memory_tiering/memory_tier4/nodelist",
        "sys/devices/virtual/memory_tiering/memory_tier22/nodelist",
        "sys/bus/cxl/devices/mem0/ram/size",
        "sys/bus/cxl/devices/mem0/numa_node",
        "sys/bus/dax/devices/dax0.0/size",
        "sys/bus/dax/devices/dax0.0/target_node",
    ]);
    let nonsense = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "[0-9,-]{0,12}".prop_map(String::into_bytes),
        "(Node [01] (MemTotal|MemFree): *[0-9]{0,21} kB\n){0,3}".prop_map(String::into_bytes),
        "0x[0-9a-f]{0,20}".prop_map(String::into_bytes),
    ];
    (files, nonsense)
}

#[test]
fn no_nonsense_makes_reading_panic() {
    let root = tree(fixtures::CXL);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(300));
    let outcome = runner.run(&prop::collection::vec(spoiled(), 1..4), |spoiled| {
        let paths: Vec<_> = spoiled.iter().map(|(path, _)| root.path().join(path)).collect();
        let sound: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        for (path, (_, bytes)) in paths.iter().zip(&spoiled) {
            fs::write(path, bytes).unwrap();
        }
        let read = Topology::read(root.path());
        for (path, bytes) in paths.iter().zip(&sound) {
            fs::write(path, bytes).unwrap();
        }
        let Ok(topology) = read else { return Ok(()) };
        let tiers = Tiers::derive(&topology);
        prop_assert!(tiers.count() >= 1);
        let with_memory = topology.nodes.iter().filter(|node| node.total > Bytes(0)).count();
        prop_assert_eq!(tiers.all().iter().map(|tier| tier.nodes.len()).sum::<usize>(), with_memory);
        let _ = (topology.same_tier_nodes(), Tiers::parse("0,1", &topology));
        Ok(())
    });
    outcome.unwrap();
}

proptest! {
    #[test]
    fn no_text_of_the_user_makes_parsing_panic(text in "[0-9,+ a-z-]{0,20}|\\PC{0,12}") {
        static TOPOLOGY: LazyLock<Topology> = LazyLock::new(|| read(fixtures::OPTANE));
        if let Ok(tiers) = Tiers::parse(&text, &TOPOLOGY) {
            prop_assert!(tiers.count() >= 2);
        }
    }
}
