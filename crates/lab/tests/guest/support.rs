//! Boots guests for the tests.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use isotherm_core::Bytes;
use isotherm_lab::LabError;
use isotherm_lab::cache::Cache;
use isotherm_lab::counts::{Counts, Residence, residence};
use isotherm_lab::job::{Job, PolicyRun, Start, Task};
use isotherm_lab::kernel_tiering::KernelTiering;
use isotherm_lab::machine::Machine;
use isotherm_lab::run_directory::RunDirectory;
use isotherm_lab::session::{self, Output, SessionOptions};

type Boxed<T> = Result<T, Box<dyn std::error::Error>>;

/// Virtual machine to boot.
pub(crate) struct Lab {
    pub(crate) machine: Machine,
    pub(crate) cache: Cache,
    limit: Duration,
    folder: tempfile::TempDir,
}

/// Results of a run.
pub(crate) struct Outcome {
    pub(crate) status: u8,
    pub(crate) kernel_log: Option<String>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) counts: Counts,
    pub(crate) residence: Vec<Residence>,
}

impl Lab {
    /// Finds the machine of this name; `None`, with a line on standard error, if the lab is not set up.
    pub(crate) fn find(machine: &str) -> Boxed<Option<Self>> {
        if std::env::var_os("LAB_TEST").is_none() {
            eprintln!("skipped: LAB_TEST is not set; scripts/lab-test.sh boots guests");
            return Ok(None);
        }
        let cache = match Cache::find() {
            Ok(cache) => cache,
            Err(error @ LabError::NotSetUp { .. }) => {
                eprintln!("skipped: {error}");
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let (machine, folder) = (Machine::builtin(machine)?, tempfile::tempdir()?);
        Ok(Some(Self { machine, cache, limit: Duration::from_secs(240), folder }))
    }

    pub(crate) fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Runs a command without tiering.
    pub(crate) fn run(&self, command: &[OsString]) -> Boxed<Outcome> {
        self.job(command, KernelTiering::NONE, Start::FirstTouch, None)
    }

    pub(crate) fn job(
        &self,
        command: &[OsString],
        kernel: KernelTiering,
        start: Start,
        fast: Option<Bytes>,
    ) -> Boxed<Outcome> {
        // The system's own programs, since shims of version managers take seconds in a guest.
        let path = "/usr/bin:/bin";
        let job = Job {
            task: Task::Program(command.to_vec()),
            tiering: PolicyRun::Kernel(kernel),
            start,
            clock_ratio: 1,
            room: fast.into_iter().collect(),
            counting: None,
            environment: vec![("PATH".into(), path.into()), ("GREETING".into(), "it's \"me\"".into())],
            directory: std::env::current_dir()?,
        };
        // Kept until the test's folder is removed.
        let run = RunDirectory::create(self.folder.path())?;
        let stop = Arc::new(AtomicBool::new(false));
        let options = SessionOptions {
            time_limit: Some(self.limit),
            output: Output::Files,
            stop,
            note: |line| eprintln!("{line}"),
        };
        let ended = session::run(&self.machine, &job, &self.cache, &run, &options)?;
        let text =
            |path| Ok::<_, std::io::Error>(String::from_utf8_lossy(&std::fs::read(path)?).into_owned());
        Ok(Outcome {
            status: ended.status,
            kernel_log: ended.kernel_log,
            stdout: text(run.stdout())?,
            stderr: text(run.stderr())?,
            counts: Counts::read(&run.share()),
            residence: residence(&run.share()),
        })
    }
}

/// Returns a command of the host's shell.
pub(crate) fn shell(script: &str) -> Vec<OsString> {
    ["sh", "-c", script].map(Into::into).to_vec()
}
