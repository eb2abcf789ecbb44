//! `isotherm lab machines [NAME]`.

use isotherm_lab::machine::{Machine, Node};

use super::plan::load_machine;
use crate::args::NameArgs;
use crate::failure::Failure;
use crate::output::{listing, print};

pub(super) fn run(args: &NameArgs) -> Result<(), Failure> {
    match &args.name {
        Some(name) => explain(name, args.json),
        None => list(args.json),
    }
}

fn list(as_json: bool) -> Result<(), Failure> {
    let machines = Machine::builtin_names().map(Machine::builtin).collect::<Result<Vec<_>, _>>();
    let machines = machines.map_err(Failure::failed)?;
    if as_json {
        return print(&format!("{:#}\n", machines.iter().map(json).collect::<serde_json::Value>()));
    }
    let mut table = listing(&["machine", "nodes", "what it is"]);
    for machine in &machines {
        let node = |node: &Node| format!("{} {}", node.kind.name(), node.size);
        let nodes: Vec<String> = machine.nodes.iter().map(node).collect();
        table.add_row([&machine.name, &nodes.join(", "), &machine.title]);
    }
    print(&format!("{table}\n"))
}

fn explain(name: &str, as_json: bool) -> Result<(), Failure> {
    let machine = load_machine(name)?;
    if as_json {
        return print(&format!("{:#}\n", json(&machine)));
    }
    let mut table = listing(&["node", "size", "latency", "read", "write"]);
    for (index, (node, tier)) in machine.nodes.iter().zip(&machine.profile.tiers).enumerate() {
        let rate = |bytes: u64| format!("{:.1} GB/s", bytes as f64 / 1e9);
        table.add_row([
            format!("{index} ({}, {})", tier.name, node.kind.name()),
            node.size.to_string(),
            tier.latency.to_string(),
            rate(tier.read_bandwidth),
            rate(tier.write_bandwidth),
        ]);
    }
    let (cache, processors) = (machine.profile.llc_size, machine.processors);
    let clock = if machine.deterministic { "instructions are the clock" } else { "the host's clock" };
    let device = machine.device.map_or("none", |device| device.kind.name());
    let compressed = machine.zswap.map_or_else(
        || "none".into(),
        |zswap| format!("zswap by {}, up to {} of pages", zswap.compressor.name(), zswap.swap),
    );
    print(&format!(
        "{}: {}\n\n{table}\n\nprocessors   {processors}\ncache        {cache}, {} ways\nhuge pages   {}\n\
         clock        {clock}\nprofiling    {device}\ncompressed   {compressed}\n",
        machine.name,
        machine.title,
        machine.profile.llc_ways,
        machine.huge_pages.name()
    ))
}

fn json(machine: &Machine) -> serde_json::Value {
    let nodes = machine
        .nodes
        .iter()
        .map(|node| serde_json::json!({ "kind": node.kind.name(), "size_bytes": node.size.0 }));
    serde_json::json!({
        "name": machine.name,
        "title": machine.title,
        "nodes": nodes.collect::<Vec<_>>(),
        "processors": machine.processors,
        "huge_pages": machine.huge_pages.name(),
        "deterministic": machine.deterministic,
        "device": machine.device.map(|device| device.kind.name()),
        "zswap": machine.zswap.map(|zswap| serde_json::json!({
            "compressor": zswap.compressor.name(),
            "swap_bytes": zswap.swap.0,
        })),
        "profile": machine.profile.summary(),
    })
}
