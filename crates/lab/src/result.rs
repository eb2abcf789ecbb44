//! The result of a run in the lab.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use isotherm_core::manifest::Manifest;
use serde::Serialize;
use serde_json::Value;

use crate::cache::Cache;
use crate::counts::{Counts, Residence, residence};
use crate::job::{Job, PolicyRun, Task};
use crate::machine::Machine;
use crate::measured::Measured;
use crate::run_directory::RunDirectory;
use crate::session::Ended;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabResult {
    pub version: &'static str,
    /// Where the result comes from.
    pub manifest: Manifest,
    pub machine: String,
    pub kernel: String,
    pub program: Vec<String>,
    /// Name of the policy or of the kernel tiering.
    pub tiering: String,
    /// Whether the kernel itself moved pages instead of a policy.
    pub kernel_tiering: bool,
    /// First place of memory: `first-touch`, `slow` or `fast`.
    pub start: &'static str,
    /// Bytes of the fast node for the program; `null` for all that were free.
    pub fast_bytes: Option<u64>,
    /// Program's exit status, 128 + signal if a signal ended it.
    pub exit_status: u8,
    /// Seconds from the start of QEMU to its end.
    pub elapsed_seconds: f64,
    /// Plugin's counts of the program's accesses; `null` if they were not counted.
    pub measured: Option<Measured>,
    pub counts: Counts,
    pub residence: Vec<Residence>,
    /// Report of `isotherm run` in the guest (`docs/reference/live-schema.md`); `null` for a kernel tiering.
    pub engine: Option<Value>,
    /// Why the policy left no report, by its engine's own line; `null` if it did or the kernel tiered.
    pub refusal: Option<String>,
    pub folder: PathBuf,
}

impl LabResult {
    pub fn gather(
        machine: &Machine,
        job: &Job,
        tiering: String,
        cache: &Cache,
        run: &RunDirectory,
        ended: &Ended,
    ) -> Self {
        let engine = std::fs::read(run.share().join("engine.json")).ok();
        let engine: Option<Value> = engine.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let kernel_tiering = matches!(job.tiering, PolicyRun::Kernel(_));
        let words = match &job.task {
            Task::Program(words) => {
                words.iter().map(|word| OsStr::to_string_lossy(word).into_owned()).collect()
            }
            Task::Shell | Task::Commands => Vec::new(),
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            manifest: Manifest {
                machine: machine.name.clone(),
                kernel: Some(cache.kernel_release()),
                free_dram_bytes: machine.nodes.first().map(|node| node.size),
                options: options(job),
                ..Manifest::default()
            },
            machine: machine.name.clone(),
            kernel: cache.kernel_release(),
            program: words,
            tiering,
            kernel_tiering,
            start: job.start.name(),
            fast_bytes: job.room.first().map(|fast| fast.0),
            exit_status: ended.status,
            elapsed_seconds: ended.elapsed.as_secs_f64(),
            measured: Measured::read(&run.measured()),
            counts: Counts::read(&run.share()),
            residence: residence(&run.share()),
            refusal: (!kernel_tiering && engine.is_none()).then(|| refusal(run)),
            engine,
            folder: run.path().into(),
        }
    }

    /// Returns the pages promoted, as counted by the engine, DAMON or NUMA balancing.
    pub fn promoted(&self) -> u64 {
        self.engine_moves("promotions")
            .or(self.counts.damon.map(|damon| damon.promoted))
            .unwrap_or(self.counts.promoted)
    }

    /// Returns the pages demoted, as counted by the engine or DAMON, plus those of reclaim.
    pub fn demoted(&self) -> u64 {
        let named = self.engine_moves("demotions").or(self.counts.damon.map(|damon| damon.demoted));
        named.unwrap_or(0) + self.counts.demoted
    }

    pub fn footprint_bytes(&self) -> u64 {
        self.residence.iter().map(Residence::total).max().unwrap_or(0)
    }

    fn engine_moves(&self, what: &str) -> Option<u64> {
        self.engine.as_ref()?.get("traffic")?.get(what)?.as_u64()
    }
}

/// Returns the engine's options, of which its own report tells the rest.
fn options(job: &Job) -> BTreeMap<&'static str, String> {
    let words = |pairs: &[OsString]| {
        pairs.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    };
    let room: Vec<OsString> = job.room.iter().map(|bytes| bytes.to_string().into()).collect();
    let given = (room.len() > 1).then(|| ("room", words(&room)));
    let options = match &job.tiering {
        PolicyRun::Kernel(_) => None,
        PolicyRun::Engine { options, .. } => Some(("run", words(options))),
        PolicyRun::Inside { settings, .. } => {
            let settings: Vec<OsString> = settings
                .iter()
                .map(|(name, value)| {
                    let mut word = name.clone();
                    word.push("=");
                    word.push(value);
                    word
                })
                .collect();
            Some(("inside", words(&settings)))
        }
    };
    let clock = (job.clock_ratio != 1).then(|| ("clock_ratio", job.clock_ratio.to_string()));
    given.into_iter().chain(clock).chain(options).collect()
}

/// Returns the last line that an engine printed before it ended without a report. Only a run whose streams
/// are files keeps it.
fn refusal(run: &RunDirectory) -> String {
    let said = std::fs::read(run.stderr()).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().rev().find_map(|line| line.strip_prefix("isotherm: "));
    line.map_or_else(|| "its engine left no report".into(), crate::error::sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_without_a_report_is_explained_by_its_last_line() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let run = RunDirectory::at(folder.path().join("run"))?;
        assert_eq!(refusal(&run), "its engine left no report");
        std::fs::write(run.stderr(), "mine\nisotherm: a note\nisotherm: policy x needs \u{1b}y\nmine\n")?;
        assert_eq!(refusal(&run), "policy x needs \\u{1b}y");
        Ok(())
    }
}
