//! Defines hint faults in software: accesses learned from inside of a program, without a PMU.

mod agent;
mod calibrate;
mod connection;
mod gate;
mod link;
mod mappings;
mod mechanism;
mod pace;
mod pass;
mod presence;
mod protocol;
mod random;
mod shared;
mod source;
mod start;
mod store;
mod sys;
mod userfault;
mod window;

pub use gate::{exclude, note_thread, undisturbed};
pub use protocol::{SOCKET_VARIABLE, VERBOSE_VARIABLE};
pub use source::{HintFaultOptions, HintFaultSource, HintFaultStatistics};
pub use start::{end_agent, start_agent, start_from_environment};
