//! The reports of all sources that a policy observes together.

use crate::{Counters, DeviceReading, HintFault, Sample};

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
}
