//! The processes that a host follows.

use std::time::Duration;

use isotherm_linux::LinuxError;
use isotherm_linux::process::Pid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEvent {
    Started(Pid),
    /// The process executed another program: its old memory is gone.
    Executed(Pid),
    Ended(Pid),
}

pub trait Processes: Send {
    /// Appends the changes since the last call. Returns false when the run is over.
    fn update(&mut self, events: &mut Vec<ProcessEvent>) -> bool;

    /// Waits for `time`, or less if the run ends.
    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn warning(&mut self) -> Option<LinuxError> {
        None
    }

    /// Returns the programs' threads, without the engine's; `None` if nobody counts them.
    fn threads(&self) -> Option<u64> {
        None
    }
}
