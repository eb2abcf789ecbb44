//! Defines where accesses are learned from: one trait, whatever the mechanism.

use std::ops::Range;

use isotherm_core::{
    Bytes, Counters, DeviceReport, DeviceRequest, Nanos, Operation, Sampling, Signals, TierId,
};

use crate::LinuxError;
use crate::process::Pid;

/// Why an access is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It was sampled.
    Sampled,
    /// It touched a page that the policy had armed ([`AccessSource::arm`]).
    Armed {
        /// How long the page had been armed, in microseconds (accesses are many: they are kept small), at most 71 minutes.
        since_us: u32,
    },
}

/// One access as a source saw it: an address, not yet a page of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// When: on [`AccessSource::clock`] if the source has one, else on `CLOCK_MONOTONIC`.
    pub time: Nanos,
    /// Whose address space.
    pub process: Pid,
    /// The virtual address.
    pub address: u64,
    /// How many accesses it stands for.
    pub weight: u32,
    /// Its latency in nanoseconds; 0 where the source does not tell.
    pub latency: u32,
    /// The tier that served it, where the source tells.
    pub tier: Option<TierId>,
    /// Load or store.
    pub operation: Operation,
    /// Why it is known.
    pub cause: Cause,
}

/// What profiling devices tell at once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceAnswer {
    /// Processes and addresses of pages found hot, oldest first.
    pub hot: Vec<(Pid, u64)>,
    /// What was counted, if that was asked for.
    pub report: Option<DeviceReport>,
}

/// What a source has done since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceStatistics {
    /// Accesses delivered.
    pub delivered: u64,
    /// Accesses lost because a buffer was full.
    pub lost: u64,
    /// How often the kernel throttled the source.
    pub throttled: u64,
    /// Accesses dropped because they lay outside of followed memory or could not be decoded.
    pub foreign: u64,
    /// Processor time that the source took beside the engine's thread: its agents inside of programs.
    pub agent_cpu: Nanos,
    /// Time that the program's own threads lost to the source, as far as it is known.
    pub program_time: Nanos,
    /// Memory that the source occupies, ring buffers included.
    pub memory: Bytes,
}

/// A way to learn which memory programs access.
///
/// The host calls [`Self::follow`] for each process, [`Self::request`] whenever the policy changes its sampling, and
/// [`Self::drain`] about a hundred times a second.
pub trait AccessSource: Send {
    /// A kebab-case name, as in `--source`.
    fn name(&self) -> &'static str;

    /// What it can tell.
    fn offers(&self) -> Signals;

    /// Observes the process too, all of its threads, now and later. Following it twice is no error.
    fn follow(&mut self, process: Pid) -> Result<(), LinuxError>;

    /// The process has ended or is followed no more.
    fn forget(&mut self, process: Pid);

    /// Changes how densely accesses are sampled.
    fn request(&mut self, sampling: &Sampling) -> Result<(), LinuxError>;

    /// Appends what was seen since the last call, in the order of time for each process. Never blocks.
    fn drain(&mut self, accesses: &mut Vec<Access>) -> Result<(), LinuxError>;

    /// Makes the next access to each of these pages known ([`Cause::Armed`]); needs `Signal::HintFaults`. The addresses
    /// are those of 4 KiB pages of one process.
    fn arm(&mut self, process: Pid, addresses: &[u64]) -> Result<(), LinuxError> {
        let _ = (process, addresses);
        Ok(())
    }

    /// Says of each range whether it was accessed since it was last asked, and clears the mark; needs
    /// `Signal::AccessedBits`. Appends one answer a range.
    fn accessed(
        &mut self,
        process: Pid,
        ranges: &[Range<u64>],
        answers: &mut Vec<bool>,
    ) -> Result<(), LinuxError> {
        let _ = process;
        answers.extend(ranges.iter().map(|_| false));
        Ok(())
    }

    /// Writes what it counts, since the start, into `counters` (one entry a tier); needs `Signal::TierHits` or
    /// `Signal::TierStalls`.
    fn count(&mut self, counters: &mut Counters) -> Result<(), LinuxError> {
        let _ = counters;
        Ok(())
    }

    /// Whether its samples of loads are even over all tiers and carry latency: what is in flight then follows by Little's law.
    fn samples_all_latencies(&self) -> bool {
        false
    }

    /// Has its profiling devices do what a policy asks; needs `Signal::DeviceHotPages`. They are read from then on.
    fn command(&mut self, request: DeviceRequest) -> Result<(), LinuxError> {
        let _ = request;
        Ok(())
    }

    /// Appends what its profiling devices tell since the last call; needs `Signal::DeviceHotPages`.
    fn read_devices(&mut self, answers: &mut Vec<DeviceAnswer>) -> Result<(), LinuxError> {
        let _ = answers;
        Ok(())
    }

    /// The time of the programs since the source was made, where it is not the machine's clock: an emulated machine's goes many
    /// times faster than the machine that it models. What policies do goes by this time then: rates, windows, rests.
    fn clock(&self) -> Option<Nanos> {
        None
    }

    /// Memory of the process that is the source's own: it is neither counted nor moved.
    fn hidden(&self, process: Pid) -> Vec<Range<u64>> {
        let _ = process;
        Vec::new()
    }

    /// What it has done.
    fn statistics(&self) -> SourceStatistics;
}
