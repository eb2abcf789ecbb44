//! Defines the command line of `isotherm run` and `isotherm attach`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use isotherm_core::{Bytes, Nanos};
use isotherm_live::host::FastLimit;

use super::PageSizeArg;

/// How memory is tiered live: `run` and `attach` alike.
#[derive(Debug, Args)]
pub(crate) struct LiveArgs {
    /// The policy
    #[arg(short, long, value_name = "NAME", default_value = "hybridtier")]
    pub(crate) policy: String,
    /// How much fast memory the programs may use: bytes (K, M, G), a fast:slow ratio or a percentage of what they have mapped
    /// [default: all of the fast tier; 1:3 in shadow mode]
    #[arg(short, long, value_name = "SIZE")]
    pub(crate) fast: Option<FastLimit>,
    /// Which NUMA nodes are which tier, fastest first: 0,1 or 0+2,1+3 [default: what the kernel says]
    #[arg(long, value_name = "NODES")]
    pub(crate) tiers: Option<String>,
    /// Move nothing: learn from real samples what would be moved. The default where there is no slow tier
    #[arg(long)]
    pub(crate) shadow: bool,
    /// In shadow mode: where the processor counts no stalls and occupancy, take them from a model of samples and the machine's
    /// latencies. The summary says that they are modelled
    #[arg(long)]
    pub(crate) model_counters: bool,
    /// Where accesses are learned from [default: the best that is there; `isotherm doctor` lists them]
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// A unix socket at which the run answers and obeys: status, parameters, set KEY=VALUE, policy NAME
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,
    /// What the programs may lose to being observed, where the source does that inside of them
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    pub(crate) overhead: f64,
    /// Bytes that may move in a second, at most (K, M, G) [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) rate: Option<Bytes>,
    /// The machine whose latencies estimates are made with where the firmware tells none: a profile's name or a TOML file
    #[arg(short, long, value_name = "NAME|FILE", default_value = "freqtier-cxl1")]
    pub(crate) machine: String,
    /// The size of pages
    #[arg(long, value_name = "SIZE", value_enum, default_value_t = PageSizeArg::Base)]
    pub(crate) page_size: PageSizeArg,
    /// Change a parameter: POLICY.KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// By how much smaller the run is than the policies' papers: their sample counts and times are divided by it
    #[arg(long, value_name = "N|auto", default_value = "auto")]
    pub(crate) scale: String,
    /// Print the summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the summary to a file, as JSON
    #[arg(long, value_name = "FILE.json")]
    pub(crate) summary: Option<PathBuf>,
    /// Write a report as one HTML file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Print nothing
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Reads a share of at most a half.
fn share(text: &str) -> Result<f64, String> {
    let value = isotherm_core::parse_number(text).ok().filter(|value| (0.0..=0.5).contains(value));
    value.ok_or_else(|| "expected a share such as 2%, at most 50%".into())
}

/// Whose `malloc` a program gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllocatorArg {
    /// The one that it is linked to
    Own,
    /// libisotherm_alloc.so, which keeps objects of different calling contexts on different pages
    Context,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Run the program in this cgroup v2, a directory that exists: there the kernel's LRU makes room for policies that leave that to it
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cgroup: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// The program's memory allocator
    #[arg(long, value_name = "NAME", value_enum, default_value_t = AllocatorArg::Own)]
    pub(crate) alloc: AllocatorArg,
    /// Go on until the program's last descendant has ended, not only the program
    #[arg(long)]
    pub(crate) descendants: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
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
