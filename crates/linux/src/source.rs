//! Access sources: one trait for all mechanisms that learn which memory programs access.

use std::ops::Range;

use isotherm_core::{
    Bytes, Counters, DeviceReport, DeviceRequest, Nanos, Operation, Sampling, Signals, TierId,
};

use crate::LinuxError;
use crate::process::Pid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Sampled,
    /// One page of a region was seen accessed, for which so many accesses to the region are delivered:
    /// together they are worth one observation.
    Region {
        alike: u16,
    },
    /// First touch of a page in a window of sampling ([`AccessSource::untouched`]), after this much processor
    /// time of the program, in nanoseconds, at most 4 s; 0 of a huge page, whose window tells.
    Touched {
        exposed_ns: u32,
    },
    /// Touched a page that the policy had armed ([`AccessSource::arm`]).
    Armed {
        /// Time since the page was armed, in microseconds, at most 71 minutes. 32 bits keep accesses small.
        since_us: u32,
    },
}

/// Access as a source saw it: an address, not yet a page of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Time on [`AccessSource::clock`] if the source has one, else on `CLOCK_MONOTONIC`.
    pub time: Nanos,
    pub process: Pid,
    pub address: u64,
    /// Number of accesses it stands for.
    pub weight: u32,
    /// Latency in nanoseconds; 0 where the source does not tell.
    pub latency: u32,
    /// Tier that served it, where the source tells.
    pub tier: Option<TierId>,
    pub operation: Operation,
    pub cause: Cause,
}

/// Pages of a window of sampling that were not touched while it was open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Untouched {
    pub process: Pid,
    pub start: u64,
    /// The pages of 4 KiB from `start` on, a bit each; of a huge page all bits, or none if it was touched.
    pub pages: u64,
    pub huge: bool,
    /// Processor time of the program meanwhile, or until the touch of a huge page.
    pub exposed: Nanos,
}

/// A mapping as a scan of accessed bits found it ([`AccessSource::mappings`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScannedMapping {
    pub process: Pid,
    pub range: Range<u64>,
    /// Present pages of 4 KiB, and those of them that were accessed since the last scan.
    pub present: u64,
    pub referenced: u64,
    /// Processor time of the program since the last scan.
    pub exposed: Nanos,
}

/// Settled memory is in one of so many passes of windows ([`AccessSource::set_settled`]).
pub const SETTLED_EVERY: u32 = 4;

/// Most pages of a race.
pub const MAX_RACERS: usize = 96;

/// Pages that were armed at the same time, and the one that was touched next ([`AccessSource::set_racers`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Race {
    pub process: Pid,
    /// Number of the list in force.
    pub list: u32,
    /// Places in it that were armed, a bit each.
    pub armed: u128,
    /// Place of the one that was touched.
    pub first: u8,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceAnswer {
    /// Processes and addresses of pages found hot, oldest first.
    pub hot: Vec<(Pid, u64)>,
    /// See [`isotherm_core::DeviceReading::again`].
    pub again: bool,
    pub report: Option<DeviceReport>,
}

/// Cost of moving pages on a modelled machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    /// A `move_pages` call.
    pub call: Nanos,
    /// Each page that it moves, copy included.
    pub page: Nanos,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceStatistics {
    pub delivered: u64,
    /// Accesses lost because a buffer was full.
    pub lost: u64,
    pub throttled: u64,
    /// Accesses dropped because they lay outside followed memory or could not be decoded.
    pub foreign: u64,
    /// Processor time that the source took beside the engine's thread, such as agents of programs.
    pub agent_cpu: Nanos,
    /// Time that the program's own threads lost to the source, as far as known.
    pub program_time: Nanos,
    /// Memory that the source occupies, including ring buffers.
    pub memory: Bytes,
    /// Present memory that the source can observe and that it cannot, as of its last look at each program;
    /// both 0 where it observes all, or does not tell.
    pub observable: Bytes,
    pub left_out: Bytes,
}

/// Learns which memory programs access. The host calls [`Self::follow`] for each process, [`Self::request`]
/// whenever the policy changes its sampling, and [`Self::drain`] about a hundred times a second.
pub trait AccessSource: Send {
    /// Returns the name in kebab-case, as in `--source`.
    fn name(&self) -> &'static str;

    fn offers(&self) -> Signals;

    /// Observes the process too: all threads that it has and will have. Following it twice is no error. Fails
    /// if it has ended, or may not be observed.
    fn follow(&mut self, process: Pid) -> Result<(), LinuxError>;

    /// Stops observing a process, which may have ended.
    fn forget(&mut self, process: Pid);

    /// Changes how densely accesses are sampled.
    fn request(&mut self, sampling: &Sampling) -> Result<(), LinuxError>;

    /// Appends the accesses seen since the last call, in the order of time for each process. Never blocks.
    fn drain(&mut self, accesses: &mut Vec<Access>) -> Result<(), LinuxError>;

    /// Appends windows that have closed since the last call: how long pages were *not* touched, without which
    /// first touches ([`Cause::Touched`]) tell no rate.
    fn untouched(&mut self, _windows: &mut Vec<Untouched>) {}

    /// Names the pages of a process that are to race from now on, at most [`MAX_RACERS`] addresses: which of
    /// them is touched next tells their rates where windows are too coarse. A source without races ignores
    /// it.
    fn set_racers(&mut self, _process: Pid, _list: u32, _addresses: &[u64]) {}

    /// Names memory of a process whose tier is beyond doubt, by ranges in order: it is armed in one of
    /// [`SETTLED_EVERY`] passes only, with weights to match, so that windows are spent on the rest.
    fn set_settled(&mut self, _process: Pid, _ranges: &[Range<u64>]) {}

    /// Appends the mappings of the scans since the last call.
    fn mappings(&mut self, _mappings: &mut Vec<ScannedMapping>) {}

    /// Appends the races since the last call.
    fn races(&mut self, _races: &mut Vec<Race>) {}

    /// Arms 4 KiB pages of one process, given by their addresses, so that the next access to each becomes
    /// known ([`Cause::Armed`]); needs `Signal::HintFaults`.
    fn arm(&mut self, _process: Pid, _addresses: &[u64]) -> Result<(), LinuxError> {
        Ok(())
    }

    /// Appends whether each range was accessed since the last query (needs `Signal::AccessedBits`).
    fn accessed(
        &mut self,
        _process: Pid,
        ranges: &[Range<u64>],
        answers: &mut Vec<bool>,
    ) -> Result<(), LinuxError> {
        answers.extend(ranges.iter().map(|_| false));
        Ok(())
    }

    /// Writes its counts since the start, by tier (needs `Signal::TierHits` or `Signal::TierStalls`).
    fn count(&mut self, _counters: &mut Counters) -> Result<(), LinuxError> {
        Ok(())
    }

    /// Whether loads of all tiers are sampled evenly, with latencies: Little's law then gives those in
    /// flight.
    fn samples_all_latencies(&self) -> bool {
        false
    }

    /// Passes a request to the profiling devices, read from then on (needs `Signal::DeviceHotPages`).
    fn command(&mut self, _request: DeviceRequest) -> Result<(), LinuxError> {
        Ok(())
    }

    /// Appends the profiling devices' readings since the last call (needs `Signal::DeviceHotPages`).
    fn read_devices(&mut self, _answers: &mut Vec<DeviceAnswer>) -> Result<(), LinuxError> {
        Ok(())
    }

    /// Returns the programs' time since the source was made, where it is not the machine's clock: that of the
    /// modelled machine under emulation. Policies' rates, windows and rests follow it.
    fn clock(&self) -> Option<Nanos> {
        None
    }

    /// Returns what moves cost on the modelled machine, where its time is the [`Self::clock`]. The source's
    /// own `program_time` is in that time, too.
    fn prices(&self) -> Option<Prices> {
        None
    }

    /// Returns memory of the process that belongs to the source, which is neither counted nor moved.
    fn hidden(&self, _process: Pid) -> Vec<Range<u64>> {
        Vec::new()
    }

    /// Returns what the user should know, since the last call: processes that it cannot observe, and why.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn statistics(&self) -> SourceStatistics;
}
