//! Defines the findings about tiers and the devices that memory sits on.

use std::path::Path;

use isotherm_core::Bytes;

use super::facts::Facts;
use super::finding::{Area, Finding, Remedy};
use isotherm_linux::topology::{CxlKind, DaxDevice, DaxState, Node, Origin, Tier, Tiers, Topology};

const COMMAND_LINE: &str = "/proc/cmdline";
/// Makes the kernel take memory that firmware set apart for tiering as ordinary memory
/// (`Documentation/admin-guide/kernel-parameters.txt`).
const NO_SOFT_RESERVE: &str = "efi=nosoftreserve";

pub(super) fn examine(root: &Path, facts: &Facts<'_>) -> (Vec<Finding>, Option<Topology>) {
    let topology = match Topology::read(root) {
        Ok(topology) => topology,
        Err(error) => return (vec![Finding::unknown(Area::Memory, "memory-tiers", error)], None),
    };
    let tiers = Tiers::derive(&topology);
    let mut findings = vec![tiers_finding(facts, &topology, &tiers)];
    findings.extend(same_tier(facts, &topology));
    findings.extend(topology.dax.iter().filter_map(|device| dax(&topology, device)));
    findings.extend(unused_cxl(&topology));
    findings.extend(topology.problems.iter().enumerate().map(|(index, problem)| {
        Finding::unknown(Area::Memory, "unreadable-file", problem).about((index + 1).to_string())
    }));
    (findings, Some(topology))
}

fn tiers_finding(facts: &Facts<'_>, topology: &Topology, tiers: &Tiers) -> Finding {
    let name = "memory-tiers";
    if !facts.sys_is_visible() {
        let reason = format!("/sys is hidden; memory is taken for one node: {}", describe(tiers));
        return Finding::unknown(Area::Memory, name, reason);
    }
    match tiers.count() {
        1 => Finding::missing(
            Area::Memory,
            name,
            format!("all memory is one tier: {}", describe(tiers)),
            "moves between tiers: programs run in shadow mode, which samples and estimates",
            second_tier(topology),
        ),
        count if tiers.origin() == Origin::Distance => Finding::warning(
            Area::Memory,
            name,
            format!("{count} tiers, guessed from distances: {}", describe(tiers)),
            "demotion by the kernel's own reclaim",
            Remedy::advice("Linux 6.1 or later, or check the guess and give --tiers"),
        ),
        count => Finding::ok(Area::Memory, name, format!("{count} tiers: {}", describe(tiers))),
    }
}

/// `tier 0 is node 0 (16G, 9G free); tier 1 is ...`.
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

/// What would give a machine of one tier another.
fn second_tier(topology: &Topology) -> Remedy {
    let with_memory: Vec<&Node> = topology.nodes.iter().filter(|node| node.total > Bytes(0)).collect();
    match with_memory[..] {
        [fast, slow, ..] => {
            Remedy::command(format!("isotherm run --tiers {},{} -- PROGRAM", fast.id, slow.id))
        }
        _ => Remedy::advice(
            "slower memory (CXL, NVM); to try tiering out, boot with numa=fake=2 numa_emulation.adistance=576,704",
        ),
    }
}

fn same_tier(facts: &Facts<'_>, topology: &Topology) -> Vec<Finding> {
    let found = topology.same_tier_nodes();
    let slow: Vec<String> = found.iter().map(|same| same.node.to_string()).collect();
    let fast: Vec<String> = topology
        .nodes
        .iter()
        .filter(|node| !topology.is_slow(node) && node.total > Bytes(0))
        .map(|node| node.id.to_string())
        .collect();
    let reserve =
        facts.tree.text(COMMAND_LINE).is_ok_and(|line| line.split(' ').any(|word| word == NO_SOFT_RESERVE));
    let remedy = if reserve {
        Remedy::advice(format!("remove '{NO_SOFT_RESERVE}' from the kernel's command line and boot"))
    } else {
        Remedy::command(format!("isotherm run --tiers {},{} -- PROGRAM", fast.join("+"), slow.join("+")))
    };
    let finding = |node: u32, tier: u32| {
        let meaning = format!(
            "node {node} has no processor, yet the kernel put it into tier {tier} with DRAM, as firmware gave it as ordinary memory"
        );
        let lost = "demotion by the kernel to this node, and moves unless --tiers is given";
        Finding::warning(Area::Memory, "same-tier-node", meaning, lost, remedy.clone())
            .about(format!("node{node}"))
    };
    found.iter().map(|same| finding(same.node, same.tier)).collect()
}

fn dax(topology: &Topology, device: &DaxDevice) -> Option<Finding> {
    // A device of no size is a seed from which others are made.
    if device.size == Bytes(0) {
        return None;
    }
    let (name, size) = (&device.name, gibibytes(device.size));
    let online =
        device.target_node.is_some_and(|id| topology.node(id).is_some_and(|node| node.total > Bytes(0)));
    let reconfigure = format!("daxctl reconfigure-device --mode=system-ram {name}");
    let (meaning, command) = match &device.state {
        DaxState::SystemRam if online => {
            let node = device.target_node.map_or_else(|| "a node".to_owned(), |node| format!("node {node}"));
            return Some(
                Finding::ok(Area::Memory, "dax-device", format!("{size} are memory of {node}")).about(name),
            );
        }
        DaxState::SystemRam => (
            format!("{size} are set to be memory, and none of it is online"),
            format!("daxctl online-memory {name}"),
        ),
        DaxState::DevDax => {
            (format!("{size} are a device for programs that map it, and no node's memory"), reconfigure)
        }
        DaxState::Unbound => (format!("{size} have no driver"), format!("modprobe kmem && {reconfigure}")),
        DaxState::Other(driver) => {
            (format!("{size} have the driver {driver}, and are no node's memory"), reconfigure)
        }
    };
    let lost = "a tier of that size";
    Some(Finding::missing(Area::Memory, "dax-device", meaning, lost, Remedy::Command(command)).about(name))
}

/// CXL memory that nothing has made a region of, so that no address reaches it.
fn unused_cxl(topology: &Topology) -> Vec<Finding> {
    let is = |kind: CxlKind| move |device: &&isotherm_linux::topology::CxlDevice| device.kind == kind;
    let reached = topology.cxl.iter().any(|device| device.kind == CxlKind::Region)
        || !topology.dax.is_empty()
        || topology.nodes.iter().any(Node::is_cpuless);
    if reached {
        return Vec::new();
    }
    let root_decoder =
        topology.cxl.iter().find(is(CxlKind::Decoder)).map_or("decoder0.0", |device| &device.name);
    let finding = |device: &isotherm_linux::topology::CxlDevice| {
        let size = device.size.map_or_else(|| "memory".to_owned(), gibibytes);
        let command = format!("cxl create-region -m -t ram -d {root_decoder} {}", device.name);
        let meaning = format!("{size} of CXL memory belong to no region, and to no node");
        let remedy = Remedy::Command(command);
        Finding::missing(Area::Memory, "cxl-device", meaning, "a tier of that size", remedy)
            .about(&device.name)
    };
    topology.cxl.iter().filter(is(CxlKind::Memory)).map(finding).collect()
}
