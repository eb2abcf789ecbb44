//! The plugin's counts of a program: its accesses, the misses of each tier, and their cost.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Counts from just before the program was executed to its end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Loads and stores of the program and its descendants, in user mode.
    pub accesses: u64,
    pub instructions: u64,
    /// Fraction of the last-level cache's misses that the first tier served; 0 without misses.
    pub hit_ratio: f64,
    /// Time by the cost model in nanoseconds.
    pub modelled_ns: u64,
    /// Misses at addresses of no tier.
    pub elsewhere: u64,
    pub tiers: Vec<Served>,
    pub samples: Samples,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceUses>,
    pub history: History,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceUses {
    /// As in the machine's file.
    pub kind: String,
    /// Reads of the memory behind it: one for each miss.
    pub reads: u64,
    /// Writes: one for each store that missed, when its line is written back.
    pub writes: u64,
    pub register_reads: u64,
    pub register_writes: u64,
    /// Bytes that both carried.
    pub register_bytes: u64,
    /// Cost of both on the modelled machine in nanoseconds.
    pub register_ns: u64,
    pub resets: u64,
    pub hot_pages: u64,
    /// Hot pages taken again since the reset.
    pub hot_again: u64,
    /// How often a hot page has found the buffer or the list full, NeoProf's since the reset.
    pub hot_refused: u64,
    /// Accesses that were not counted since the reset.
    pub dropped: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    pub load_misses: u64,
    pub store_misses: u64,
    /// Nanoseconds for which the program waited for them.
    pub stall: u64,
}

impl Served {
    pub fn misses(&self) -> u64 {
        self.load_misses + self.store_misses
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    /// Samples taken, lost ones included.
    pub taken: u64,
    /// Samples that found the ring full.
    pub lost: u64,
    /// Samples whose process is known by its page tables only.
    pub unresolved: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// Minimum nanoseconds between points.
    pub interval_ns: u64,
    /// Modelled time in nanoseconds, ascending, and the misses of each tier up to it.
    pub points: Vec<(u64, Vec<u64>)>,
}

impl Measured {
    /// Reads the last epoch in the plugin's file; `None` if the guest began none, or the file is missing.
    pub fn read(path: &Path) -> Option<Self> {
        #[derive(Deserialize)]
        struct Report {
            phases: Vec<Phase>,
        }
        #[derive(Deserialize)]
        struct Phase {
            epoch: u64,
            #[serde(flatten)]
            measured: Measured,
        }
        let report: Report = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let last = report.phases.into_iter().next_back().filter(|phase| phase.epoch > 0)?;
        Some(last.measured)
    }
    pub fn misses(&self) -> u64 {
        self.tiers.iter().map(Served::misses).sum()
    }
}

impl History {
    /// Returns the first tier's fraction of the misses between two fractions (0 to 1) of all misses: 0.4 to
    /// 0.5 is their fifth tenth. Returns `None` if no two points are that far apart.
    pub fn hit_ratio(&self, from: f64, to: f64) -> Option<f64> {
        let all = |point: &(u64, Vec<u64>)| point.1.iter().sum::<u64>();
        let total = all(self.points.last()?) as f64;
        let at = |share: f64| self.points.iter().find(|point| all(point) as f64 >= share * total);
        let (from, to) = (at(from)?, at(to)?);
        let fast = |point: &(u64, Vec<u64>)| point.1.first().copied().unwrap_or(0);
        let misses = all(to).saturating_sub(all(from));
        (misses > 0).then(|| fast(to).saturating_sub(fast(from)) as f64 / misses as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_epoch_counts_and_what_came_before_the_first_does_not()
    -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("measured.json");
        let phase = |epoch: u64| {
            serde_json::json!({
                "epoch": epoch, "modelled_ns": 70 + epoch, "accesses": 9, "instructions": 30, "elsewhere": 0, "hit_ratio": 0.75,
                "tiers": [{ "load_misses": 2, "store_misses": 1, "stall": 5, "occupancy": 1 }, { "load_misses": 1, "store_misses": 0, "stall": 7 }],
                "samples": { "taken": 3, "lost": 1, "unresolved": 0 }, "processes": [],
                "history": { "interval_ns": 100, "points": [[50, [1, 0]], [70, [3, 1]]] },
            })
        };
        std::fs::write(&path, serde_json::json!({ "phases": [phase(0), phase(1), phase(2)] }).to_string())?;
        let measured = Measured::read(&path).ok_or("an epoch")?;
        assert_eq!((measured.modelled_ns, measured.misses(), measured.tiers[1].stall), (72, 4, 7));
        assert_eq!(measured.history.points[1], (70, vec![3, 1]));
        std::fs::write(&path, serde_json::json!({ "phases": [phase(0)] }).to_string())?;
        assert_eq!(Measured::read(&path), None);
        std::fs::write(&path, "{")?;
        assert_eq!(Measured::read(&path), None);
        Ok(())
    }

    #[test]
    fn a_part_of_the_history_has_its_own_hit_ratio() {
        // First all slow, then all fast.
        let points = (0..=10u64).map(|n| (n, vec![n.saturating_sub(5) * 10, n.min(5) * 10])).collect();
        let history = History { interval_ns: 1, points };
        assert_eq!(history.hit_ratio(0.0, 0.5), Some(0.0));
        assert_eq!(history.hit_ratio(0.5, 1.0), Some(1.0));
        assert_eq!(history.hit_ratio(0.3, 0.7), Some(0.5));
        assert_eq!(history.hit_ratio(0.3, 0.3), None);
        assert_eq!(History::default().hit_ratio(0.0, 1.0), None);
    }
}
