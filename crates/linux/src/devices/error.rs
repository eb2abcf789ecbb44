//! Errors of profiling devices.

use isotherm_neoprof::ParameterError;

use crate::LinuxError;

/// A device that cannot be used, or no longer, in one line that names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The registers belong to another device.
    #[error("{device}: its first register is {found:#018x}, a NeoProf's {expected:#018x}")]
    Identity {
        /// The device's name.
        device: String,
        /// Value found.
        found: u64,
        /// Value expected.
        expected: u64,
    },
    /// A version that this driver does not speak.
    #[error("{device}: version {found} of its registers; this driver speaks {spoken}")]
    Version {
        /// The device's name.
        device: String,
        /// Version that it states.
        found: u64,
        /// Version that the driver speaks.
        spoken: u64,
    },
    /// Sizes that no device can have.
    #[error("{device}: {error}")]
    Parameters {
        /// The device's name.
        device: String,
        /// The wrong size, and the possible ones.
        error: ParameterError,
    },
    /// A capability that the driver needs is missing.
    #[error("{device}: it lacks {what}")]
    Lacks {
        /// The device's name.
        device: String,
        /// The capability.
        what: &'static str,
    },
    /// A register's value is beyond its range.
    #[error("{device}: {what} is {found}, and can be {most} at most")]
    Absurd {
        /// The device's name.
        device: String,
        /// The register.
        what: &'static str,
        /// Value found.
        found: u64,
        /// Largest possible value.
        most: u64,
    },
    /// Reads return all ones: no device answers on the bus.
    #[error("{device}: it has vanished (its registers read all ones)")]
    Vanished {
        /// The device's name.
        device: String,
    },
    /// A register that should change does not.
    #[error("{device}: {what} stands still at {found:#x}")]
    Stuck {
        /// The device's name.
        device: String,
        /// The register.
        what: &'static str,
        /// Value found.
        found: u64,
    },
    /// The kernel's driver refuses what it did before.
    #[error("{device}: {call} failed: {error}")]
    Refused {
        /// The device's name.
        device: String,
        /// The call that failed.
        call: &'static str,
        /// The kernel's answer.
        error: String,
    },
}

impl From<DeviceError> for LinuxError {
    fn from(error: DeviceError) -> Self {
        Self::Device(Box::new(error))
    }
}
