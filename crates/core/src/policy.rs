//! Defines the interface of a tiering policy.

use crate::{Bytes, Nanos, Outcome, Plan, SampleBatch, Sampling, Signals, View};

/// Where new pages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Allocation {
    /// The fastest tier with room above its watermark: Linux' default.
    #[default]
    FastFirst,
    /// The slowest tier with room.
    SlowFirst,
}

/// Whose time it takes to scan page tables, to arm pages and to move them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MigrationContext {
    /// A thread of the tiering system, which takes its samples too: they wait while it moves pages.
    #[default]
    Shared,
    /// A thread of the tiering system, beside another that takes the samples: none is lost because pages are moved.
    Dedicated,
    /// The program's own threads, in their page faults and in task work, as with NUMA balancing. Reclaim and
    /// [`crate::Copying::Transactional`] moves remain a kernel thread's.
    Faulting,
}

/// A number that a policy shows over time, such as its hot threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gauge {
    /// A kebab-case name.
    pub name: &'static str,
    /// Its value now.
    pub value: f64,
}

/// A tiering policy: it sees samples and says which pages should move.
///
/// A policy performs no I/O and has no clock, no thread and no randomness but the seeded generator it was built with.
/// The engine calls `observe`, `step` and, if the plan moved pages, `settle`, in that order, for each batch.
pub trait Policy: Send {
    /// What it needs; a host that lacks one refuses to start.
    fn signals(&self) -> Signals;

    /// The sampling it starts with.
    fn sampling(&self) -> Sampling;

    /// Where new pages should go.
    fn allocation(&self) -> Allocation {
        Allocation::FastFirst
    }

    /// Whose time its work takes.
    fn migration_context(&self) -> MigrationContext {
        MigrationContext::Shared
    }

    /// Takes a batch of samples and hint faults in. Both may be empty: then only time has passed.
    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View);

    /// Says what to do now. `plan` arrives empty.
    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan);

    /// Learns what became of `plan`.
    fn settle(&mut self, plan: &Plan, outcome: &Outcome, view: &mut dyn View) {
        let _ = (plan, outcome, view);
    }

    /// The memory that its data structures occupy.
    fn metadata(&self) -> Bytes;

    /// Numbers worth showing over time.
    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        let _ = gauges;
    }
}
