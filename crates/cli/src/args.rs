//! Defines the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use isotherm_core::cache::Geometry;
use isotherm_core::{Bytes, Nanos, PageSize};

use crate::failure::Failure;

pub(crate) mod lab;
pub(crate) mod live;

pub(crate) use live::{AllocatorArg, AttachArgs, LiveArgs, RunArgs};

/// Isotherm: memory tiering for Linux. Record a program, replay it under any tiering policy, see what it would gain.
#[derive(Debug, Parser)]
#[command(name = "isotherm", version, about, long_about = None, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Record the memory accesses of an unmodified program that miss the last-level cache
    Record(RecordArgs),
    /// Replay a trace or a workload under tiering policies on a modelled machine
    Simulate(SimulateArgs),
    /// Find out how much fast memory a program needs to stay within a slowdown
    Size(SizeArgs),
    /// Run a program with its memory tiered; on a machine without a slow tier, learn what tiering would do
    Run(RunArgs),
    /// Tier the memory of a process that runs already, with its descendants
    Attach(AttachArgs),
    /// Run programs in a virtual machine with two tiers of memory and a real Linux kernel
    Lab(lab::LabArgs),
    /// Run a program and print which calling contexts allocate what, with their call stacks
    AllocProfile(AllocProfileArgs),
    /// Say what this machine offers for tiering, what it lacks, and the commands that mend that
    Doctor(DoctorArgs),
    /// Measure each tier's latency and, where the processor counts it, what a miss costs; store it in a machine profile
    Calibrate(CalibrateArgs),
    /// Run the comparisons of the papers and set their figures beside ours
    Score(ScoreArgs),
    /// List the policies, or explain one with its parameters
    Policies(NameArgs),
    /// List the machine profiles, or show one with the source of each number
    Machines(NameArgs),
    /// List the workloads, explain one, or export its misses as a trace
    Workloads(WorkloadsArgs),
    /// Look into a trace, or convert other tools' output to one
    Trace(TraceArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write man pages, one for each verb
    Man(ManArgs),
}

/// The cache that filters accesses.
#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// Size of the modelled last-level cache, whose misses a trace holds (bytes; K, M, G)
    #[arg(long = "cache", value_name = "SIZE", default_value = "2M")]
    size: Bytes,
    /// Ways of that cache
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=64))]
    ways: u32,
}

impl CacheArgs {
    /// The cache's shape, if it holds at least one set.
    pub(crate) fn geometry(&self) -> Result<Geometry, Failure> {
        let Self { size, ways } = *self;
        Geometry::new(size, ways).ok_or_else(|| {
            Failure::Usage(format!("--cache {size}: expected at least one set of {ways} lines of 64 bytes"))
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Where the trace goes: a directory that does not exist yet
    #[arg(short, long, value_name = "NAME.trace")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    /// Do not follow which miss an address depends on: twice as fast, but the model then takes all misses as independent
    #[arg(long)]
    pub(crate) no_dependence: bool,
    /// Switch address space randomisation off, so that two recordings can be compared
    #[arg(long)]
    pub(crate) no_aslr: bool,
    /// Stop recording at this size of the trace (bytes; K, M, G)
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<Bytes>,
    /// Stop recording after this time (ms, s, min, h)
    #[arg(long, value_name = "TIME")]
    pub(crate) max_time: Option<Nanos>,
    /// Print nothing but the program's own output
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// The size of the pages that a run tracks and moves.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PageSizeArg {
    /// 4 KiB
    Base,
    /// 2 MiB
    Huge,
}

impl From<PageSizeArg> for PageSize {
    fn from(size: PageSizeArg) -> Self {
        match size {
            PageSizeArg::Base => Self::Base,
            PageSizeArg::Huge => Self::Huge,
        }
    }
}

/// What is replayed, on which machine, and how the answer is written: `simulate` and `size` alike.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The trace to replay: a directory written by `record`, or a Parquet file
    #[arg(value_name = "TRACE", conflicts_with = "workload", required_unless_present = "workload")]
    pub(crate) trace: Option<PathBuf>,
    /// The workload to run instead of a trace
    #[arg(short, long, value_name = "NAME")]
    pub(crate) workload: Option<String>,
    /// The machine: a profile's name or a TOML file
    #[arg(short, long, value_name = "NAME|FILE", default_value = "freqtier-cxl1")]
    pub(crate) machine: String,
    /// The size of pages
    #[arg(long, value_name = "SIZE", value_enum, default_value_t = PageSizeArg::Base)]
    pub(crate) page_size: PageSizeArg,
    /// Change a parameter: POLICY.KEY=VALUE, WORKLOAD.KEY=VALUE or machine.KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// By how much smaller the run is than the policies' papers: their sample counts and times are divided by it.
    /// `auto` takes the paper's footprint over the run's, and for times the share of its threads too
    #[arg(long, value_name = "N|auto", default_value = "auto")]
    pub(crate) scale: String,
    /// Replay at most this many accesses (k, M, G)
    #[arg(long, value_name = "N", value_parser = isotherm_core::parse_count)]
    pub(crate) max_accesses: Option<u64>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a report as one HTML file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Print no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AllocProfileArgs {
    /// How many contexts to print for each process: those with the most live bytes at its end
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Bytes allocated for which one block is sampled, on average (K, M, G): live bytes are estimated from these
    #[arg(long, value_name = "SIZE", default_value = "64K")]
    pub(crate) sample: Bytes,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Let each source watch a known program for at most a second: the default
    #[arg(long, overrides_with = "no_self_test")]
    self_test: bool,
    /// Do not
    #[arg(long, overrides_with = "self_test")]
    no_self_test: bool,
    /// Be the program that self-tests watch
    #[arg(long, hide = true, conflicts_with_all = ["json", "self_test", "no_self_test"])]
    pub(crate) known_loop: bool,
}

impl DoctorArgs {
    /// Whether sources are tested.
    pub(crate) fn tests(&self) -> bool {
        self.self_test || !self.no_self_test
    }
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Which NUMA nodes are which tier, fastest first: 0,1 or 0+2,1+3 [default: what the kernel says]
    #[arg(long, value_name = "NODES")]
    pub(crate) tiers: Option<String>,
    /// Memory to measure on each tier (bytes; K, M, G) [default: four times the last-level cache, at least 256M]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    /// The machine profile to put the result into, with as many tiers: a profile's name or a TOML file
    #[arg(short, long, value_name = "NAME|FILE", default_value = "pact")]
    pub(crate) machine: String,
    /// Write the profile with what was measured
    #[arg(short, long, value_name = "FILE.toml")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
    /// Policies and bounds, separated by commas, or `all`
    #[arg(short, long, value_name = "LIST", default_value = "all", value_delimiter = ',')]
    pub(crate) policy: Vec<String>,
    /// Sizes of the fast tier, separated by commas: fast:slow ratios, percentages of the footprint, or bytes (K, M, G)
    #[arg(short, long, value_name = "LIST", default_value = "1:8", value_delimiter = ',')]
    pub(crate) fast: Vec<String>,
    /// Intervals that the timeline of each run is divided into
    #[arg(long, value_name = "N", default_value_t = isotherm_sim::INTERVALS as u32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) intervals: u32,
}

#[derive(Debug, Args)]
pub(crate) struct SizeArgs {
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
    /// Policies and bounds, separated by commas, or `all`; without it, a choice of both
    #[arg(short, long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) policy: Vec<String>,
    /// The slowdown allowed against all memory fast: a percentage or a number, such as 5% or 0.05
    #[arg(short, long, value_name = "SHARE", default_value = "5%", allow_hyphen_values = true)]
    pub(crate) budget: String,
    /// Sub-samples, from whose spread intervals come; where the input is small enough to be replayed whole, seeds
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub(crate) seeds: u32,
    /// Accesses of a sub-sample: pages are left out until it has about so many (k, M, G)
    #[arg(long, value_name = "N", default_value = "1M", value_parser = isotherm_core::parse_count)]
    pub(crate) sample: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ScoreArgs {
    /// The paper; without it, all
    #[arg(value_name = "PAPER")]
    pub(crate) paper: Option<String>,
    /// Shorter streams and fewer sizes: minutes instead of most of an hour
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only this comparison or effect, by its name in `--list`
    #[arg(long, value_name = "ID")]
    pub(crate) only: Option<String>,
    /// List the comparisons and run nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// The folder for scoreboard.md and scoreboard.json; `docs` if everything is run, else nothing is written
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// Put a part into the scoreboard that is in the folder (`docs`), in place of its older entries
    #[arg(long)]
    pub(crate) update: bool,
    /// Write a page as one HTML file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Print the scoreboard as JSON instead of a summary
    #[arg(long)]
    pub(crate) json: bool,
    /// The seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=u64::from(u32::MAX)))]
    pub(crate) seed: u64,
    /// Print no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// What to explain; without it, all are listed
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkloadsArgs {
    /// What to explain; without it, all are listed
    pub(crate) name: Option<String>,
    /// Run the workload and write its misses as a trace: a directory that does not exist yet
    #[arg(long, value_name = "NAME.trace", requires = "name")]
    pub(crate) export: Option<PathBuf>,
    /// Run the workload, or all of them, and draw where they miss over time: one self-contained HTML file
    #[arg(long, value_name = "FILE.html", conflicts_with = "export")]
    pub(crate) report: Option<PathBuf>,
    /// Change a parameter: WORKLOAD.KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "name")]
    pub(crate) set: Vec<String>,
    /// The seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Stop after this many misses (k, M, G)
    #[arg(long, value_name = "N", value_parser = isotherm_core::parse_count)]
    pub(crate) max_accesses: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not show progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) verb: TraceVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceVerb {
    /// Say what a trace holds and where it comes from
    Info {
        /// The trace
        trace: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the first rows as tab-separated text
    Head {
        /// The trace
        trace: PathBuf,
        /// How many rows
        #[arg(short = 'n', long, default_value_t = 10)]
        rows: u64,
    },
    /// Convert the output of another tool, or a trace, to a trace
    Convert(ConvertArgs),
}

/// What `trace convert` reads.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// Text of `perf script` with addresses, from `perf mem record` or `perf record -d`
    Perf,
    /// Output of `valgrind --tool=lackey --trace-mem=yes`
    Lackey,
    /// Text of DAMON access records
    Damon,
    /// A trace, to gather its parts anew
    Trace,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// What the input is
    #[arg(long, value_enum)]
    pub(crate) from: Format,
    /// The input; `-` is standard input
    pub(crate) input: PathBuf,
    /// Where the trace goes: a directory that does not exist yet
    #[arg(short, long, value_name = "NAME.trace")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder that the pages go to; made if missing
    pub(crate) folder: PathBuf,
}
