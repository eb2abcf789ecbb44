//! Checks of tiers, and of the devices that provide memory.

use std::path::Path;

use isotherm_core::Bytes;
use isotherm_linux::topology::{
    CxlDevice, CxlKind, DaxDevice, DaxState, Node, Origin, SameTier, Tier, Tiers, Topology,
};

use super::facts::{Facts, HIDDEN};
use super::finding::{Area, Finding, Remedy};

const COMMAND_LINE: &str = "/proc/cmdline";
/// Makes memory that firmware reserved for tiering ordinary
/// (`Documentation/admin-guide/kernel-parameters.txt`).
const NO_SOFT_RESERVE: &str = "efi=nosoftreserve";

pub(super) fn examine(root: &Path, facts: &Facts<'_>) -> (Vec<Finding>, Option<Topology>) {
    let topology = match Topology::read(root) {
        Ok(topology) => topology,
        Err(error) => return (vec![Area::Memory.topic("memory-tiers").unknown(error)], None),
    };
    let tiers = Tiers::derive(&topology);
    let mut findings = vec![tiers_finding(facts, &topology, &tiers)];
    findings.extend(same_tier(facts, &topology));
    findings.extend(topology.dax.iter().filter_map(|device| dax(&topology, device)));
    findings.extend(unused_cxl(&topology));
    let unreadable = Area::Memory.topic("unreadable-file");
    let problems = (1..).zip(&topology.problems);
    findings.extend(problems.map(|(number, problem)| unreadable.unknown(problem).about(number.to_string())));
    (findings, Some(topology))
}

fn tiers_finding(facts: &Facts<'_>, topology: &Topology, tiers: &Tiers) -> Finding {
    let topic = Area::Memory.topic("memory-tiers");
    let described = describe(tiers);
    if !facts.sys_is_visible() {
        return topic.unknown(format!("{HIDDEN}; all memory is treated as one node: {described}"));
    }
    match tiers.count() {
        1 => topic.missing(
            format!("all memory is one tier: {described}"),
            "moves between tiers: programs run in shadow mode, which samples and estimates",
            second_tier(topology),
        ),
        count if tiers.origin() == Origin::Distance => topic.warning(
            format!("{count} tiers, guessed from distances: {described}"),
            "demotion by the kernel's own reclaim",
            Remedy::advice("Linux 6.1 or later, or check the guess and give --tiers"),
        ),
        count => topic.ok(format!("{count} tiers: {described}")),
    }
}

/// Returns text such as `tier 0 is node 0 (16.0 GiB, 9.0 GiB free); tier 1 is ...`.
fn describe(tiers: &Tiers) -> String {
    let one = |(index, tier): (usize, &Tier)| {
        let nodes: Vec<String> = tier.nodes.iter().map(u32::to_string).collect();
        let word = if nodes.len() == 1 { "node" } else { "nodes" };
        let (capacity, free) = (gibibytes(tier.capacity), gibibytes(tier.free));
        format!("tier {index} is {word} {} ({capacity}, {free} free)", nodes.join("+"))
    };
    tiers.all().iter().enumerate().map(one).collect::<Vec<_>>().join("; ")
}

fn gibibytes(bytes: Bytes) -> String {
    // Exact for every size there is: 2^53 KiB are 8 YiB.
    format!("{:.1} GiB", (bytes.0 >> 10) as f64 / f64::from(1 << 20))
}

fn second_tier(topology: &Topology) -> Remedy {
    let with_memory: Vec<&Node> = topology.nodes.iter().filter(|node| node.total > Bytes(0)).collect();
    match with_memory[..] {
        [fast, slow, ..] => run_with_tiers(&fast.id.to_string(), &slow.id.to_string()),
        _ => Remedy::advice(
            "slower memory (CXL, NVM); to try out tiering, boot with numa=fake=2 numa_emulation.adistance=576,704",
        ),
    }
}

fn run_with_tiers(fast: &str, slow: &str) -> Remedy {
    Remedy::Command(format!("isotherm run --tiers {fast},{slow} -- PROGRAM"))
}

fn same_tier(facts: &Facts<'_>, topology: &Topology) -> Vec<Finding> {
    let found = topology.same_tier_nodes();
    let slow: Vec<String> = found.iter().map(|same| same.node.to_string()).collect();
    let fast = topology.nodes.iter().filter(|node| !topology.is_slow(node) && node.total > Bytes(0));
    let fast: Vec<String> = fast.map(|node| node.id.to_string()).collect();
    let reserve =
        facts.tree.text(COMMAND_LINE).is_ok_and(|line| line.split(' ').any(|word| word == NO_SOFT_RESERVE));
    let remedy = if reserve {
        Remedy::advice(format!("remove '{NO_SOFT_RESERVE}' from the kernel's command line and boot"))
    } else {
        run_with_tiers(&fast.join("+"), &slow.join("+"))
    };
    let finding = |&SameTier { node, tier }: &SameTier| {
        let meaning = format!(
            "node {node} has no processor, but firmware declared it ordinary memory, so it is in tier {tier} with DRAM"
        );
        let lost = "demotion by the kernel to this node, and moves unless --tiers is given";
        let topic = Area::Memory.topic("same-tier-node");
        topic.warning(meaning, lost, remedy.clone()).about(format!("node{node}"))
    };
    found.iter().map(finding).collect()
}

fn dax(topology: &Topology, device: &DaxDevice) -> Option<Finding> {
    // Other devices are made from a device of no size.
    if device.size == Bytes(0) {
        return None;
    }
    let topic = Area::Memory.topic("dax-device");
    let (name, size) = (&device.name, gibibytes(device.size));
    let node = device.target_node.filter(|&id| topology.node(id).is_some_and(|node| node.total > Bytes(0)));
    let reconfigure = format!("daxctl reconfigure-device --mode=system-ram {name}");
    let (meaning, command) = match (&device.state, node) {
        (DaxState::SystemRam, Some(node)) => {
            return Some(topic.ok(format!("{size} online as memory of node {node}")).about(name));
        }
        (DaxState::SystemRam, None) => {
            (format!("{size} in system-ram mode, none of it online"), format!("daxctl online-memory {name}"))
        }
        (DaxState::DevDax, _) => (format!("{size} in devdax mode, not any node's memory"), reconfigure),
        (DaxState::Unbound, _) => {
            (format!("{size} without a driver"), format!("modprobe kmem && {reconfigure}"))
        }
        (DaxState::Other(driver), _) => {
            (format!("{size} with the driver {driver}, not any node's memory"), reconfigure)
        }
    };
    Some(topic.missing(meaning, "a tier of that size", Remedy::Command(command)).about(name))
}

/// Returns CXL memory without a region, which no address reaches.
fn unused_cxl(topology: &Topology) -> Vec<Finding> {
    let of = |kind: CxlKind| topology.cxl.iter().filter(move |device| device.kind == kind);
    let has_region = of(CxlKind::Region).next().is_some();
    if has_region || !topology.dax.is_empty() || topology.nodes.iter().any(Node::is_cpuless) {
        return Vec::new();
    }
    let root_decoder = of(CxlKind::Decoder).next().map_or("decoder0.0", |device| &device.name);
    let finding = |device: &CxlDevice| {
        let size = device.size.map_or_else(|| "memory".to_owned(), gibibytes);
        let remedy =
            Remedy::Command(format!("cxl create-region -m -t ram -d {root_decoder} {}", device.name));
        let meaning = format!("{size} of CXL memory in no region, hence on no node");
        Area::Memory.topic("cxl-device").missing(meaning, "a tier of that size", remedy).about(&device.name)
    };
    of(CxlKind::Memory).map(finding).collect()
}
