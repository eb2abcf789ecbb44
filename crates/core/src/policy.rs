//! The interface of a tiering policy.

use crate::{Bytes, Nanos, Outcome, PageSize, Pages, Plan, SampleBatch, Sampling, Signals, View, Weights};

/// The place for new pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Allocation {
    /// The fastest tier with room above its watermark: Linux' default.
    #[default]
    FastFirst,
    /// The slowest tier with room.
    SlowFirst,
    /// The tiers with room in turn, each for as many pages as its weight: Linux' weighted interleaving.
    Weighted(Weights),
}

/// The content of a sample's record, which decides whether the processor can write it without the kernel. At
/// a fixed period it then buffers many of them for one interrupt; in frequency mode each takes its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Record {
    /// Facts that the processor knows: address, source, latency, its own time.
    #[default]
    Plain,
    /// Also the time of a clock that the reader chose (`use_clockid`), which the kernel adds in an interrupt.
    Clocked,
}

/// The threads whose time scanning page tables, arming pages and moving them takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum MigrationContext {
    /// A thread of the tiering system, which takes its samples too: they wait while it moves pages.
    #[default]
    Shared,
    /// A thread of the tiering system, beside another that takes the samples: moves lose none.
    Dedicated,
    /// The program's own threads, in their page faults and in task work, as with NUMA balancing. Reclaim and
    /// [`crate::Copying::Transactional`] moves remain a kernel thread's.
    Faulting,
}

/// The run that a policy is built for.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Setup {
    /// One more than the largest page so far, as [`View::pages`], which may grow.
    pub pages: usize,
    /// The fast tier's capacity in pages of `page_size`.
    pub fast: Pages,
    /// The page size of the run.
    pub page_size: PageSize,
    /// The number of tiers; at least 1.
    pub tiers: usize,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Setup {
    /// Returns the pages in a share of the fast tier, rounded up.
    pub fn share(&self, share: f64) -> u64 {
        (self.fast.0 as f64 * share).ceil() as u64
    }

    /// Returns the whole pages in a size.
    pub fn pages_in(&self, size: Bytes) -> u64 {
        size.0 >> self.page_size.shift()
    }
}

/// A number that a policy shows over time, such as its hot threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gauge {
    /// A kebab-case name.
    pub name: &'static str,
    /// Its value now.
    pub value: f64,
}

/// A tiering policy: it sees samples and decides which pages move, without I/O, clock, thread or randomness
/// but its seeded generator. For each batch the engine calls `observe`, `step` and, if pages moved, `settle`.
/// A live host that builds a policy anew lets it `observe` the last samples before the first step.
pub trait Policy: Send {
    /// Returns the signals that it needs; a host that lacks one refuses to start.
    fn signals(&self) -> Signals;

    /// Returns signals that it uses too where the host has them.
    fn uses(&self) -> Signals {
        Signals::NONE
    }

    /// Returns the sampling it starts with.
    fn sampling(&self) -> Sampling;

    /// Returns what the records of its samples hold.
    fn record(&self) -> Record {
        Record::Plain
    }

    /// Returns the place for new pages.
    fn allocation(&self) -> Allocation {
        Allocation::FastFirst
    }

    /// Returns the threads whose time its work takes.
    fn migration_context(&self) -> MigrationContext {
        MigrationContext::Shared
    }

    /// Returns whether it follows memory of any size by itself. A live host builds other policies, and all of
    /// libraries, anew when memory has outgrown their [`Setup`].
    fn grows(&self) -> bool {
        false
    }

    /// Takes a batch of samples and hint faults in. Both may be empty: then only time has passed.
    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View);

    /// Fills `plan`, which arrives empty.
    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan);

    /// Learns the result of `plan`.
    fn settle(&mut self, plan: &Plan, outcome: &Outcome, view: &mut dyn View) {
        let _ = (plan, outcome, view);
    }

    /// Returns the memory that its data structures occupy.
    fn metadata(&self) -> Bytes;

    /// Appends numbers worth showing over time.
    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        let _ = gauges;
    }

    /// Returns why it cannot go on; the engine then ends the run. Only a policy in a library can fail: its
    /// code is not ours.
    fn failure(&self) -> Option<String> {
        None
    }
}
