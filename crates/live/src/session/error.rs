//! Errors of a session.

use std::path::PathBuf;

use isotherm_core::Signal;
use isotherm_linux::LinuxError;
use isotherm_linux::process::launch::LaunchError;

use super::choice::ChoiceError;
use super::tiers::TierPlanError;
use crate::policy_run::RunError;

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Policy(#[from] RunError),
    #[error(transparent)]
    Tiers(#[from] TierPlanError),
    #[error(transparent)]
    Source(#[from] ChoiceError),
    /// No source offers a signal that the policy needs.
    #[error("policy {policy} needs {missing}, which is unavailable here: {fix}")]
    Missing {
        policy: &'static str,
        missing: Signal,
        /// A remedy, the sources that were refused and why, and a policy to use instead.
        fix: String,
    },
    #[error("--model-counters needs --shadow: modelled counters decide no real moves")]
    ModelledMoves,
    #[error("--cgroup: {}: {error}", path.display())]
    Cgroup { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The kernel refused a request, or another engine tiers the process.
    #[error(transparent)]
    Linux(#[from] LinuxError),
}

impl SessionError {
    /// Whether the request is at fault, not the machine.
    pub fn is_request(&self) -> bool {
        !matches!(self, Self::Linux(_) | Self::Launch(_) | Self::Tiers(TierPlanError::Machine(_)))
    }
}
