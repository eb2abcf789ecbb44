//! 2Q as a tiering policy: a page stays in the fast tier if it is sampled again after a queue of newcomers let it go.
//!
//! Johnson and Shasha, VLDB 1994, the full version over sampled accesses, as HybridTier (sections 5.2 and 6.1) compares with it.
//! The algorithm: `replacement::twoq`. How it becomes moves: `replacement::adapter`.

use isotherm_core::Policy;
use isotherm_core::parameters::{Kind, Parameters, Spec};

use crate::replacement::{TwoQ, adapter};
use crate::{BuildError, Setup};

const OWN: [Spec; 2] = [
    Spec {
        name: "kin",
        kind: Kind::Number(0.0, 1.0),
        default: "25%",
        unit: "of the fast tier",
        source: "2Q section 3.2; HybridTier 6.1",
        help: "Pages that the queue of newcomers, A1in, keeps when room is needed.",
        scaled: false,
    },
    Spec {
        name: "kout",
        kind: Kind::Number(0.0, 100.0),
        default: "50%",
        unit: "of the fast tier",
        source: "2Q section 3.2; HybridTier 6.1",
        help: "Newcomers that are remembered after they left, in A1out.",
        scaled: false,
    },
];

/// What can be set.
pub(crate) const SPECS: &[Spec] = &adapter::specs_with::<8>(&OWN);

/// The registry's constructor.
pub(crate) fn build(parameters: &Parameters, setup: &Setup) -> Result<Box<dyn Policy>, BuildError> {
    let capacity = adapter::capacity(parameters, setup);
    let cache = TwoQ::new(setup.pages, capacity, parameters.number("kin"), parameters.number("kout"));
    Ok(Box::new(adapter::PolicyRun::new(cache, parameters, setup)))
}
