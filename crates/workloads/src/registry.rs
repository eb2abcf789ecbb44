//! Finds a workload by its name.

use isotherm_core::names;

use crate::apps::ALL;
use crate::workload::{Workload, WorkloadError};

/// Returns the workload of that name.
///
/// # Errors
/// [`WorkloadError::Unknown`] if there is none.
pub fn find(name: &str) -> Result<&'static Workload, WorkloadError> {
    ALL.iter().copied().find(|workload| workload.name == name).ok_or_else(|| WorkloadError::Unknown {
        name: name.into(),
        advice: names::advice(name, ALL.iter().map(|workload| workload.name)),
    })
}
