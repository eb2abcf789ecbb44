//! The state of a machine whose programs one daemon tiers: plain data that the daemon fills in, and that
//! views, metrics and clients read.

use serde::{Deserialize, Serialize};

use crate::live_result::Traffic;
use crate::{Bytes, Nanos};

/// The state of a daemon and of all groups. Counts are since the daemon's start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineStatus {
    /// Isotherm's version.
    pub version: String,
    /// Start of the daemon in seconds since 1970.
    pub started_unix_s: u64,
    /// Time since the daemon's start.
    pub time_ns: Nanos,
    /// Whether nothing moves.
    pub shadow: bool,
    /// Fast memory for all groups together.
    pub fast_bytes: Bytes,
    /// Processor time of the daemon with all engines.
    pub cpu_ns: Nanos,
    /// Programs that belong to no group, or to an excluded one.
    pub left_alone: u64,
    /// The groups: those of the file in its order, then runs that have joined.
    pub groups: Vec<GroupStatus>,
    /// Other software that moves pages of the same programs.
    pub rivals: Vec<String>,
    /// The kernel's own counts of page moves in `/proc/vmstat`, by name.
    pub kernel: Vec<(String, u64)>,
    /// The log of operations, if one is kept.
    pub log: Option<LogStatus>,
}

/// The state of the daemon's log of operations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LogStatus {
    /// Its directory.
    pub directory: String,
    /// The size of its files.
    pub bytes: Bytes,
    /// Rows that were written since the daemon's start.
    pub written_rows: u64,
    /// Rows that could not be written.
    pub dropped_rows: u64,
    /// Why the latest rows could not be written.
    pub failure: Option<String>,
}

impl MachineStatus {
    /// Returns a line on the log where it cannot be written.
    pub fn log_warning(&self) -> Option<String> {
        let log = self.log.as_ref()?;
        let LogStatus { directory, dropped_rows, .. } = log;
        let why = log.failure.as_ref()?;
        Some(format!("log: {directory}: {why}; {dropped_rows} rows are lost; make room there"))
    }
}

/// The state of a group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// `tiered`, `pinned`, `excluded`, `run` for a run that has joined, or `alone` for one that has not.
    pub mode: String,
    /// The policy's name.
    pub policy: String,
    /// Least fast memory that pressure of others never takes.
    pub protect_bytes: Bytes,
    /// Most fast memory; `None` without a limit.
    pub limit_bytes: Option<Bytes>,
    /// How much a slowdown of the group counts.
    pub weight: f64,
    /// Fast memory that the group may use now.
    pub share_bytes: Bytes,
    /// Memory on each tier, fastest first.
    pub resident_bytes: Vec<Bytes>,
    /// Memory in swap.
    #[serde(default)]
    pub swapped_bytes: Bytes,
    /// How much of it the kernel's zswap holds, or less; `None` if nothing tells.
    #[serde(default)]
    pub zswapped_bytes: Option<Bytes>,
    /// Accesses that each tier served, counted by the hardware or summed over samples.
    pub hits: Vec<u64>,
    /// The fast tier's share of all accesses so far; `None` while too little is known.
    pub hit_ratio: Option<f64>,
    /// Its lower and upper bound.
    pub hit_ratio_bounds: Option<[f64; 2]>,
    /// Pages moved, or in shadow mode those that would have been.
    pub traffic: Traffic,
    /// Pages moved a second, between the last two looks.
    pub moves_per_s: f64,
    /// Samples delivered.
    pub samples: u64,
    /// Samples lost.
    pub lost: u64,
    /// Processor time of the programs.
    pub running_ns: Nanos,
    /// Time that programs lost to being observed.
    pub observing_ns: Nanos,
    /// Processor time of the group's engine.
    pub engine_ns: Nanos,
    /// Upper bound on the time that tiering has saved the programs, against as much fast memory filled at
    /// random: as if they only waited for each access in turn.
    pub saved_ns: Nanos,
    /// Memory of the engine.
    pub engine_bytes: Bytes,
    /// Names of the access sources.
    pub sources: Vec<String>,
    /// The programs, by their number.
    pub programs: Vec<ProgramStatus>,
    /// Problems, each once.
    pub warnings: Vec<String>,
}

/// One program of a group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// Number of its process.
    pub pid: u32,
    /// The program's name.
    pub command: String,
    /// Its cgroup's path.
    pub cgroup: String,
    /// Memory on each tier, fastest first.
    pub resident_bytes: Vec<Bytes>,
    /// Memory in swap.
    #[serde(default)]
    pub swapped_bytes: Bytes,
    /// Sampled accesses to its memory; old ones count for less.
    pub accesses: u64,
    /// Why its memory is not tiered, if it is not.
    pub refused: Option<String>,
}

/// Memory of a program by address: adjacent parts of 2 MiB that hold some, from the first page to the last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MappingStatus {
    /// Number of the process.
    pub pid: u32,
    /// First address.
    pub start: u64,
    /// Length in bytes.
    pub bytes: Bytes,
    /// Memory on each tier, fastest first.
    pub resident_bytes: Vec<Bytes>,
    /// Equal parts in order of address: sampled accesses, of which old ones count for less, and the
    /// percentage of the part's memory that is fast.
    pub cells: Vec<(u64, u8)>,
}

impl MappingStatus {
    /// Most of them in one answer: those with the most memory.
    pub const MAX: usize = 64;
    /// Most cells of one.
    pub const MAX_CELLS: usize = 64;

    /// Returns the sampled accesses.
    pub fn accesses(&self) -> u64 {
        self.cells.iter().map(|cell| cell.0).sum()
    }
}

impl GroupStatus {
    /// Returns the memory on the fast tier.
    pub fn fast(&self) -> Bytes {
        self.resident_bytes.first().copied().unwrap_or_default()
    }

    /// Returns the memory on all other tiers.
    pub fn slow(&self) -> Bytes {
        self.resident_bytes.iter().skip(1).copied().sum()
    }
}
