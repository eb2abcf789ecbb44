//! Errors of profiling devices.

use isotherm_neoprof::ParameterError;

use crate::LinuxError;

/// A device that cannot be used, or no longer, in one line that names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    #[error("{device}: its first register is {found:#018x}, a NeoProf's {expected:#018x}")]
    Identity { device: String, found: u64, expected: u64 },
    #[error("{device}: version {found} of its registers; this driver speaks {spoken}")]
    Version { device: String, found: u64, spoken: u64 },
    #[error("{device}: {error}")]
    Parameters { device: String, error: ParameterError },
    #[error("{device}: it lacks {what}")]
    Lacks { device: String, what: &'static str },
    #[error("{device}: {what} is {found}, and can be {most} at most")]
    Absurd { device: String, what: &'static str, found: u64, most: u64 },
    #[error("{device}: it has vanished (its registers read all ones)")]
    Vanished { device: String },
    #[error("{device}: {what} stands still at {found:#x}")]
    Stuck { device: String, what: &'static str, found: u64 },
    #[error("{device}: {call} failed: {error}")]
    Refused { device: String, call: &'static str, error: String },
}

impl From<DeviceError> for LinuxError {
    fn from(error: DeviceError) -> Self {
        Self::Device(Box::new(error))
    }
}
