//! Events that are counted: of threads by the core's PMU, of sockets by the caching and home agents.
//!
//! Only counter 0 of an agent counts occupancy, and Skylake's agents have one filter for all four counters,
//! so an agent counts one tier at a time. Groups that took turns on it would be extrapolated, which PACT
//! rejects. Instead the agents are divided among the tiers: addresses are hashed evenly over all agents, so a
//! share of them stands for all.

use std::collections::BTreeSet;
use std::path::Path;

use isotherm_core::TierId;

use super::data_source::TierMap;
use super::event_table::{Quantity, Row};
use super::events::find;
use super::pmu::{Encoding, Pmu};
use crate::LinuxError;
use crate::files::Tree;
use crate::topology::cpu::Model;

/// Counters that every core and agent has; a larger group would never run.
const GROUP: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    Loads(TierId),
    /// Stall cycles, of all tiers together.
    Stalls,
    /// Requests to a tier in flight, summed over cycles.
    Occupancy(TierId),
    /// Cycles with a request to a tier in flight.
    Busy(TierId),
    /// Requests to a tier by the whole socket.
    Inserts(TierId),
    /// Cycles of the agent that counts the group's other events.
    Clock,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountSpec {
    pub name: String,
    pub encoding: Encoding,
    pub measure: Measure,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketGroup {
    pub cpu: u32,
    /// Events, all of one PMU.
    pub events: Vec<CountSpec>,
    /// Number of agents that count the same, and of all agents, for which these stand.
    pub share: (u64, u64),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CounterEvents {
    pub threads: Vec<Vec<CountSpec>>,
    pub sockets: Vec<SocketGroup>,
    pub tiers: Vec<TierId>,
}

/// Returns the meaning of a row's quantity, if its memory is a tier.
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
    /// Reads the events of a model from sysfs below `root`. They are empty if the table lacks the model.
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
        // Each agent counts one tier if there are enough agents.
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

    fn of_threads(&self, wanted: Measure) -> bool {
        self.threads.iter().flatten().any(|event| event.measure == wanted)
    }

    fn of_sockets(&self, wanted: Measure) -> bool {
        self.sockets.iter().flat_map(|group| &group.events).any(|event| event.measure == wanted)
    }

    /// Returns whether stalls are counted, and the requests and occupancy of every tier.
    pub(super) fn queues(&self) -> bool {
        let whole = |&tier: &TierId| {
            let requests = self.of_threads(Measure::Loads(tier)) || self.of_sockets(Measure::Inserts(tier));
            requests && self.of_sockets(Measure::Occupancy(tier)) && self.of_sockets(Measure::Busy(tier))
        };
        self.of_threads(Measure::Stalls) && !self.tiers.is_empty() && self.tiers.iter().all(whole)
    }

    /// Returns tiers whose loads no thread's event counts; the agents' requests replace them.
    pub(super) fn by_inserts(&self) -> Vec<TierId> {
        self.tiers.iter().copied().filter(|&tier| !self.of_threads(Measure::Loads(tier))).collect()
    }
}

/// Returns how many of `agents` that take `turns` count the same as the one at `index`.
fn alike(agents: usize, turns: usize, index: usize) -> usize {
    (agents - index % turns).div_ceil(turns)
}

/// Returns one group per tier. `COUNTER0_OCCUPANCY` reads counter 0, the only one that counts occupancy.
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
