//! Defines what can be wrong with a profiling device.

use isotherm_neoprof::ParameterError;

use crate::LinuxError;

/// A device that cannot be used, or not any more, in one line that names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// Another device's registers.
    #[error("{device}: its first register is {found:#018x}, a NeoProf's {expected:#018x}")]
    Identity {
        /// The device's name.
        device: String,
        /// What stands there.
        found: u64,
        /// What should.
        expected: u64,
    },
    /// A version that this driver does not speak.
    #[error("{device}: version {found} of its registers; this driver speaks {spoken}")]
    Version {
        /// The device's name.
        device: String,
        /// What it states.
        found: u64,
        /// What the driver speaks.
        spoken: u64,
    },
    /// Sizes that no device has.
    #[error("{device}: {error}")]
    Parameters {
        /// The device's name.
        device: String,
        /// Which, and what is possible.
        error: ParameterError,
    },
    /// A capability that the driver cannot do without.
    #[error("{device}: it lacks {what}")]
    Lacks {
        /// The device's name.
        device: String,
        /// What.
        what: &'static str,
    },
    /// A register that tells more than can be.
    #[error("{device}: {what} is {found}, and can be {most} at most")]
    Absurd {
        /// The device's name.
        device: String,
        /// Which register.
        what: &'static str,
        /// What it says.
        found: u64,
        /// The greatest value there can be.
        most: u64,
    },
    /// Reads give all ones: nobody answers on the bus.
    #[error("{device}: it has vanished (its registers read all ones)")]
    Vanished {
        /// The device's name.
        device: String,
    },
    /// A register that should change and does not.
    #[error("{device}: {what} stands still at {found:#x}")]
    Stuck {
        /// The device's name.
        device: String,
        /// Which register.
        what: &'static str,
        /// Where it stands.
        found: u64,
    },
    /// The kernel's driver does not do what it did before.
    #[error("{device}: {call} failed: {error}")]
    Refused {
        /// The device's name.
        device: String,
        /// What was asked of it.
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
