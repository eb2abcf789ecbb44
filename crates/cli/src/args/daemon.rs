//! The command lines of `isotherm daemon` and `isotherm top`.

use std::path::PathBuf;

use clap::Args;

/// Where the daemon listens unless the user says otherwise.
pub(crate) const SOCKET: &str = "/run/isotherm/daemon.sock";

#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// Configuration: groups of programs, their policies and shares
    #[arg(long, value_name = "FILE.toml", default_value = "/etc/isotherm/isotherm.toml")]
    pub(crate) config: PathBuf,
    /// Unix socket for requests
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    pub(crate) socket: PathBuf,
    /// Check the configuration and do nothing else
    #[arg(long)]
    pub(crate) check: bool,
    /// Have the running daemon read its configuration again
    #[arg(long, conflicts_with = "check")]
    pub(crate) reload: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Unix socket of the daemon, or of one run (its --control)
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    pub(crate) socket: PathBuf,
    /// Print the state once; default unless standard output is a terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print the state once, as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
