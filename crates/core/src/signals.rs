//! The signals that a policy needs from its host, and the sampling that it asks for.

use std::fmt;

use crate::TierId;

macro_rules! signals {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// One capability of a host: something that it observes or does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Signal {
            $($(#[$doc])* $name,)*
        }

        impl Signal {
            /// Every signal.
            pub const ALL: [Self; 12] = [$(Self::$name),*];
        }

        impl fmt::Display for Signal {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $text,)* })
            }
        }
    };
}
signals! {
    /// Samples of loads, with page and serving tier.
    LoadSamples = "samples of loads",
    /// Samples of stores.
    StoreSamples = "samples of stores",
    /// Samples that carry a latency.
    SampleLatency = "samples with latency",
    /// Samples that say how much of their latency the processor could not hide.
    ExposedLatency = "samples with the latency that nothing hid",
    /// Counts of misses served by each tier.
    TierHits = "hit counters of each tier",
    /// Counts of stall time, queue occupancy and busy time of each tier.
    TierStalls = "stall and occupancy counters of each tier",
    /// Reclaim by the host's own LRU.
    KernelReclaim = "reclaim by the kernel's LRU",
    /// A fault at the next access to a page that was armed.
    HintFaults = "hint faults",
    /// Page-table entries' accessed bits, read and cleared.
    AccessedBits = "accessed bits of the page table",
    /// Copying a page while it stays mapped, and keeping the slow copy as its shadow (Nomad).
    TransactionalMoves = "transactional page copies with shadows",
    /// Hot pages found by a profiling device in front of each slower tier ([`crate::DeviceReading`]).
    DeviceHotPages = "hot pages from a profiling device",
    /// Histogram and traffic counted by such a device ([`crate::DeviceReport`]).
    DeviceReports = "histogram and traffic from a profiling device",
}

/// A set of signals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Signals(u32);

impl Signals {
    /// The empty set: a policy that only places new pages.
    pub const NONE: Self = Self(0);

    /// Returns this set with `signal` in it.
    #[must_use]
    pub const fn with(self, signal: Signal) -> Self {
        Self(self.0 | 1 << signal as u32)
    }

    /// Returns whether `signal` is in the set.
    pub const fn has(self, signal: Signal) -> bool {
        self.0 & (1 << signal as u32) != 0
    }

    /// Returns the set as bits: signal `n` of [`Signal::ALL`] is bit `n`.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the set of these bits; `None` if one of them is no signal.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits >> Signal::ALL.len() == 0 { Some(Self(bits)) } else { None }
    }

    /// Returns the signals of this set that `offered` lacks.
    pub fn missing(self, offered: Self) -> impl Iterator<Item = Signal> {
        Signal::ALL.into_iter().filter(move |&signal| self.has(signal) && !offered.has(signal))
    }
}

/// The sampling rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingRate {
    /// No samples; counters go on.
    Off,
    /// Every n-th access of each thread.
    Period(u64),
    /// About this many samples a second of each thread, as `perf record -F`: the host adapts the period.
    Frequency(u64),
}

/// The events that sample the tiers: one for all, or one for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SamplingScope {
    /// One event counts misses of every tier: a tier's samples are in proportion to its accesses.
    AllTiers,
    /// One event a tier, each at the rate asked for, as with `MEM_LOAD_L3_MISS_RETIRED.{LOCAL,REMOTE}_DRAM`:
    /// in frequency mode a rarely used tier is sampled more densely.
    EachTier,
    /// As [`Self::EachTier`], without the fast tier: PACT samples `REMOTE_DRAM` alone. A host that cannot
    /// leave it out samples it too.
    EachSlowTier,
}

/// A request for samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// The rate.
    pub rate: SamplingRate,
    /// One event or one for each tier.
    pub scope: SamplingScope,
    /// With an event for each tier: how many times rarer the fast tier's samples are than the rate says.
    pub fast_divisor: u32,
    /// Whether stores are sampled beside loads.
    pub stores: bool,
    /// Deliver after this many samples, whatever the time.
    pub batch: usize,
    /// Deliver after this much time, whatever the samples.
    pub tick: crate::Nanos,
    /// The program's time that samples may take in a second, for sources that count no misses and so have no
    /// period: they take no more than this and than the user allows. `None` leaves it to the latter.
    pub budget: Option<crate::Nanos>,
}

impl Sampling {
    /// Returns a request for samples of loads.
    pub const fn loads(rate: SamplingRate, scope: SamplingScope, batch: usize, tick: crate::Nanos) -> Self {
        Self { rate, scope, fast_divisor: 1, stores: false, batch, tick, budget: None }
    }

    /// Returns the rate of the event that samples `tier` alone, or all where it is `None`.
    pub fn rate_of(&self, tier: Option<TierId>) -> SamplingRate {
        let divided = tier == Some(TierId::FAST) && self.scope == SamplingScope::EachTier;
        let divisor = if divided { u64::from(self.fast_divisor.max(1)) } else { 1 };
        match self.rate {
            SamplingRate::Off => SamplingRate::Off,
            SamplingRate::Period(period) => SamplingRate::Period(period.saturating_mul(divisor)),
            SamplingRate::Frequency(frequency) => SamplingRate::Frequency((frequency / divisor).max(1)),
        }
    }

    /// Returns whether `other` asks for the same events at the same rates.
    pub fn same_events(&self, other: &Self) -> bool {
        let events = |request: &Self| (request.rate, request.scope, request.fast_divisor, request.stores);
        events(self) == events(other)
    }

    /// Returns the same request with samples of stores too.
    #[must_use]
    pub const fn and_stores(self) -> Self {
        Self { stores: true, ..self }
    }

    /// Returns the same request with a budget: program's time in a second.
    #[must_use]
    pub const fn within(self, budget: crate::Nanos) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Returns the budget as a share of the program's time.
    pub fn share(&self) -> Option<f64> {
        self.budget.map(|budget| budget.0 as f64 / crate::Nanos::SECOND.0 as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_passes_as_bits_and_bits_that_are_no_signal_are_none() {
        let all = Signal::ALL.into_iter().fold(Signals::NONE, Signals::with);
        for set in [Signals::NONE, Signals::NONE.with(Signal::HintFaults), all] {
            assert_eq!(Signals::from_bits(set.bits()), Some(set));
        }
        assert_eq!(Signals::from_bits(all.bits() + 1), None);
    }
}
