//! Errors of a session.

use std::path::PathBuf;

use isotherm_core::Signal;
use isotherm_linux::LinuxError;
use isotherm_linux::process::launch::LaunchError;

use super::choice::ChoiceError;
use super::tiers::TierPlanError;
use crate::policy_run::RunError;

/// Why a session does not run.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The policy cannot run live.
    #[error(transparent)]
    Policy(#[from] RunError),
    /// The tiers cannot be read or do not exist.
    #[error(transparent)]
    Tiers(#[from] TierPlanError),
    /// The named source does not exist or cannot be opened.
    #[error(transparent)]
    Source(#[from] ChoiceError),
    /// No source offers a signal that the policy needs.
    #[error("policy {policy} needs {missing}, which is unavailable here: {fix}")]
    Missing {
        /// The policy's name.
        policy: &'static str,
        /// The missing signal.
        missing: Signal,
        /// What would provide the signal, which sources were refused and why, and which policy to use
        /// instead.
        fix: String,
    },
    /// Modelled counters were requested without shadow mode.
    #[error("--model-counters needs --shadow: modelled counters decide no real moves")]
    ModelledMoves,
    /// The program cannot be put into the cgroup.
    #[error("--cgroup: {}: {error}", path.display())]
    Cgroup {
        /// The cgroup's `cgroup.procs`.
        path: PathBuf,
        /// The kernel's answer.
        error: std::io::Error,
    },
    /// The program cannot be launched.
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
