//! ARC as a tiering policy: recency and frequency share the fast tier, and ghosts of demoted pages move the border.
//!
//! Megiddo and Modha, FAST 2003, over sampled accesses, as HybridTier (sections 5.2 and 6.1) compares with it. The algorithm:
//! `replacement::arc`. How it becomes moves: `replacement::adapter`. It has no parameter of its own.

use isotherm_core::Policy;
use isotherm_core::parameters::{Parameters, Spec};

use crate::replacement::{Arc, adapter};
use crate::{BuildError, Setup};

/// What can be set.
pub(crate) const SPECS: &[Spec] = &adapter::SPECS;

/// The registry's constructor.
pub(crate) fn build(parameters: &Parameters, setup: &Setup) -> Result<Box<dyn Policy>, BuildError> {
    let cache = Arc::new(setup.pages, adapter::capacity(parameters, setup));
    Ok(Box::new(adapter::PolicyRun::new(cache, parameters, setup)))
}
