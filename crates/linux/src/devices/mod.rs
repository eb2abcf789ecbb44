//! Profiling devices in front of slower memory: NeoProf and CXL's hotness monitoring unit, behind one trait.
//!
//! A device counts accesses by its own pages. Drivers translate these to the system's frames ([`region`]) and
//! those to pages of followed processes ([`owners`]). A device that vanishes, gets stuck or reports
//! impossible values is dropped with one line; the others go on.

mod bar;
pub mod chmu;
mod error;
pub mod find;
pub mod neoprof;
pub mod owners;
pub mod perf_chmu;
pub mod region;
mod source;
#[cfg(test)]
mod tests;

use isotherm_core::{DeviceReport, DeviceRequest};

pub use error::DeviceError;
pub use source::{Attached, DeviceSource};

/// Bytes of the pages that devices count and the system maps.
const PAGE: u64 = 4096;

/// A device of any kind.
pub trait Profiler: Send {
    /// Returns its name for the user, which tells where it is.
    fn name(&self) -> &str;

    /// Returns whether it keeps a histogram and counts traffic.
    fn reports(&self) -> bool;

    /// Returns whether it tells a page each time that it was accessed so often, or once until it is cleared.
    fn tells_again(&self) -> bool {
        true
    }

    /// Sets its threshold, then clears it, as requested. Fails if it can no longer be used.
    fn command(&mut self, request: DeviceRequest) -> Result<(), DeviceError>;

    /// Appends the pages of its memory that it found hot since the last call, oldest first; with `report`,
    /// returns its counts since it was cleared, if it keeps any. Fails if it can no longer be used; pages
    /// found in this call are then dropped.
    fn read(&mut self, report: bool, pages: &mut Vec<u64>) -> Result<Option<DeviceReport>, DeviceError>;

    /// Returns how often hot pages were lost for lack of room in a ring that does not count them.
    fn lost(&self) -> u64 {
        0
    }
}
