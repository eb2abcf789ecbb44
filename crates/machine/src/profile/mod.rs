//! The machine profile: cores, tiers and costs, each number with its source.

use std::collections::BTreeMap;

use isotherm_core::names::advice;
use isotherm_core::{Bytes, Nanos};
use serde::Serialize;

mod builtin;
mod error;
mod fields;
mod file;
mod quantity;
#[cfg(test)]
mod tests;

pub use error::ProfileError;
use fields::{FIELDS, Field};
pub use file::is_path;

use crate::curve::Curve;

/// Source of a number that [`Profile::set`] changed.
const SET_BY_USER: &str = "set by the user";

/// Name of a tier's curve, which is no number.
const CURVE: &str = "curve";
const CURVE_VALUE: &str = "a name, or points as `READ_PERCENT,GB_PER_S,NS; ...`";
const CURVE_HELP: &str = "Optional: latency by bandwidth and share of reads. It gives the latency and the bandwidths \
    that the profile does not.";
/// Field that only a tier without a curve has.
const FACTOR: &str = "loaded_latency_factor";
/// Fields that a curve gives.
const FROM_CURVE: [&str; 3] = ["latency", "read_bandwidth", "write_bandwidth"];

fn curve_path(tier: usize) -> String {
    format!("tier.{tier}.{CURVE}")
}

/// A machine, as read from `machines/NAME.toml`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// Kebab-case name.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// The processor.
    pub core: CoreProfile,
    /// Size of the last-level cache that filters a workload's accesses.
    pub llc_size: Bytes,
    /// Ways of the last-level cache.
    pub llc_ways: u32,
    /// Address translation.
    pub tlb: TlbProfile,
    /// Memory tiers, fastest first; at least one.
    pub tiers: Vec<TierProfile>,
    /// Costs of tiering.
    pub costs: Costs,
    /// Profiling device in front of each slower tier, if the machine has any.
    pub device: Option<DeviceProfile>,
    /// Clock from which [`CoreProfile::instruction_ps`] is derived.
    pub clock: CoreClock,
    /// Source of each number, by its path, such as `tier.1.latency`.
    pub sources: BTreeMap<String, String>,
}

/// Speed of a core where no miss stalls it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CoreClock {
    /// Frequency in hertz.
    pub frequency: u64,
    /// Instructions that retire per cycle.
    pub instructions_per_cycle: f64,
}

impl CoreClock {
    /// Returns the time of one instruction in picoseconds, at least 1; 0 if the clock stands still.
    fn instruction_ps(self) -> u64 {
        let rate = self.frequency as f64 * self.instructions_per_cycle;
        if rate > 0.0 { ((1e12 / rate).round() as u64).max(1) } else { 0 }
    }
}

/// Processor of a profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CoreProfile {
    /// Cores that the program and the tiering thread share.
    pub cores: u32,
    /// Time of one instruction where no miss stalls, in picoseconds: 1000 / (GHz x instructions per cycle).
    pub instruction_ps: u64,
    /// Instructions in the reorder buffer.
    pub reorder_window: u32,
    /// Outstanding misses per core (line fill buffers).
    pub miss_registers: u32,
    /// Stores that may wait for memory after retirement.
    pub store_buffer: u32,
    /// Outstanding requests of a second-level cache, misses and prefetches; `None` without a prefetcher.
    pub l2_registers: Option<u32>,
    /// Whether that cache completes pairs of lines: 1; 0 or `None`, it does not.
    pub pair_prefetcher: Option<u32>,
    /// Size of a core's second-level cache.
    pub l2_size: Bytes,
    /// Cycles of a load that hits it.
    pub l2_latency: u32,
}

/// Address translation of one core.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TlbProfile {
    /// Entries of the first level for base pages.
    pub first_entries: u32,
    /// Entries of the first level for huge pages.
    pub first_huge_entries: u32,
    /// Associativity of the first level.
    pub first_ways: u32,
    /// Entries of the second level that base pages may use.
    pub second_entries: u32,
    /// Entries of the second level that huge pages may use.
    pub second_huge_entries: u32,
    /// Associativity of the second level.
    pub second_ways: u32,
    /// Cycles that the second level adds to an access.
    pub second_latency: u32,
    /// Entries of the cache of the tables above those that map pages (paging-structure cache).
    pub directory_entries: u32,
    /// Page walks at once.
    pub walkers: u32,
}

/// Memory tier of a profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TierProfile {
    /// Kind of memory: `DRAM`, `CXL`.
    pub name: String,
    /// Idle load-to-use latency.
    pub latency: Nanos,
    /// Measured latency by bandwidth and share of reads, moved to this latency and these bandwidths.
    pub curve: Option<Curve>,
    /// Without a curve: latency at full bandwidth over the idle latency; at least 1.
    pub loaded_latency_factor: Option<f64>,
    /// Peak read bandwidth in bytes per second.
    pub read_bandwidth: u64,
    /// Peak write bandwidth in bytes per second.
    pub write_bandwidth: u64,
    /// Size of a tier between the fastest and the slowest: each run sets the fastest tier's, and the slowest
    /// takes what is left. `None`: as large as the fastest.
    pub capacity: Option<Bytes>,
    /// Bytes per second that other programs read from it throughout; `None` for no other traffic.
    pub pressure: Option<u64>,
    /// Whether it holds compressed pages, which fault, and by which algorithm: 1 for zstd,
    /// [`TierProfile::LZ4`] for lz4. Its latency is that of a fault, its bandwidths are those of a core that
    /// decompresses and compresses.
    pub compressed: Option<u32>,
    /// Cost of a load that nothing overlaps, from `isotherm calibrate`: PACT's `k`, for live runs only.
    pub k: Option<Nanos>,
}

impl TierProfile {
    /// [`TierProfile::compressed`] of lz4.
    pub const LZ4: u32 = 2;

    /// Returns whether it holds compressed pages.
    pub fn is_compressed(&self) -> bool {
        self.compressed.is_some_and(|algorithm| algorithm > 0)
    }
}

/// Profiling devices of a machine: one NeoProf in front of each tier but the fastest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceProfile {
    /// Rows of the sketch: D.
    pub lanes: u32,
    /// Entries per row at the paper's scale: W. Rounded to a power of two.
    pub width: u32,
    /// Bits of a counter.
    pub counter_bits: u32,
    /// Hot pages held until they are read, at the paper's scale. Rounded to a power of two.
    pub hot_entries: u32,
    /// Memory controller's cycles per second; a cache line can pass in each.
    pub clock: u64,
    /// Tiering thread: reading a register.
    pub read: Nanos,
    /// Tiering thread: writing a register.
    pub write: Nanos,
}

/// Costs of tiering on a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Costs {
    /// Program thread: one PMU sample that takes an interrupt of its own.
    pub sample: Nanos,
    /// Program thread: one PMU sample that the processor buffers, its share of the interrupt included.
    pub buffered_sample: Nanos,
    /// Samples a second of one event and core above which the kernel throttles
    /// (`perf_event_max_sample_rate`).
    pub sample_rate_limit: u32,
    /// Share of a core's time above which the kernel lowers that rate (`perf_cpu_time_max_percent`).
    pub sample_time_limit: f64,
    /// Samples that the ring buffers hold before they lose any.
    pub ring_samples: u64,
    /// Tiering thread: reading and decoding one sample from the ring.
    pub drain_sample: Nanos,
    /// Tiering thread: one `move_pages` call, whatever its pages.
    pub move_call: Nanos,
    /// Tiering thread: unmapping, remapping and locking one page of either size, without its copy.
    pub move_page: Nanos,
    /// Bytes per second of one core copying a page, if the tiers are not slower.
    pub copy_bandwidth: u64,
    /// Each program thread: one TLB shootdown.
    pub shootdown: Nanos,
    /// Pages that share one shootdown (the kernel's migration batch).
    pub shootdown_batch: u32,
    /// Tiering thread: one entry of a page-table scan (pagemap).
    pub scan_page: Nanos,
    /// Tiering thread or program: one entry of a scan that tests and clears accessed bits.
    pub accessed_page: Nanos,
    /// Tiering thread or program: making one page fault at its next access.
    pub arm_page: Nanos,
    /// Program thread: one hint fault, or write fault on a page with a shadow, without the work done in it.
    pub fault: Nanos,
    /// Time for which a fault, a move, or one page table's arming or scanning holds the shared lock.
    pub lock_hold: Nanos,
    /// Tiering thread: one page examined by the kernel's reclaim.
    pub reclaim_page: Nanos,
    /// Lists of the kernel's reclaim: 2, an inactive and an active one; 1 or `None`, a clock over all pages.
    pub reclaim_lists: Option<u32>,
    /// Tiering thread: a metadata line that hits the last-level cache; a miss costs the fast latency.
    pub cached_touch: Nanos,
    /// Tiering thread: one simple operation.
    pub operation: Nanos,
    /// Share of a tier's pages that the kernel keeps free (the `min` watermark); programs cannot allocate it.
    pub reserve: f64,
}

/// A machine in results: its title and all of its numbers.
#[derive(Debug, Clone, Serialize)]
pub struct MachineSummary {
    /// Kebab-case name.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// Every number in force.
    pub numbers: Vec<MachineNumber>,
}

/// One number of a machine profile.
#[derive(Debug, Clone, Serialize)]
pub struct MachineNumber {
    /// Path, such as `tier.1.latency`.
    pub path: String,
    /// Value with its unit.
    pub value: String,
    /// Source of the number.
    pub source: String,
}

impl Profile {
    /// Returns the path (`tier.N` for each tier), the unit and range, and the meaning of each number.
    pub fn fields() -> impl Iterator<Item = (String, String, &'static str)> {
        let curve = (format!("tier.N.{CURVE}"), CURVE_VALUE.into(), CURVE_HELP);
        let number = |field: &Field| {
            let section = if field.of_tier() { "tier.N" } else { field.section };
            (format!("{section}.{}", field.name), field.quantity.expected(), field.help)
        };
        let first = FIELDS.iter().take_while(|field| !field.of_tier()).count();
        let (before, after) = FIELDS.split_at(first);
        before.iter().map(number).chain([curve]).chain(after.iter().map(number))
    }

    /// Sets one number, such as `tier.1.latency` to `200ns`. Call [`Self::check`] after the last one.
    ///
    /// # Errors
    /// An unknown path, or a value that is not valid for it.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), ProfileError> {
        if let Some(tier) = (0..self.tiers.len()).find(|&tier| curve_path(tier) == path) {
            let curve = Curve::parse(value, &self.name, path)?;
            self.assign_curve(tier, curve, SET_BY_USER.into());
            return Ok(());
        }
        let (field, tier) = Field::find(path, self.tiers.len()).ok_or_else(|| self.unknown(path))?;
        let amount = field
            .quantity
            .parse(value)
            .ok_or_else(|| ProfileError::unexpected(&self.name, path, value, &field.quantity.expected()))?;
        self.assign(field, tier, amount, SET_BY_USER.into());
        Ok(())
    }

    /// Checks what spans several numbers: there is a tier, tiers are ordered fastest first, a device is
    /// complete.
    ///
    /// # Errors
    /// One line that names the first tier out of order, or the missing number.
    pub fn check(&self) -> Result<(), ProfileError> {
        let lacking = Field::of("device").find(|field| !self.sources.contains_key(&field.path(0)));
        if let (Some(_), Some(field)) = (&self.device, lacking) {
            return Err(ProfileError::missing(&self.name, &field.path(0), &field.quantity.expected()));
        }
        self.check_compressed(&self.name)?;
        self.check_order(&self.name)
    }

    /// Returns the slowest tier if it is one of compressed pages.
    pub fn compressed(&self) -> Option<&TierProfile> {
        self.tiers.last().filter(|tier| tier.is_compressed())
    }

    /// Returns every number in force with its unit and source, in the order of the documentation.
    pub fn summary(&self) -> MachineSummary {
        let number = |(field, tier): (&Field, usize)| {
            let value = field.quantity.format((field.get)(self, tier)?);
            let path = field.path(tier);
            let source = self.sources.get(&path).cloned().unwrap_or_else(|| "not given".into());
            Some(MachineNumber { path, value, source })
        };
        let curve = |(tier, profile): (usize, &TierProfile)| {
            let path = curve_path(tier);
            let value = profile.curve.as_ref()?.text.clone();
            let source = self.sources.get(&path).cloned().unwrap_or_else(|| "not given".into());
            Some(MachineNumber { path, value, source })
        };
        let curves = self.tiers.iter().enumerate().filter_map(curve);
        let mut numbers: Vec<_> = self.positions().filter_map(number).chain(curves).collect();
        numbers.push(MachineNumber {
            path: "core.instruction".into(),
            value: format!("{}ps", self.core.instruction_ps),
            source: "derived: 1 / (core.frequency x core.instructions_per_cycle)".into(),
        });
        MachineSummary { name: self.name.clone(), title: self.title.clone(), numbers }
    }

    /// As [`Self::set`], with the number's source.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn set_from(&mut self, path: &str, value: &str, source: &str) -> Result<(), ProfileError> {
        self.set(path, value)?;
        self.sources.insert(path.into(), error::one_line(source));
        Ok(())
    }

    /// Returns every field of this profile, with each tier's fields in turn.
    fn positions(&self) -> impl Iterator<Item = (&'static Field, usize)> + '_ {
        FIELDS.iter().flat_map(|field| {
            (0..if field.of_tier() { self.tiers.len() } else { 1 }).map(move |tier| (field, tier))
        })
    }

    /// Gives a tier a curve, with its idle latency and its bandwidths.
    fn assign_curve(&mut self, tier: usize, curve: Curve, source: String) {
        let (read_bandwidth, write_bandwidth) = curve.bandwidths();
        let numbers = [
            (FROM_CURVE[0], curve.idle_latency()),
            (FROM_CURVE[1], read_bandwidth),
            (FROM_CURVE[2], write_bandwidth),
        ];
        let origin = "derived: from the curve of the tier";
        for (name, value) in numbers {
            if let Some(field) = Field::of("tier").find(|field| field.name == name) {
                self.assign(field, tier, field.quantity.fit(value), origin.into());
            }
        }
        self.sources.remove(&format!("tier.{tier}.{FACTOR}"));
        self.sources.insert(curve_path(tier), source);
        let profile = &mut self.tiers[tier];
        (profile.curve, profile.loaded_latency_factor) = (Some(curve), None);
    }

    fn assign(&mut self, field: &Field, tier: usize, amount: f64, source: String) {
        (field.set)(self, tier, amount);
        if field.of_tier() && field.name == FACTOR && self.tiers[tier].curve.take().is_some() {
            self.sources.remove(&curve_path(tier));
        }
        self.core.instruction_ps = self.clock.instruction_ps();
        self.sources.insert(field.path(tier), source);
    }

    fn unknown(&self, path: &str) -> ProfileError {
        let numbers = self.positions().map(|(field, tier)| field.path(tier));
        let known: Vec<String> = numbers.chain((0..self.tiers.len()).map(curve_path)).collect();
        ProfileError::unknown(
            &self.name,
            path,
            "the machine",
            &advice(path, known.iter().map(String::as_str)),
        )
    }

    /// Checks that compressed pages are in the slowest of three tiers: they take room of the one before.
    fn check_compressed(&self, file: &str) -> Result<(), ProfileError> {
        let misplaced = |(tier, profile): &(usize, &TierProfile)| {
            profile.is_compressed() && (*tier < 2 || *tier + 1 < self.tiers.len())
        };
        self.tiers.iter().enumerate().find(misplaced).map_or(Ok(()), |(tier, _)| {
            let path = format!("tier.{tier}.compressed");
            let found = self.tiers[tier].compressed.unwrap_or(0).to_string();
            Err(ProfileError::unexpected(
                file,
                &path,
                &found,
                "1 or 2 in the last of three tiers or more only",
            ))
        })
    }

    /// Checks that tiers stand in the kernel's order, by latency over bandwidth (`mt_perf_to_adistance` in
    /// mm/memory-tiers.c, Linux 6.12): HBM comes before DRAM, whose idle latency is shorter.
    fn check_order(&self, file: &str) -> Result<(), ProfileError> {
        if self.tiers.is_empty() {
            return Err(ProfileError::missing(file, "tier", "at least one [[tier]]"));
        }
        let distance = |tier: usize| {
            let TierProfile { latency, read_bandwidth, .. } = self.tiers[tier];
            latency.0 as f64 / read_bandwidth as f64
        };
        let late = |&tier: &usize| distance(tier) < distance(tier - 1);
        (1..self.tiers.len()).find(late).map_or(Ok(()), |tier| {
            Err(ProfileError::order(file, tier, [tier, tier - 1].map(|tier| &self.tiers[tier])))
        })
    }
}
