//! Runs a workload on its own values, as an ordinary program, for a recorder to look at:
//!
//! `cargo run --release -p isotherm-workloads --example native -- MAP NAME [KEY=VALUE]...` (seed 1)
//!
//! At the end it writes to MAP where each allocation with real values behind it lay, a line each: its start and bytes in
//! the workload's address space and its real address, in decimal, separated by spaces, in the order of allocation.

use std::fmt::Write;

use isotherm_workloads::{NativeMemory, find};

const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(map), Some(name)) = (arguments.next(), arguments.next()) else {
        return Err("expected MAP NAME [KEY=VALUE]...".into());
    };
    let workload = find(&name)?;
    let mut parameters = workload.parameters();
    for argument in arguments {
        let (key, value) = argument.split_once('=').ok_or("expected KEY=VALUE")?;
        parameters.set(key, value)?;
    }
    let mut memory = NativeMemory::default();
    workload.build(&parameters, SEED)?.run(&mut memory);
    let mut lines = String::new();
    for (allocation, real) in memory.allocations() {
        writeln!(lines, "{} {} {real}", allocation.start, allocation.bytes)?;
    }
    std::fs::write(map, lines)?;
    Ok(())
}
