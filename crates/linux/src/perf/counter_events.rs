//! Defines which events are counted on a machine: of threads by the core's PMU, of sockets by the caching and home agents'.
//!
//! Occupancy can be counted by one counter of an agent only (counter 0), and Skylake's agents have one filter for all four. So an
//! agent counts one tier at a time. Groups that took turns on it would be extrapolated, which PACT rejects; instead the agents are
//! dealt out to the tiers, as addresses are hashed over all of them evenly, and what a share of them counts stands for all.

use std::collections::BTreeSet;
use std::path::Path;

use isotherm_core::TierId;

use super::data_source::TierMap;
use super::events::{Quantity, Row, find};
use super::pmu::{Encoding, Pmu};
use crate::LinuxError;
use crate::files::Tree;
use crate::topology::cpu::Model;

/// Counters that a core or an agent has at least: a larger group would never run.
const GROUP: usize = 4;

/// What a counted event means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Loads that a tier served.
    Loads(TierId),
    /// Cycles of stalls, of all tiers together.
    Stalls,
    /// Requests to a tier in flight, summed over cycles.
    Occupancy(TierId),
    /// Cycles with a request to a tier in flight.
    Busy(TierId),
    /// Requests to a tier, of the whole socket.
    Inserts(TierId),
    /// Cycles of the agent that counts the others of the group.
    Clock,
}

/// An event to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountSpec {
    /// Its name.
    pub name: String,
    /// The event.
    pub encoding: Encoding,
    /// What it means.
    pub measure: Measure,
}

/// A group of events that count whole sockets, and the processor that it is opened on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketGroup {
    /// A processor of the socket.
    pub cpu: u32,
    /// The events, all of one PMU.
    pub events: Vec<CountSpec>,
    /// Of so many agents (the second) so many count the same (the first): what they count stands for all.
    pub share: (u64, u64),
}

/// What is counted on a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CounterEvents {
    /// Groups for each thread.
    pub threads: Vec<Vec<CountSpec>>,
    /// Groups for each caching and home agent.
    pub sockets: Vec<SocketGroup>,
    /// The tiers there are.
    pub tiers: Vec<TierId>,
}

/// The measure of a row, where its memory is a tier.
fn measure(quantity: Quantity, tiers: TierMap) -> Option<Measure> {
    Some(match quantity {
        Quantity::Loads(memory) => Measure::Loads(tiers.tier(memory)?),
        Quantity::Occupancy(memory) => Measure::Occupancy(tiers.tier(memory)?),
        Quantity::Busy(memory) => Measure::Busy(tiers.tier(memory)?),
        Quantity::Inserts(memory) => Measure::Inserts(tiers.tier(memory)?),
        Quantity::Stalls => Measure::Stalls,
        Quantity::Clock => Measure::Clock,
        Quantity::Misses | Quantity::SlowLoads | Quantity::Stores => return None,
    })
}

fn spec(row: &Row, pmu: &Pmu, tiers: TierMap) -> Option<CountSpec> {
    let measure = measure(row.quantity, tiers)?;
    Some(CountSpec { name: row.name.into(), encoding: pmu.encode(&row.all_terms())?, measure })
}

impl CounterEvents {
    /// The events of a model whose sysfs lies below `root`. Empty where it is not in the table.
    pub fn of(root: &Path, model: Model, tiers: TierMap) -> Result<Self, LinuxError> {
        let root = Tree::new(root);
        let known: BTreeSet<_> = tiers.0.into_iter().flatten().collect();
        let mut events = Self { tiers: known.into_iter().collect(), ..Self::default() };
        if let Some(cpu) = Pmu::read(root, "cpu")? {
            let rows = find(model, |quantity| matches!(quantity, Quantity::Loads(_) | Quantity::Stalls));
            let specs: Vec<_> = rows.filter_map(|row| spec(row, &cpu, tiers)).collect();
            events.threads = specs.chunks(GROUP).map(<[_]>::to_vec).collect();
        }
        let agents = Pmu::all(root, "uncore_cha")?;
        let groups = |agent| agent_groups(agent, model, tiers);
        let kinds = agents.first().map_or(0, |first| groups(first).len());
        // Each agent counts one tier if there are enough of them.
        let turns = if agents.len() < kinds { 1 } else { kinds.max(1) };
        for (index, agent) in agents.iter().enumerate() {
            let own = groups(agent).into_iter().enumerate().filter(|(kind, _)| kind % turns == index % turns);
            for (_, events_of) in own {
                let share = (alike(agents.len(), turns, index) as u64, agents.len() as u64);
                let group = |&cpu| SocketGroup { cpu, events: events_of.clone(), share };
                events.sockets.extend(agent.cpus.iter().map(group));
            }
        }
        Ok(events)
    }

    /// Whether an event of `events` measures that.
    fn measures<'a>(mut events: impl Iterator<Item = &'a CountSpec>, wanted: Measure) -> bool {
        events.any(|event| event.measure == wanted)
    }

    fn of_threads(&self) -> impl Iterator<Item = &CountSpec> {
        self.threads.iter().flatten()
    }

    fn of_sockets(&self) -> impl Iterator<Item = &CountSpec> {
        self.sockets.iter().flat_map(|group| &group.events)
    }

    /// Whether stalls are counted, and of every tier the requests and what of them is in flight.
    pub(super) fn queues(&self) -> bool {
        let of_threads = |measure| Self::measures(self.of_threads(), measure);
        let of_sockets = |measure| Self::measures(self.of_sockets(), measure);
        let whole = |&tier: &TierId| {
            let requests = of_threads(Measure::Loads(tier)) || of_sockets(Measure::Inserts(tier));
            requests && of_sockets(Measure::Occupancy(tier)) && of_sockets(Measure::Busy(tier))
        };
        of_threads(Measure::Stalls) && !self.tiers.is_empty() && self.tiers.iter().all(whole)
    }

    /// Tiers whose loads no event of threads counts: the agents' requests stand for them.
    pub(super) fn by_inserts(&self) -> Vec<TierId> {
        let counted = |tier: &&TierId| Self::measures(self.of_threads(), Measure::Loads(**tier));
        self.tiers.iter().filter(|tier| !counted(tier)).copied().collect()
    }
}

/// How many of `agents` that take `turns` count what the one at `index` counts.
fn alike(agents: usize, turns: usize, index: usize) -> usize {
    (agents - index % turns).div_ceil(turns)
}

/// One group a tier: occupancy can be counted by an agent's counter 0 only, and `COUNTER0_OCCUPANCY` reads that one.
fn agent_groups(agent: &Pmu, model: Model, tiers: TierMap) -> Vec<Vec<CountSpec>> {
    let of = |wanted: Measure| {
        find(model, |quantity| measure(quantity, tiers) == Some(wanted))
            .find_map(|row| spec(row, agent, tiers))
    };
    let known = tiers.0.into_iter().flatten().collect::<BTreeSet<_>>();
    let group = |tier| {
        let counted = [Measure::Occupancy(tier), Measure::Busy(tier), Measure::Clock].map(of);
        let mut group = counted.into_iter().collect::<Option<Vec<_>>>()?;
        group.extend(of(Measure::Inserts(tier)));
        Some(group)
    };
    known.into_iter().filter_map(group).collect()
}
