//! Defines sampling and counting with the processor's PMU, through `perf_event_open(2)`.

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
pub mod source;
pub mod spe;
pub mod sys;
mod tasks;
