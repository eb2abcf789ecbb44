//! The reasons for which nothing is simulated.

use isotherm_core::{Bytes, EngineError, FastLimitError, Nanos};
use isotherm_machine::MAX_TIERS;
use isotherm_policies::BuildError;

/// Why a simulation cannot run.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The text sizes no tier, or more or fewer than the machine has.
    #[error("--fast: {0}")]
    Size(FastLimitError),
    /// No page would be fast.
    #[error("--fast {0}: leaves no fast page of a footprint of {1}")]
    NoFastPage(String, Bytes),
    /// Nothing would be slow.
    #[error("--fast {0}: larger than the footprint of {1}, so there is nothing to tier")]
    LargerThanFootprint(String, Bytes),
    /// A round with too few accesses.
    #[error("a round of {0} accesses is too short to be replayed again and again; expected at least {1}")]
    ShortRound(u64, u64),
    /// Less time than a round takes.
    #[error("--for {0}: less than one round, which takes {1} with all memory fast; expected at least that")]
    ShortTime(Nanos, Nanos),
    /// The run does not hold a control loop of the policy.
    #[error(
        "{policy}: what is simulated, {rounds} rounds in {held}, is less than its slowest control loop \
         ({key}, {control_loop}); expected a longer run (--for, --rounds), a longer trace or a larger --scale"
    )]
    ShortRun {
        /// The policy.
        policy: String,
        /// Rounds that are simulated.
        rounds: u64,
        /// Their time with all memory fast.
        held: Nanos,
        /// The loop's parameter.
        key: &'static str,
        /// Its time.
        control_loop: Nanos,
    },
    /// The machine has only one tier.
    #[error("machine {0}: needs at least two tiers")]
    OneTier(String),
    /// The machine has more tiers than the model.
    #[error("machine {0}: at most {MAX_TIERS} tiers are modelled")]
    ManyTiers(String),
    /// A bound, which has no engine.
    #[error("policy {0}: a bound cannot run beside others; expected a policy")]
    Bound(&'static str),
    /// The policy cannot be built for this size.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The caller asked for the work to end.
    #[error("stopped before the end")]
    Stopped,
    /// The policy asks for a signal that the simulator lacks.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
