//! Errors of a session.

use std::path::PathBuf;

use isotherm_core::Signal;
use isotherm_linux::LinuxError;
use isotherm_linux::process::Exit;
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
    /// A signal came before the program was launched or followed.
    #[error("ended by signal {0} before the program was started or followed")]
    Interrupted(i32),
    /// The kernel refused a request, or another engine tiers the process.
    #[error(transparent)]
    Linux(#[from] LinuxError),
}

impl SessionError {
    /// Returns the exit status of a command that fails so: 2 if the request is at fault or lacks a right, a
    /// shell's where the program or a signal is.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Launch(launch) => launch.exit_status(),
            Self::Interrupted(signal) => Exit::Signal(*signal as u8).status(),
            Self::Linux(LinuxError::Permission { .. }) => 2,
            Self::Linux(_) | Self::Tiers(TierPlanError::Machine(_)) => 1,
            _ => 2,
        }
    }
}
