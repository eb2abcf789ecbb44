//! Events that sample accesses: a choice of `event_table.rs`'s rows, in the terms of the machine's sysfs.

use std::path::Path;

use isotherm_core::{Operation, TierId};

use super::data_source::{Memory, TierMap};
use super::event_table::ROWS;
pub use super::event_table::{Quantity, Row};
use super::pmu::{Encoding, Pmu, Terms};
use super::sys::{kind, sample, software};
use crate::LinuxError;
use crate::files::Tree;
use crate::topology::cpu::{Model, Vendor};

/// Way in which samples tell what served the access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Not at all, or by the event itself.
    Plain,
    /// In `PERF_SAMPLE_DATA_SRC`, with the latency as weight.
    DataSource,
    Ibs,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSpec {
    pub name: String,
    pub encoding: Encoding,
    /// Event that must lead the group: Sapphire Rapids' load latency fails without `mem-loads-aux` (ENODATA).
    pub leader: Option<Encoding>,
    pub format: Format,
    /// Operation, where samples do not tell it.
    pub operation: Operation,
    /// Tier, where the event determines it.
    pub tier: Option<TierId>,
    /// Maximum `precise_ip` to request.
    pub precise: u8,
    /// Minimum `precise_ip` at which samples carry addresses.
    pub min_precise: u8,
    /// Divisor of permitted periods.
    pub period_step: u64,
}

impl EventSpec {
    /// Returns the fields of its samples: bits of [`sample`]. The period is included only if the kernel
    /// adjusts it. A fixed one is known, and the kernel would take the field as a request for single events
    /// (`perf_swevent_event` in `kernel/events/core.c`).
    pub fn sample_type(&self, frequency: bool) -> u64 {
        let source = match self.format {
            Format::Plain => 0,
            Format::DataSource => sample::WEIGHT | sample::DATA_SRC,
            Format::Ibs => sample::RAW,
        };
        let period = if frequency { sample::PERIOD } else { 0 };
        sample::TID | sample::TIME | sample::ADDR | period | source
    }

    /// Samples first touches of pages by page faults, without a PMU. This is not a sample of all accesses.
    pub fn page_faults() -> Self {
        Self {
            name: "page-faults".into(),
            encoding: Encoding { kind: kind::SOFTWARE, config: [software::PAGE_FAULTS, 0, 0, 0] },
            leader: None,
            format: Format::Plain,
            operation: Operation::Load,
            tier: None,
            precise: 0,
            min_precise: 0,
            period_step: 1,
        }
    }

    fn intel(row: &Row, cpu: &Pmu, terms: Terms<'_>, tier: Option<TierId>) -> Option<Self> {
        Some(Self {
            name: row.name.into(),
            encoding: cpu.encode(terms)?,
            // Addresses need PEBS: 3 is PEBS with the exact instruction, 1 suffices.
            precise: 3,
            min_precise: 1,
            tier,
            operation: if row.quantity == Quantity::Stores { Operation::Store } else { Operation::Load },
            ..Self::page_faults()
        })
    }

    /// Samples micro-ops with IBS, and only misses where the processor can (Zen 4 and later).
    fn ibs(op: &Pmu) -> Option<Self> {
        let misses_only = op.has("l3missonly");
        let terms: Terms<'_> =
            if misses_only { &[("cnt_ctl", 1), ("l3missonly", 1)] } else { &[("cnt_ctl", 1)] };
        Some(Self {
            name: "ibs_op".into(),
            // A kernel without the `cnt_ctl` format counts cycles.
            encoding: op.encode(terms).or_else(|| op.encode(&[]))?,
            format: Format::Ibs,
            // The counter's lowest four bits are fixed.
            period_step: 16,
            ..Self::page_faults()
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceEvents {
    pub name: &'static str,
    /// Loads of every tier, by as few events as possible.
    pub all_tiers: Vec<EventSpec>,
    /// Loads by one event per tier; as [`Self::all_tiers`] where there are none.
    pub each_tier: Vec<EventSpec>,
    /// Stores, where the events of loads do not include them.
    pub stores: Option<EventSpec>,
    /// Whether samples of [`Self::all_tiers`] include stores.
    pub stores_too: bool,
    pub tiers: TierMap,
}

#[derive(Debug, Clone, Copy)]
pub struct Choice {
    pub tiers: TierMap,
    /// Samples only loads above this many cycles, with latency, which costs more.
    pub latency: Option<u16>,
}

impl SourceEvents {
    pub fn page_faults() -> Self {
        Self::of("page-faults", vec![EventSpec::page_faults()], TierMap::default())
    }

    fn of(name: &'static str, all_tiers: Vec<EventSpec>, tiers: TierMap) -> Self {
        Self { name, each_tier: all_tiers.clone(), all_tiers, stores: None, stores_too: false, tiers }
    }

    /// Chooses the PMU's events on this machine, whose sysfs lies below `root`. Fails if the processor or the
    /// table has none.
    pub fn pmu(root: &Path, vendor: Vendor, model: Model, choice: Choice) -> Result<Self, LinuxError> {
        let root = Tree::new(root);
        match vendor {
            Vendor::Intel => Self::intel(root, model, choice),
            Vendor::Amd => Self::ibs(root, choice),
            Vendor::Arm | Vendor::Ampere => Err(unsupported(
                "Arm SPE is not supported as a live source: use --source hint-faults or --source accessed-bits".into(),
            )),
            Vendor::Other => Err(unsupported("this processor's PMU is not in the event table".into())),
        }
    }

    fn intel(root: Tree<'_>, model: Model, choice: Choice) -> Result<Self, LinuxError> {
        let Some(cpu) = Pmu::read(root, "cpu")? else {
            return Err(unsupported(
                "no PMU in /sys/bus/event_source/devices/cpu: a virtual machine needs a virtual PMU with PEBS".into(),
            ));
        };
        let spec = |row: &Row, tier| EventSpec::intel(row, &cpu, &row.all_terms(), tier);
        let all_tiers = match choice.latency {
            Some(cycles) => vec![slow_loads(root, &cpu, model, cycles)?],
            None => find(model, |quantity| quantity == Quantity::Misses)
                .filter_map(|row| spec(row, None))
                .collect(),
        };
        let of_memory = |memory| {
            let mut rows = find(model, move |quantity| quantity == Quantity::Loads(memory));
            spec(rows.find(|row| row.addresses)?, Some(choice.tiers.tier(memory)?))
        };
        let each_tier: Vec<_> = Memory::ALL.into_iter().filter_map(of_memory).collect();
        let stores = find(model, |quantity| quantity == Quantity::Stores).find_map(|row| spec(row, None));
        if all_tiers.is_empty() {
            let remedy = format!("the event table has no loads for the processor model {}", model.name());
            return Err(unsupported(remedy));
        }
        let each_tier = if each_tier.is_empty() { all_tiers.clone() } else { each_tier };
        Ok(Self { name: "pebs", all_tiers, each_tier, stores, stores_too: false, tiers: choice.tiers })
    }

    fn ibs(root: Tree<'_>, choice: Choice) -> Result<Self, LinuxError> {
        let Some(op) = Pmu::read(root, "ibs_op")?.as_ref().and_then(EventSpec::ibs) else {
            return Err(unsupported(
                "no IBS in /sys/bus/event_source/devices/ibs_op: enable IBS in the firmware".into(),
            ));
        };
        Ok(Self { stores_too: true, ..Self::of("ibs", vec![op], choice.tiers) })
    }
}

/// Returns the load latency event, with the leader `mem-loads-aux` if sysfs has one.
fn slow_loads(root: Tree<'_>, cpu: &Pmu, model: Model, cycles: u16) -> Result<EventSpec, LinuxError> {
    let row = find(model, |quantity| quantity == Quantity::SlowLoads).next();
    let spec = row.and_then(|row| {
        let mut terms = row.all_terms();
        terms.push(("ldlat", u64::from(cycles.max(3))));
        EventSpec::intel(row, cpu, &terms, None)
    });
    let Some(spec) = spec else {
        return Err(unsupported(format!("the processor model {} samples no load latencies", model.name())));
    };
    let leader = cpu.event(root, "mem-loads-aux")?;
    Ok(EventSpec { leader, format: Format::DataSource, ..spec })
}

pub fn find(model: Model, wanted: impl Fn(Quantity) -> bool) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().copied().flatten().filter(move |row| row.models.contains(&model) && wanted(row.quantity))
}

pub(crate) fn unsupported(remedy: String) -> LinuxError {
    LinuxError::Unsupported { what: "sampling memory accesses with the PMU", remedy }
}

#[cfg(test)]
mod tests;
