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

pub use crate::sys::perf as sys;
