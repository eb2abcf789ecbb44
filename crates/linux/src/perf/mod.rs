//! Defines sampling and counting with the processor's PMU, through `perf_event_open(2)`.

pub mod data_source;
pub mod decode;
mod event_table;
pub mod events;
pub mod ibs;
pub mod pmu;
pub mod record;
pub mod ring;
pub mod sample;
pub mod spe;
pub mod sys;
mod tasks;
