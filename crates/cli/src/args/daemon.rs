//! The command lines of `isotherm daemon` and `isotherm top`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use isotherm_core::Nanos;

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
pub(crate) struct ReplayLogArgs {
    /// The daemon's log: its directory, or one of the files there
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// Begin of what is shown: a time in UTC such as 2026-11-26T03:00, or a time before the log's end such as
    /// 2h [default: --for before the log's end]
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Length of what is shown; pages show at most the last hour of it (ms, s, min, h)
    #[arg(long = "for", value_name = "TIME", default_value = "1h")]
    pub(crate) time: Nanos,
    /// Play it so many times as fast as it was, instead of showing its end at once [default with --top in
    /// a terminal: 60]
    #[arg(long, value_name = "N", conflicts_with = "perfetto")]
    pub(crate) speed: Option<f64>,
    /// Address of the page
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9468")]
    pub(crate) listen: SocketAddr,
    /// Show it in the terminal instead of a page
    #[arg(long, conflicts_with_all = ["listen", "perfetto"])]
    pub(crate) top: bool,
    /// With --top: print the state once; default unless standard output is a terminal
    #[arg(long, requires = "top")]
    pub(crate) once: bool,
    /// With --top: print the state once, as one JSON object
    #[arg(long, requires = "top")]
    pub(crate) json: bool,
    /// Write moves and phases as a trace for ui.perfetto.dev, and show nothing
    #[arg(long, value_name = "FILE", conflicts_with = "listen")]
    pub(crate) perfetto: Option<PathBuf>,
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
