//! The manifest of a live run: the machine under it and the options that the result does not tell.

use std::path::Path;

use isotherm_core::manifest::Manifest;
use isotherm_core::{Bytes, FastLimit};
use isotherm_linux::files::Tree;
use isotherm_linux::topology::cpu::Cpu;

use super::config::SessionConfig;

/// Reads the machine below `root`. What cannot be read is left out: the run can do without.
pub(super) fn read(root: &Path, config: &SessionConfig, free: Bytes) -> Manifest {
    let threads = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = Cpu::read(root).map_or_else(|_| "unknown processor".into(), |cpu| cpu.name);
    let given = [
        ("fast", config.tiers.fast.as_ref().map(FastLimit::to_string)),
        ("tiers", config.tiers.nodes.clone()),
        ("source", config.source.clone()),
        ("overhead", Some(config.overhead.to_string())),
        ("rate", config.rate.map(|rate| rate.to_string())),
        ("model_counters", config.model_counters.then(|| "yes".into())),
    ];
    Manifest {
        machine: format!("{processor}, {threads} threads"),
        kernel: Tree::new(root).text("/proc/sys/kernel/osrelease").ok(),
        free_dram_bytes: Some(free),
        options: given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
        ..Manifest::default()
    }
}
