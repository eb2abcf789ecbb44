//! The command line of `isotherm run` and `isotherm attach`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use isotherm_core::{Bytes, FastLimit, Nanos};

use super::common::{DEFAULT_MACHINE, DEFAULT_POLICY, PageSizeArg};

/// Options of live tiering, shared by `run` and `attach`.
#[derive(Debug, Args)]
pub(crate) struct LiveArgs {
    /// The policy: a name, or the library of your own policy (path/to/lib.so)
    #[arg(short, long, value_name = "NAME|FILE", default_value = DEFAULT_POLICY)]
    pub(crate) policy: String,
    /// Limit of fast memory: bytes (K, M, G), a fast:slow ratio, the parts of all tiers (1:2:4) or a
    /// percentage of the mapped memory [default: the whole fast tier; 1:3 in shadow mode]
    #[arg(short, long, value_name = "SIZE")]
    pub(crate) fast: Option<FastLimit>,
    /// NUMA nodes of each tier, fastest first: 0,1 or 0+2,1+3 [default: the kernel's tiers]
    #[arg(long, value_name = "NODES")]
    pub(crate) tiers: Option<String>,
    /// Move nothing: report from real samples what would move. Default on machines without a slow tier
    #[arg(long)]
    pub(crate) shadow: bool,
    /// In shadow mode, model stall and occupancy counters that the processor lacks, from samples and the
    /// machine's latencies; the summary says so
    #[arg(long)]
    pub(crate) model_counters: bool,
    /// Access source [default: the best available; `isotherm doctor` lists them]
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// Unix socket that takes requests during the run: status, parameters, set KEY=VALUE, policy NAME, pause,
    /// resume
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,
    /// Daemon to join, if it runs: it then sets the limit of fast memory, unless `--fast` does
    #[arg(long, value_name = "SOCKET", default_value = super::daemon::SOCKET)]
    pub(crate) daemon: PathBuf,
    /// Time that the programs may lose to a source inside them
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    pub(crate) overhead: f64,
    /// Limit of migration in bytes a second (K, M, G) [default: none]
    #[arg(long, value_name = "SIZE")]
    pub(crate) rate: Option<Bytes>,
    /// Machine profile with the latencies for estimates, unless the firmware reports them: a name or a TOML
    /// file
    #[arg(short, long, value_name = "NAME|FILE", default_value = DEFAULT_MACHINE)]
    pub(crate) machine: String,
    /// Page size
    #[arg(long, value_name = "SIZE", value_enum, default_value_t = PageSizeArg::Base)]
    pub(crate) page_size: PageSizeArg,
    /// Change a parameter: POLICY.KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How much smaller the run is than the policies' papers: divides their sample counts and times
    #[arg(long, value_name = "N|auto", default_value = "auto")]
    pub(crate) scale: String,
    /// Print the summary as one JSON object, even with `--quiet`: `attach` on standard output, `run` on
    /// standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the summary to a file, as JSON
    #[arg(long, value_name = "FILE.json")]
    pub(crate) summary: Option<PathBuf>,
    /// Write a report as one HTML file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Print no text
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Parses a share of at most a half.
fn share(text: &str) -> Result<f64, String> {
    let value = isotherm_core::parse_number(text).ok().filter(|value| (0.0..=0.5).contains(value));
    value.ok_or_else(|| "expected a share such as 2%, at most 50%".into())
}

/// The memory allocator of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllocatorArg {
    /// The program's own
    Own,
    /// libisotherm_alloc.so, which puts objects of different calling contexts on different pages
    Context,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Run the program in this existing cgroup v2 directory, where the kernel's LRU can make room for
    /// policies that use it
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cgroup: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// The program's memory allocator
    #[arg(long, value_name = "NAME", value_enum, default_value_t = AllocatorArg::Own)]
    pub(crate) alloc: AllocatorArg,
    /// Continue until the program's last descendant has ended
    #[arg(long)]
    pub(crate) descendants: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// Stop after this time (ms, s, min, h) [default: when the process ends, or at Ctrl-C]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) time: Option<Nanos>,
    /// The process
    #[arg(value_name = "PID")]
    pub(crate) pid: u32,
}
