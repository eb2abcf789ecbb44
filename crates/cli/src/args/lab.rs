//! The command line of `isotherm lab`.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use isotherm_core::{Bytes, FastLimit, Nanos};
use isotherm_lab::job::Start;

use super::common::{DEFAULT_POLICY, NameArgs, PageSizeArg};

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) verb: LabVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabVerb {
    /// Run a program of this machine in the guest, under a policy or the kernel's tiering
    Run(LabRunArgs),
    /// Run a program under several policies and kernel tierings, and print one table
    Compare(LabCompareArgs),
    /// Open a shell in the guest
    Shell(LabShellArgs),
    /// Start counting and become the program; the guest runs this before each program
    #[command(hide = true)]
    Measure(LabMeasureArgs),
    /// List the lab's machines, or show one
    Machines(NameArgs),
}

/// Initial placement of the program's memory.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum StartArg {
    /// The kernel's choice: the fast node while it has room
    FirstTouch,
    /// The slow node until the memory stops growing
    Slow,
    /// The fast node until the memory stops growing
    Fast,
}

impl From<StartArg> for Start {
    fn from(start: StartArg) -> Self {
        match start {
            StartArg::FirstTouch => Self::FirstTouch,
            StartArg::Slow => Self::Slow,
            StartArg::Fast => Self::Fast,
        }
    }
}

/// The guest and its policies, shared by `run` and `compare`.
#[derive(Debug, Args)]
pub(crate) struct GuestArgs {
    /// The machine: a name of `isotherm lab machines`, or a TOML file
    #[arg(short, long, value_name = "NAME|FILE", default_value = "two-tier")]
    pub(crate) machine: String,
    /// Limit of fast memory: bytes (K, M, G), a fast:slow ratio, the parts of all tiers (1:2:4) or a
    /// percentage of the memory that the program uses, measured first by a run without limit and input
    /// [default: all that is free]
    #[arg(short, long, value_name = "SIZE")]
    pub(crate) fast: Option<FastLimit>,
    /// Bytes of the nodes that `fast` gives shares of, once a run has measured the program's memory.
    #[arg(skip)]
    pub(crate) measured: Vec<Bytes>,
    /// Initial placement of the program's memory
    #[arg(long, value_enum, default_value_t = StartArg::FirstTouch)]
    pub(crate) start: StartArg,
    /// Seconds of the guest's clock for a modelled second (a whole number): intervals of the kernel's tiering
    /// take that much longer, and its rates are as much lower, so that it acts by the modelled clock
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) clock_ratio: u32,
    /// Stop the guest after this much host time (ms, s, min, h)
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub(crate) time_limit: Nanos,
    /// Access source of policies [default: the best available; `isotherm doctor` in the guest lists them]
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// Run policies as a thread of the program (LD_PRELOAD of libisotherm.so) instead of by `isotherm run`
    #[arg(long)]
    pub(crate) inside: bool,
    /// Time that the program may lose to a source inside it
    #[arg(long, value_name = "SHARE")]
    pub(crate) overhead: Option<String>,
    /// Limit of migration in bytes a second (K, M, G) [default: none]
    #[arg(long, value_name = "SIZE")]
    pub(crate) rate: Option<Bytes>,
    /// Page size
    #[arg(long, value_name = "SIZE", value_enum, default_value_t = PageSizeArg::Base)]
    pub(crate) page_size: PageSizeArg,
    /// Change a parameter: POLICY.KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of a policy's random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How much smaller the run is than the policies' papers
    #[arg(long, value_name = "N|auto", default_value = "auto")]
    pub(crate) scale: String,
    /// Print the result as one JSON object, on standard error, even with `--quiet`
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the result to a file, as JSON
    #[arg(long, value_name = "FILE.json")]
    pub(crate) summary: Option<PathBuf>,
    /// Print no text but the program's output
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl GuestArgs {
    /// Returns the program's bytes of the first nodes: none without a limit, and none before shares are
    /// measured.
    pub(crate) fn room(&self) -> Vec<Bytes> {
        if let Some(FastLimit::Bytes(fast)) = self.fast { vec![fast] } else { self.measured.clone() }
    }
}

#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// The policy, by `isotherm run` in the guest: a name, or the library of your own policy
    /// (path/to/lib.so) [default: isotherm]
    #[arg(short, long, value_name = "NAME|FILE")]
    pub(crate) policy: Option<String>,
    /// The kernel's tiering instead of a policy: none, demotion, numab or damon; append -lru for the
    /// classical LRU
    #[arg(short, long, value_name = "NAME", conflicts_with = "policy")]
    pub(crate) kernel_tiering: Option<String>,
    #[command(flatten)]
    pub(crate) guest: GuestArgs,
    /// Folder for console, logs and results [default: a new one in the cache, which keeps the last 20]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct LabCompareArgs {
    /// Policies, separated by commas: names, or libraries of your own policies (path/to/lib.so)
    #[arg(short, long, visible_alias = "policy", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = DEFAULT_POLICY)]
    pub(crate) policies: Vec<String>,
    /// Kernel tierings, separated by commas
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', default_value = "none,numab,damon")]
    pub(crate) kernel: Vec<String>,
    /// Guests that run side by side [default: one a processor, as far as the memory goes]
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZero<usize>>,
    #[command(flatten)]
    pub(crate) guest: GuestArgs,
    /// The program and its arguments; its input is empty
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct LabMeasureArgs {
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct LabShellArgs {
    /// The machine: a name of `isotherm lab machines`, or a TOML file
    #[arg(short, long, value_name = "NAME|FILE", default_value = "two-tier")]
    pub(crate) machine: String,
    /// The kernel's tiering: none, demotion, numab or damon; append -lru for the classical LRU
    #[arg(short, long, value_name = "NAME", default_value = "none")]
    pub(crate) kernel_tiering: String,
    /// Boot without the plugin: faster, but nothing is counted and there is no virtual PMU
    #[arg(long)]
    pub(crate) uncounted: bool,
}
