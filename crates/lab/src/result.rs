//! Defines what is reported of a run in the lab.

use std::ffi::OsStr;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use crate::cache::Cache;
use crate::counts::{Counts, Residence, residence};
use crate::job::{Job, PolicyRun, Task};
use crate::machine::Machine;
use crate::measured::Measured;
use crate::run_directory::RunDirectory;
use crate::session::Ended;

/// One run: what ran where, and what was counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabResult {
    /// Isotherm's version.
    pub version: &'static str,
    /// The machine's name.
    pub machine: String,
    /// The guest's kernel.
    pub kernel: String,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The policy's name, or the kernel tiering's.
    pub tiering: String,
    /// Whether the kernel itself moved pages, and not a policy of ours.
    pub kernel_tiering: bool,
    /// Where memory lay at first: `first-touch`, `slow` or `fast`.
    pub start: &'static str,
    /// What of the fast node the program could have; `null` for all that was free.
    pub fast_bytes: Option<u64>,
    /// The program's exit status, 128 + signal where a signal ended it.
    pub exit_status: u8,
    /// Seconds from the start of QEMU to its end.
    pub elapsed_seconds: f64,
    /// What the plugin counted of the program's accesses; `null` where they were not counted.
    pub measured: Option<Measured>,
    /// What the kernel counted.
    pub counts: Counts,
    /// Where the program's memory lay over time.
    pub residence: Vec<Residence>,
    /// What `isotherm run` reported inside of the guest (`docs/live-schema.md`); `null` for a kernel tiering.
    pub engine: Option<Value>,
    /// Where everything of the run is kept.
    pub folder: PathBuf,
}

impl LabResult {
    /// Gathers what a run has left.
    pub fn gather(
        machine: &Machine,
        job: &Job,
        tiering: String,
        cache: &Cache,
        run: &RunDirectory,
        ended: &Ended,
    ) -> Self {
        let engine = std::fs::read(run.share().join("engine.json")).ok();
        let words = match &job.task {
            Task::Program(words) => {
                words.iter().map(|word| OsStr::to_string_lossy(word).into_owned()).collect()
            }
            Task::Shell | Task::Commands => Vec::new(),
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            machine: machine.name.clone(),
            kernel: cache.kernel_release(),
            program: words,
            tiering,
            kernel_tiering: matches!(job.tiering, PolicyRun::Kernel(_)),
            start: job.start.name(),
            fast_bytes: job.fast.map(|fast| fast.0),
            exit_status: ended.status,
            elapsed_seconds: ended.elapsed.as_secs_f64(),
            measured: Measured::read(&run.measured()),
            counts: Counts::read(&run.share()),
            residence: residence(&run.share()),
            engine: engine.and_then(|bytes| serde_json::from_slice(&bytes).ok()),
            folder: run.path().into(),
        }
    }

    /// Pages promoted: as the engine, DAMON or NUMA balancing counted them.
    pub fn promoted(&self) -> u64 {
        self.engine_moves("promotions")
            .or(self.counts.damon.map(|damon| damon.promoted))
            .unwrap_or(self.counts.promoted)
    }

    /// Pages demoted: as the engine, DAMON or reclaim counted them, and by reclaim beside the first two.
    pub fn demoted(&self) -> u64 {
        let named = self.engine_moves("demotions").or(self.counts.damon.map(|damon| damon.demoted));
        named.unwrap_or(0) + self.counts.demoted
    }

    /// The largest anonymous memory that the program had.
    pub fn footprint_bytes(&self) -> u64 {
        self.residence.iter().map(|moment| moment.node_bytes.iter().sum()).max().unwrap_or(0)
    }

    fn engine_moves(&self, what: &str) -> Option<u64> {
        self.engine.as_ref()?.get("traffic")?.get(what)?.as_u64()
    }
}
