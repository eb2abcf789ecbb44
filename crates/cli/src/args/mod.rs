//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use isotherm_core::{Bytes, Nanos};
use isotherm_sim::Length;

mod common;
mod daemon;
mod help;
pub(crate) mod lab;
mod live;

pub(crate) use common::{
    CacheArgs, DEFAULT_MACHINE, DEFAULT_POLICY, MemoryArgs, NameArgs, PageSizeArg, geometry,
};
pub(crate) use daemon::{DaemonArgs, ReplayLogArgs, TopArgs};
pub(crate) use live::{AllocatorArg, AttachArgs, LiveArgs, RunArgs};

use crate::failure::Failure;

/// Isotherm: memory tiering for Linux. Record programs, replay them under any policy, tier them live
#[derive(Debug, Parser)]
#[command(name = "isotherm", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

impl Cli {
    /// Reads a command line; exits with help or an error if there is nothing to run.
    pub(crate) fn read(line: impl IntoIterator<Item = OsString>) -> Self {
        let mut command = help::grouped(Self::command());
        Self::from_arg_matches(&command.try_get_matches_from_mut(line).unwrap_or_else(|error| error.exit()))
            .unwrap_or_else(|error| error.format(&mut command).exit())
    }

    /// Reads a command line that no user has typed.
    pub(crate) fn parse_line(line: impl IntoIterator<Item = OsString>) -> Result<Self, Failure> {
        Self::try_parse_from(line).map_err(|error| {
            let text = error.render().to_string();
            let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
            let line = lines.collect::<Vec<_>>().join(" ");
            Failure::Usage(line.strip_prefix("error: ").unwrap_or(&line).to_owned())
        })
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Record an unmodified program's last-level cache misses as a trace
    Record(RecordArgs),
    /// Replay a trace or a workload under tiering policies on a modelled machine
    Simulate(SimulateArgs),
    /// Find the least fast memory that keeps a program within a slowdown
    Size(SizeArgs),
    /// List whose memory a trace's misses are in, and what of it would be fast
    Objects(ObjectsArgs),
    /// Compare two results: what differs in their inputs, their figures, which is better
    Compare(CompareArgs),
    /// Run a program with its memory tiered; without a slow tier, report what would move
    Run(RunArgs),
    /// Tier the memory of a running process and its descendants
    Attach(AttachArgs),
    /// Tier all programs of the machine, in groups that share the fast memory fairly
    Daemon(DaemonArgs),
    /// Show the groups and programs of the daemon
    Top(TopArgs),
    /// Show a past hour of the daemon's log: as its page, in the terminal, or for Perfetto
    Replay(ReplayLogArgs),
    /// List the programs that are tiered now, and the engines that do it
    Ps(PsArgs),
    /// Run programs in a virtual machine with two memory tiers and a real kernel
    Lab(lab::LabArgs),
    /// Run a program and print what each calling context allocates, with call stacks
    AllocProfile(AllocProfileArgs),
    /// Report what this machine offers for tiering, what it lacks, and how to fix that
    Doctor(DoctorArgs),
    /// Measure each tier's latency and stall cost of a miss for a machine profile
    Calibrate(CalibrateArgs),
    /// Reproduce the papers' comparisons and list their figures beside Isotherm's
    Score(ScoreArgs),
    /// Begin a policy of your own, outside of Isotherm's source
    Policy(PolicyArgs),
    /// List the policies, or explain one with its parameters
    Policies(NameArgs),
    /// List the machine profiles, or show one with the source of each number
    Machines(NameArgs),
    /// List the workloads, explain one, or export its misses as a trace
    Workloads(WorkloadsArgs),
    /// Inspect a trace, or convert another tool's output to one
    Trace(TraceArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write man pages, one per verb
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Directory for the trace, which must not exist yet
    #[arg(short, long, value_name = "NAME.trace")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    /// Do not track which miss an address depends on: twice as fast, but the model then treats all misses as
    /// independent
    #[arg(long)]
    pub(crate) no_dependence: bool,
    /// Disable address space randomisation, so that recordings can be compared
    #[arg(long)]
    pub(crate) no_aslr: bool,
    /// Stop recording when the trace has this size (bytes; K, M, G)
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<Bytes>,
    /// Stop recording after this time (ms, s, min, h)
    #[arg(long, value_name = "TIME")]
    pub(crate) max_time: Option<Nanos>,
    /// Record only processes of this name: of their program's file, or what they are called by
    #[arg(long, value_name = "NAME")]
    pub(crate) process: Option<String>,
    /// Record allocation sites, for `isotherm objects`: the program gets Isotherm's allocator, which changes
    /// the addresses of its objects
    #[arg(long)]
    pub(crate) sites: bool,
    /// Note how well each page compresses (zstd and lz4), for machines with compressed memory
    #[arg(long)]
    pub(crate) compressibility: bool,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// Print only the program's own output
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Input, machine and output of a replay, shared by `simulate` and `size`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The trace to replay: a directory written by `record`, or a Parquet file
    #[arg(value_name = "TRACE", conflicts_with = "workload", required_unless_present = "workload")]
    pub(crate) trace: Option<PathBuf>,
    /// The workload to run instead of a trace
    #[arg(short, long, value_name = "NAME")]
    pub(crate) workload: Option<String>,
    /// Replay only the trace's processes of this name: of their program's file, or what they are called by
    #[arg(long, value_name = "NAME", conflicts_with = "workload")]
    pub(crate) process: Option<String>,
    /// The machine: a profile's name or a TOML file
    #[arg(short, long, value_name = "NAME|FILE", default_value = DEFAULT_MACHINE)]
    pub(crate) machine: String,
    /// Page size
    #[arg(long, value_name = "SIZE", value_enum, default_value_t = PageSizeArg::Base)]
    pub(crate) page_size: PageSizeArg,
    /// Change a parameter: POLICY.KEY=VALUE, WORKLOAD.KEY=VALUE or machine.KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How much smaller the run is than the policies' papers: divides their sample counts and times. `auto`
    /// is the paper's footprint over the run's, for times also the share of its threads
    #[arg(long, value_name = "N|auto", default_value = "auto")]
    pub(crate) scale: String,
    /// Replay at most this many accesses (k, M, G)
    #[arg(long, value_name = "N", value_parser = isotherm_core::parse_count)]
    pub(crate) max_accesses: Option<u64>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
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

/// How long the modelled run is, shared by `simulate` and `size`.
#[derive(Debug, Args)]
pub(crate) struct LengthArgs {
    /// Replay the input again and again, for this time of the program with all memory fast (ms, s, min, h)
    /// [default of `size`: 10min]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) time: Option<Nanos>,
    /// Replay the input this many times (k, M, G)
    #[arg(long, value_name = "N", value_parser = isotherm_core::parse_count)]
    pub(crate) rounds: Option<u64>,
}

impl LengthArgs {
    /// Returns the length asked for, if any.
    pub(crate) fn length(&self) -> Result<Option<Length>, Failure> {
        match (self.time, self.rounds) {
            (Some(_), Some(_)) => Err(Failure::usage("--for and --rounds: expected one of the two")),
            (Some(Nanos(0)), _) => Err(Failure::usage("--for 0: expected a time above 0, such as 10min")),
            (_, Some(0)) => Err(Failure::usage("--rounds 0: expected at least 1")),
            (time, rounds) => Ok(time.map(Length::Time).or(rounds.map(Length::Rounds))),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AllocProfileArgs {
    /// Number of contexts to print per process: those with the most live bytes at its end
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Average bytes allocated per sampled block (K, M, G): live bytes are estimated from the samples
    #[arg(long, value_name = "SIZE", default_value = "64K")]
    pub(crate) sample: Bytes,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Test each source on a known program for at most a second (default)
    #[arg(long, overrides_with = "no_self_test")]
    self_test: bool,
    /// Do not test sources
    #[arg(long, overrides_with = "self_test")]
    no_self_test: bool,
    /// Act as the program that self-tests watch
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
    /// NUMA nodes of each tier, fastest first: 0,1 or 0+2,1+3 [default: the kernel's tiers]
    #[arg(long, value_name = "NODES")]
    pub(crate) tiers: Option<String>,
    /// Memory to measure on each tier, and as much for the load beside it (bytes; K, M, G) [default: four
    /// times the last-level cache, at least 256M]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    /// Machine profile that the result starts from, with at least as many tiers: a profile's name or a TOML
    /// file
    #[arg(short, long, value_name = "NAME|FILE", default_value = DEFAULT_MACHINE)]
    pub(crate) machine: String,
    /// Write what was measured steadily, as a profile over that one
    #[arg(short, long, value_name = "FILE.toml")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
    #[command(flatten)]
    pub(crate) length: LengthArgs,
    /// Policies and bounds, separated by commas, or `all`: names, or libraries of your own policies
    /// (path/to/lib.so)
    #[arg(short, long, value_name = "LIST", default_value = "all", value_delimiter = ',')]
    pub(crate) policy: Vec<String>,
    /// Sizes of the fast tier, separated by commas: fast:slow ratios, percentages of the footprint, or bytes
    /// (K, M, G); a ratio with a part for each tier of the machine (1:2:4) sizes all of them
    #[arg(short, long, value_name = "LIST", default_value = "1:8", value_delimiter = ',')]
    pub(crate) fast: Vec<String>,
    /// Number of intervals in the timeline of each run
    #[arg(long, value_name = "N", default_value_t = isotherm_sim::INTERVALS as u32)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) intervals: u32,
}

#[derive(Debug, Args)]
pub(crate) struct SizeArgs {
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
    #[command(flatten)]
    pub(crate) length: LengthArgs,
    /// Policies and bounds, separated by commas, or `all`: names, or libraries of your own policies
    /// (path/to/lib.so) [default: a selection of both]
    #[arg(short, long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) policy: Vec<String>,
    /// Slowdown allowed against all memory fast: a percentage or a number, such as 5% or 0.05
    #[arg(short, long, value_name = "SHARE", default_value = "5%", allow_hyphen_values = true)]
    pub(crate) budget: String,
    /// Prices of a GB of fast and of slow memory, in any currency, to print what the sizes cost
    #[arg(long, value_name = "dram=PRICE,cxl=PRICE")]
    pub(crate) price: Option<String>,
    /// The program's memory on the machine to be sized, if it is not the recording's (bytes; K, M, G, T)
    #[arg(long, value_name = "SIZE")]
    pub(crate) footprint: Option<Bytes>,
    /// Number of sub-samples for confidence intervals; of seeds if the input is small enough to be replayed
    /// whole
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub(crate) seeds: u32,
    /// Approximate accesses of a sub-sample, reached by leaving pages out (k, M, G)
    #[arg(long, value_name = "N", default_value = "1M", value_parser = isotherm_core::parse_count)]
    pub(crate) sample: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectsArgs {
    /// The trace: a directory written by `record`
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Order of the list, the most first
    #[arg(long, value_enum, default_value_t = Order::Misses)]
    pub(crate) by: Order,
    /// Size of the fast tier, filled with the densest pages: a fast:slow ratio, a percentage of the
    /// footprint, or bytes (K, M, G)
    #[arg(short, long, value_name = "SIZE", default_value = "1:8")]
    pub(crate) fast: String,
    /// List only processes of this name: of their program's file, or what they are called by
    #[arg(long, value_name = "NAME")]
    pub(crate) process: Option<String>,
    /// Number of entries to print; --json has all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Order of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Misses
    Misses,
    /// Memory touched
    Memory,
    /// Misses per MiB of it
    Density,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The result to compare with: a file that `--json` or `--summary` of simulate, size, run, attach or lab
    /// wrote
    #[arg(value_name = "A.json")]
    pub(crate) a: PathBuf,
    /// The result to judge, of the same verb or another
    #[arg(value_name = "B.json")]
    pub(crate) b: PathBuf,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a report as one HTML file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Do not say where the report is
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScoreArgs {
    /// The paper [default: all]
    #[arg(value_name = "PAPER")]
    pub(crate) paper: Option<String>,
    /// Use shorter streams and fewer sizes: minutes instead of most of an hour
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run only this comparison or effect, by its name in `--list`
    #[arg(long, value_name = "ID")]
    pub(crate) only: Option<String>,
    /// List the comparisons and run nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Folder for scoreboard.md and scoreboard.json [default: docs/generated for all
    /// papers, else none]
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the entries of a partial run in the folder's scoreboard
    #[arg(long)]
    pub(crate) update: bool,
    /// Write a page as one HTML file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// Print the scoreboard as JSON instead of a summary
    #[arg(long)]
    pub(crate) json: bool,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=u64::from(u32::MAX)))]
    pub(crate) seed: u64,
    /// Print no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkloadsArgs {
    /// The entry to explain; without it, all are listed
    pub(crate) name: Option<String>,
    /// Run the workload and write its misses as a trace into a directory that does not exist yet
    #[arg(long, value_name = "NAME.trace", requires = "name")]
    pub(crate) export: Option<PathBuf>,
    /// Size of the last-level cache whose misses are written, of 16 ways, to compare with a recording (bytes;
    /// K, M, G) [default: its source's machine, as much smaller as the footprint]
    #[arg(long, value_name = "SIZE", requires = "export")]
    pub(crate) cache: Option<Bytes>,
    /// Run the workload, or all of them, and draw their misses over time into one self-contained HTML file
    #[arg(long, value_name = "FILE.html", conflicts_with = "export")]
    pub(crate) report: Option<PathBuf>,
    /// Change a parameter: WORKLOAD.KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "name")]
    pub(crate) set: Vec<String>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Stop after this many misses (k, M, G)
    #[arg(long, value_name = "N", value_parser = isotherm_core::parse_count)]
    pub(crate) max_accesses: Option<u64>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress
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
    /// Describe a trace's contents and origin
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
        /// Number of rows
        #[arg(short = 'n', long, default_value_t = 10)]
        rows: u64,
    },
    /// Convert the output of another tool, or a trace, to a trace
    Convert(ConvertArgs),
    /// Write a trace in another tool's format
    Export(ExportArgs),
}

/// Input formats of `trace convert`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// Text of `perf script` with addresses, from `perf mem record` or `perf record -d`
    Perf,
    /// Output of `valgrind --tool=lackey --trace-mem=yes`
    Lackey,
    /// DAMON's access records: `damo record`'s file in JSON, packed or not, or `damo report raw`'s text
    Damon,
    /// Raw events of memtierd's trackers, of `tracker -dump raw new`
    Memtierd,
    /// Traces of DynamoRIO's drmemtrace: a file, packed or not, or a directory with one for each thread
    Drmemtrace,
    /// Instructions of a ChampSim trace, plain or packed by xz or gzip
    Champsim,
    /// Records of libCacheSim's oracleGeneral, uncompressed
    OracleGeneral,
    /// A trace, to merge its parts
    Trace,
}

/// Output formats of `trace export`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Records of libCacheSim's oracleGeneral: the page of each miss and its next use
    OracleGeneral,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Format of the output
    #[arg(long, value_enum)]
    pub(crate) to: ExportFormat,
    /// The trace
    pub(crate) trace: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Size of the pages that are the objects
    #[arg(long, value_name = "SIZE", value_enum, default_value_t = PageSizeArg::Base)]
    pub(crate) page_size: PageSizeArg,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// Format of the input
    #[arg(long, value_enum)]
    pub(crate) from: Format,
    /// The input; `-` is standard input
    pub(crate) input: PathBuf,
    /// Directory for the trace, which must not exist yet
    #[arg(short, long, value_name = "NAME.trace")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) verb: PolicyVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Make a crate with an example policy, which builds in seconds to a library for `--policy`
    New {
        /// Name of the policy and of the crate's folder, such as hot-twice
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages, created if missing
    pub(crate) folder: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::help::{GROUPS, grouped};
    use super::*;

    #[test]
    fn help_lists_every_verb_in_exactly_one_group_and_in_short_lines() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = Cli::command();
        let mut verbs: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        listed.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(listed, verbs);
        let help = grouped(Cli::command()).render_help().to_string();
        assert!(
            help.starts_with("Isotherm: memory tiering for Linux") && help.contains("--version"),
            "{help}"
        );
        for line in help.lines() {
            assert!(line.len() <= 100, "{line}");
        }
    }
}
