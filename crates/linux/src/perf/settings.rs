//! Settings of PMU sampling.

use std::path::PathBuf;

use crate::files::{Tree, decimal};

#[derive(Debug, Clone)]
pub struct PmuOptions {
    /// Directory that contains `/proc` and `/sys`.
    pub root: PathBuf,
    /// Pages of each ring, a power of two; there is a ring per processor and kind of event.
    pub ring_pages: usize,
    /// Cycles per microsecond in which latencies are counted; 0 where unknown.
    pub megahertz: u32,
}

impl Default for PmuOptions {
    /// 512 KiB per ring: 80 ms of 100,000 samples per second with all fields.
    fn default() -> Self {
        Self { root: "/".into(), ring_pages: 128, megahertz: megahertz(Tree::new("/".as_ref())) }
    }
}

/// Reads the processors' base frequency, in which PEBS and IBS count latencies to a good approximation.
pub(super) fn megahertz(root: Tree<'_>) -> u32 {
    let kilohertz: Option<u32> =
        root.parsed("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency", "kHz", decimal).ok();
    let cpuinfo = || {
        let text = root.text("/proc/cpuinfo").ok()?;
        let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
        line.split_once(':')?.1.trim().parse::<f64>().ok().map(|megahertz| megahertz as u32)
    };
    kilohertz.map(|kilohertz| kilohertz / 1000).or_else(cpuinfo).unwrap_or(0)
}
