//! Defines which events of which processor say what: data, and the choice among them.
//!
//! The rows stand in `event_table.rs`, each with its source; what follows from them on a machine is an
//! [`EventSpec`], in the terms of the machine's own sysfs.

use isotherm_core::{Operation, TierId};

use super::data_source::{Memory, TierMap};
use super::event_table::ROWS;
use super::pmu::{Encoding, Pmu, Terms};
use super::sys::{kind, sample, software};
use crate::LinuxError;
use crate::files::Tree;
use crate::topology::cpu::{Model, Vendor};

/// What an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Loads served by one kind of memory.
    Loads(Memory),
    /// Loads that missed the last-level cache, whatever served them.
    Misses,
    /// Loads slower than a threshold, sampled with latency and data source.
    SlowLoads,
    /// Stores.
    Stores,
    /// Cycles in which nothing was executed while a load was missing the last-level cache.
    Stalls,
    /// Reads of one kind of memory in flight, summed over cycles.
    Occupancy(Memory),
    /// Cycles with at least one such read in flight.
    Busy(Memory),
    /// Reads of one kind of memory, as the agents see them.
    Inserts(Memory),
    /// Cycles of the agent that counts occupancy.
    Clock,
}

/// An event of some processors.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The processors.
    pub models: &'static [Model],
    /// What it counts.
    pub quantity: Quantity,
    /// Its name in the source.
    pub name: &'static str,
    /// The PMU, or the prefix of its instances' names.
    pub pmu: &'static str,
    /// The event.
    pub terms: Terms<'static>,
    /// Of what the event is counted: terms beside its own.
    pub filter: Terms<'static>,
    /// Whether samples of it carry a data address.
    pub addresses: bool,
    /// Where it is documented.
    pub source: &'static str,
}

impl Row {
    /// All terms.
    pub fn all_terms(&self) -> Vec<(&'static str, u64)> {
        [self.terms, self.filter].concat()
    }
}

/// How samples say what served the access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Not at all, or by the event itself.
    Plain,
    /// In `PERF_SAMPLE_DATA_SRC`, with the latency as weight.
    DataSource,
    /// In an IBS op record ([`super::ibs`]).
    Ibs,
}

/// An event to sample, in the terms of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSpec {
    /// Its name.
    pub name: String,
    /// The event.
    pub encoding: Encoding,
    /// An event that must lead the group (Sapphire Rapids: load latency needs `mem-loads-aux`, else ENODATA).
    pub leader: Option<Encoding>,
    /// How samples say what served the access.
    pub format: Format,
    /// What it samples, where samples do not say.
    pub operation: Operation,
    /// The tier that serves it, where the event determines it.
    pub tier: Option<TierId>,
    /// The highest `precise_ip` to ask for.
    pub precise: u8,
    /// The least with which samples carry addresses.
    pub least_precise: u8,
    /// Periods must be a multiple of this.
    pub period_step: u64,
    /// Whether accesses that a cache served are among the samples.
    pub hits_too: bool,
}

impl EventSpec {
    /// What a sample of it holds: bits of [`sample`].
    ///
    /// The period is there only where the kernel adjusts it. With a fixed one it is known, and the kernel would take it for a
    /// wish to see every single event of its own (`perf_swevent_event` in `kernel/events/core.c`).
    pub fn sample_type(&self, frequency: bool) -> u64 {
        let always = sample::TID | sample::TIME | sample::ADDR;
        always
            | if frequency { sample::PERIOD } else { 0 }
            | match self.format {
                Format::Plain => 0,
                Format::DataSource => sample::WEIGHT | sample::DATA_SRC,
                Format::Ibs => sample::RAW,
            }
    }

    /// First touches of pages, by the kernel's page faults: no PMU needed. Not a sample of all accesses.
    pub fn page_faults() -> Self {
        Self {
            name: "page-faults".into(),
            encoding: Encoding { kind: kind::SOFTWARE, config: [software::PAGE_FAULTS, 0, 0, 0] },
            leader: None,
            format: Format::Plain,
            operation: Operation::Load,
            tier: None,
            precise: 0,
            least_precise: 0,
            period_step: 1,
            hits_too: false,
        }
    }

    fn intel(row: &Row, cpu: &Pmu, terms: Terms<'_>, tier: Option<TierId>) -> Option<Self> {
        Some(Self {
            name: row.name.into(),
            encoding: cpu.encode(terms)?,
            // Without PEBS there are no addresses. 3 is PEBS with the exact instruction, 1 will do.
            precise: 3,
            least_precise: 1,
            tier,
            operation: if row.quantity == Quantity::Stores { Operation::Store } else { Operation::Load },
            ..Self::page_faults()
        })
    }

    /// IBS op sampling, of micro-ops rather than cycles, and only of misses where the processor can (Zen 4 and later).
    fn ibs(op: &Pmu) -> Option<Self> {
        let misses_only = op.has("l3missonly");
        let terms: Terms<'_> =
            if misses_only { &[("cnt_ctl", 1), ("l3missonly", 1)] } else { &[("cnt_ctl", 1)] };
        Some(Self {
            name: "ibs_op".into(),
            // Zen 1 lacks `cnt_ctl` on none of its models; a kernel without the format counts cycles.
            encoding: op.encode(terms).or_else(|| op.encode(&[]))?,
            format: Format::Ibs,
            // The counter's lowest four bits cannot be set.
            period_step: 16,
            hits_too: true,
            ..Self::page_faults()
        })
    }
}

/// The events of one way to sample this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceEvents {
    /// The way's name, as in `--source`.
    pub name: &'static str,
    /// Loads of every tier by one event, or as few as there are.
    pub all_tiers: Vec<EventSpec>,
    /// Loads by an event a tier; as [`Self::all_tiers`] where there are none.
    pub each_tier: Vec<EventSpec>,
    /// Stores, where loads' events do not sample them already.
    pub stores: Option<EventSpec>,
    /// Whether samples of [`Self::all_tiers`] hold stores too.
    pub stores_too: bool,
    /// Which tier each kind of memory is.
    pub tiers: TierMap,
}

/// What the choice of events depends on.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// Which tier each kind of memory is.
    pub tiers: TierMap,
    /// Whether samples shall carry a latency, which costs more: loads above this many cycles are sampled.
    pub latency: Option<u16>,
}

impl SourceEvents {
    /// First touches by page faults.
    pub fn page_faults() -> Self {
        let faults = vec![EventSpec::page_faults()];
        let (all_tiers, each_tier) = (faults.clone(), faults);
        Self {
            name: "page-faults",
            all_tiers,
            each_tier,
            stores: None,
            stores_too: false,
            tiers: TierMap::default(),
        }
    }

    /// The PMU's events on this machine, whose sysfs lies below `root`.
    pub fn pmu(
        root: &std::path::Path,
        vendor: Vendor,
        model: Model,
        choice: Choice,
    ) -> Result<Self, LinuxError> {
        let root = Tree::new(root);
        match vendor {
            Vendor::Intel => Self::intel(root, model, choice),
            Vendor::Amd => Self::ibs(root, choice),
            Vendor::Arm | Vendor::Ampere => Err(unsupported(
                "sampling with Arm's SPE is not wired to a live source yet: use --source hint-faults or accessed-bits".into(),
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
        let each_tier = Memory::ALL.into_iter().filter_map(|memory| {
            let tier = choice.tiers.tier(memory)?;
            let row =
                find(model, |quantity| quantity == Quantity::Loads(memory)).find(|row| row.addresses)?;
            spec(row, Some(tier))
        });
        let each_tier: Vec<_> = each_tier.collect();
        let stores = find(model, |quantity| quantity == Quantity::Stores).find_map(|row| spec(row, None));
        if all_tiers.is_empty() {
            return Err(unsupported(format!(
                "the event table has no loads for the processor model {}",
                model.name()
            )));
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
        let (all_tiers, each_tier) = (vec![op.clone()], vec![op]);
        Ok(Self { name: "ibs", all_tiers, each_tier, stores: None, stores_too: true, tiers: choice.tiers })
    }
}

/// The load latency event, with the leader that the processor asks for: sysfs names it `mem-loads-aux` where it does.
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
    Ok(EventSpec { leader, format: Format::DataSource, hits_too: true, ..spec })
}

/// The rows of a model.
pub fn find(model: Model, wanted: impl Fn(Quantity) -> bool) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().copied().flatten().filter(move |row| row.models.contains(&model) && wanted(row.quantity))
}

pub(crate) fn unsupported(remedy: String) -> LinuxError {
    LinuxError::Unsupported { what: "sampling memory accesses with the PMU", remedy }
}

#[cfg(test)]
mod tests;
