//! The reports of all sources that a policy observes together.

use crate::{Counters, DeviceReading, HintFault, Nanos, Sample};

/// The program's time and what tiering took of it, since the policy began. A part that the host cannot
/// measure is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Spent {
    /// Time passed.
    pub elapsed: Nanos,
    /// Time that the program's threads ran, summed over them.
    pub running: Nanos,
    /// Of that, what samples and hint faults took.
    pub sampling: Nanos,
    /// Time of the tiering threads (reading samples, scanning, arming, deciding, moving), as far as the
    /// program's threads lacked a processor meanwhile.
    pub deciding: Nanos,
    /// Time that moves took: of the tiering threads, whoever lacked it, and of the program's for interrupts.
    pub moving: Nanos,
}

/// The reports that a host delivers to a policy at once.
#[derive(Debug, Clone, Default)]
pub struct SampleBatch {
    /// The samples, in the order they were taken.
    pub samples: Vec<Sample>,
    /// The hint faults, in the order they were taken. No host loses any.
    pub faults: Vec<HintFault>,
    /// Readings of the profiling devices, one of each, from the first [`crate::DeviceRequest`] on.
    pub devices: Vec<DeviceReading>,
    /// Samples lost since the batch before, because a buffer was full.
    pub lost: u64,
    /// Counters since the start of the run.
    pub counters: Counters,
    /// The costs of tiering since the policy began.
    pub spent: Spent,
}
