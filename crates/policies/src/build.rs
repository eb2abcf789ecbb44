//! Building a policy.

use isotherm_core::parameters::Parameters;
use isotherm_core::{Policy, Setup};
use isotherm_trackers::ShapeError;

/// An error of building a policy.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Its filter does not fit the setup or the memory.
    #[error("{policy}: {source}")]
    Filter {
        /// The policy's name.
        policy: &'static str,
        /// The filter's error.
        source: ShapeError,
    },
    /// The policy of a library refused.
    #[error("{policy}: {message}")]
    Library {
        /// The policy's name.
        policy: &'static str,
        /// Its reason.
        message: String,
    },
}

/// Builds a policy. Its parameters must come from the entry's specs.
pub type Build = &'static (dyn Fn(&Parameters, &Setup) -> Result<Box<dyn Policy>, BuildError> + Sync);
