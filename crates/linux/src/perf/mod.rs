//! Sampling and counting with the processor's PMU, through `perf_event_open(2)`.
//!
//! [`events`] chooses what to sample from a table by processor and the machine's sysfs ([`pmu`]). [`source`]
//! opens it for each thread and processor and reads the rings ([`ring`], [`record`]). [`decode`] turns
//! samples into accesses: [`sample`] reads the fields, and [`data_source`], [`ibs`] and [`spe`] tell what
//! served them. [`counters`] counts.

mod counter_events;
pub mod counters;
pub mod data_source;
pub mod decode;
mod event_table;
pub mod events;
pub mod ibs;
mod lifecycle;
pub mod open;
pub mod pmu;
pub mod record;
pub mod ring;
pub mod sample;
mod settings;
pub mod source;
pub mod spe;
mod tasks;

use isotherm_core::{Nanos, SamplingRate};

pub use crate::sys::perf as sys;

/// Returns the time that a sample takes of the program's thread. Estimates: 300 ns for a record that the
/// processor buffers, as those of a fixed period are (Akiyama and Hirofuchi, ROSS 2017); in frequency mode
/// each sample takes an interrupt of its own.
pub(crate) const fn sample_cost(rate: SamplingRate) -> Nanos {
    match rate {
        SamplingRate::Frequency(_) => Nanos(1500),
        SamplingRate::Period(_) | SamplingRate::Off => Nanos(300),
    }
}
