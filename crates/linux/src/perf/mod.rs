//! Defines sampling and counting with the processor's PMU, through `perf_event_open(2)`.

pub mod data_source;
pub mod ibs;
pub mod record;
pub mod ring;
pub mod sample;
pub mod spe;
pub mod sys;
