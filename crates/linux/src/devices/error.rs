//! Errors of profiling devices.

use isotherm_neoprof::ParameterError;

use crate::LinuxError;

/// A device that cannot be used, or no longer, in one line that names it.
#[allow(missing_docs)] // The messages name the fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The registers belong to another device.
    #[error("{device}: its first register is {found:#018x}, a NeoProf's {expected:#018x}")]
    Identity { device: String, found: u64, expected: u64 },
    /// A version that this driver does not speak.
    #[error("{device}: version {found} of its registers; this driver speaks {spoken}")]
    Version { device: String, found: u64, spoken: u64 },
    /// Sizes that no device can have.
    #[error("{device}: {error}")]
    Parameters { device: String, error: ParameterError },
    /// A capability that the driver needs is missing.
    #[error("{device}: it lacks {what}")]
    Lacks { device: String, what: &'static str },
    /// A register's value is beyond its range.
    #[error("{device}: {what} is {found}, and can be {most} at most")]
    Absurd { device: String, what: &'static str, found: u64, most: u64 },
    /// Reads return all ones: no device answers on the bus.
    #[error("{device}: it has vanished (its registers read all ones)")]
    Vanished { device: String },
    /// A register that should change does not.
    #[error("{device}: {what} stands still at {found:#x}")]
    Stuck { device: String, what: &'static str, found: u64 },
    /// The kernel's driver refuses what it did before.
    #[error("{device}: {call} failed: {error}")]
    Refused { device: String, call: &'static str, error: String },
}

impl From<DeviceError> for LinuxError {
    fn from(error: DeviceError) -> Self {
        Self::Device(Box::new(error))
    }
}
