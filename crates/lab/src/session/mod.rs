//! Runs a guest: starts, watches and stops it, and interprets its end.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cache::Cache;
use crate::console::Console;
use crate::job::{Job, Task};
use crate::machine::Machine;
use crate::qemu::{self, Guest, Port, Ports};
use crate::run_directory::{RunDirectory, write};
use crate::{LabError, initramfs, packed};

mod streams;
use streams::Streams;

const LOOK: Duration = Duration::from_millis(20);
/// Time for QEMU to end by itself once it is told to.
const GRACE: Duration = Duration::from_secs(5);

/// Destination of the program's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// This process's streams.
    Ours,
    /// Files of the run; the program's input is empty.
    Files,
}

#[derive(Debug, Clone)]
pub struct SessionOptions {
    pub time_limit: Option<Duration>,
    /// Destination of the program's streams. A shell is always on this process's terminal.
    pub output: Output,
    /// Flag to stop the guest, which a signal handler may set.
    pub stop: Arc<AtomicBool>,
}

/// End of a guest without an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Program's exit status; 128 + the signal's number if one ended it.
    pub status: u8,
    /// If a signal ended it: the kernel's line about that, if it wrote one.
    pub kernel_log: Option<String>,
    pub elapsed: Duration,
}

/// Boots a guest for a job, passes the program's streams on, and waits for its end.
///
/// QEMU is a child of the calling thread and ends with it, however this process ends.
///
/// # Errors
/// If the guest cannot be started, panics, hangs, ends without a result, or is stopped.
pub fn run(
    machine: &Machine,
    job: &Job,
    cache: &Cache,
    run: &RunDirectory,
    options: &SessionOptions,
) -> Result<Ended, LabError> {
    write(&run.initramfs(), &initramfs::build(cache, machine, job)?)?;
    write(&run.profile(), machine.profile_toml().as_bytes())?;
    let plugin = job.counting.as_ref().map(|counting| counting.plugin.as_path());
    let hardware = plugin.map(|plugin| crate::plugin::hardware(plugin, machine)).transpose()?.flatten();
    if plugin.is_some() {
        crate::plugin::make_shared(run, machine)?;
    }
    let interactive = job.task == Task::Shell;
    // A stream that the host reads or writes would interrupt the guest at unpredictable times.
    let kept = packed::wanted(machine, job);
    let (ports, mut streams) = match (interactive || kept, options.output) {
        (true, _) => (Ports::new(), Streams::default()),
        (false, Output::Files) => (files(run), Streams::default()),
        (false, Output::Ours) => Streams::open()?,
    };
    let guest = Guest { machine, cache, run, ports, plugin, hardware: hardware.as_deref(), interactive };
    let start = Instant::now();
    let mut qemu = Qemu::start(&guest)?;
    streams.started();
    let reason = qemu.wait(options, &streams, start)?;
    let exit = qemu.end(reason.is_some())?;
    streams.finish();
    if kept {
        streams::hand_over(run, options.output)?;
    }
    for path in [run.initramfs(), run.shared_memory(), run.registers()] {
        // Large, and not needed any more.
        let _ = std::fs::remove_file(path);
    }
    match reason {
        Some(Reason::Asked) => Err(LabError::Interrupted),
        Some(Reason::OutputClosed) => Err(LabError::OutputClosed),
        Some(Reason::TimeLimit(limit)) => Err(LabError::TimeLimit { limit, console: run.console() }),
        None => conclude(run, exit, start.elapsed()),
    }
}

fn files(run: &RunDirectory) -> Ports {
    let file = |path: PathBuf| Port::File(path.into());
    vec![("stdout", file(run.stdout())), ("stderr", file(run.stderr()))]
}

#[derive(Debug, Clone, Copy)]
enum Reason {
    Asked,
    OutputClosed,
    TimeLimit(Duration),
}

/// Reads the result that a guest has left, or finds out why there is none.
fn conclude(run: &RunDirectory, exit: ExitStatus, elapsed: Duration) -> Result<Ended, LabError> {
    let text = |name: &str| std::fs::read_to_string(run.share().join(name)).ok();
    let console = run.console();
    if let Some(reason) = text("error") {
        return Err(LabError::Guest { reason: crate::error::sentence(reason.trim()), console });
    }
    if let Some(status) = text("status").and_then(|text| text.trim().parse().ok()) {
        let kernel_log =
            text("kernel-log").map(|line| line.trim().to_owned()).filter(|line| !line.is_empty());
        return Ok(Ended { status, kernel_log, elapsed });
    }
    if let Some(reason) = Console::read(&console).panic() {
        return Err(LabError::Panic { reason: crate::error::sentence(reason), console });
    }
    let said = std::fs::read_to_string(run.qemu_log()).unwrap_or_default();
    let reason = said.lines().next().map_or_else(|| exit.to_string(), crate::error::sentence);
    Err(LabError::Ended { reason, console })
}

/// Running QEMU, which is killed when this is dropped.
struct Qemu(Child);

impl Qemu {
    fn start(guest: &Guest<'_>) -> Result<Self, LabError> {
        let path = guest.cache.qemu();
        let words = qemu::arguments(guest);
        let log = guest.run.qemu_log();
        let log = File::create(&log).map_err(LabError::io(&log, "write"))?;
        let mut command = with_us(&path);
        command.args(&words).env("LD_LIBRARY_PATH", guest.cache.libraries()).stderr(log);
        if !guest.interactive {
            // Ctrl-C at a terminal reaches this process only, which then ends QEMU.
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        write(&guest.run.path().join("command"), &command_line(&path, &words))?;
        command.spawn().map(Self).map_err(LabError::io(&path, "start QEMU"))
    }

    /// Waits for QEMU's end, or for a reason to end it.
    fn wait(
        &mut self,
        options: &SessionOptions,
        streams: &Streams,
        start: Instant,
    ) -> Result<Option<Reason>, LabError> {
        loop {
            if self.exited()?.is_some() {
                return Ok(None);
            }
            if options.stop.load(Ordering::Relaxed) {
                return Ok(Some(Reason::Asked));
            }
            if streams.closed.load(Ordering::Relaxed) {
                return Ok(Some(Reason::OutputClosed));
            }
            if let Some(limit) = options.time_limit.filter(|&limit| start.elapsed() >= limit) {
                return Ok(Some(Reason::TimeLimit(limit)));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Returns QEMU's status; with `force`, ends it first.
    fn end(&mut self, force: bool) -> Result<ExitStatus, LabError> {
        if force {
            let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
            let told = Instant::now();
            while self.exited()?.is_none() && told.elapsed() < GRACE {
                std::thread::sleep(LOOK);
            }
            let _ = self.0.kill();
        }
        self.0.wait().map_err(LabError::io(Path::new("QEMU"), "wait for it"))
    }

    fn exited(&mut self) -> Result<Option<ExitStatus>, LabError> {
        self.0.try_wait().map_err(LabError::io(Path::new("QEMU"), "wait for it"))
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Makes a command that ends with this process, if `setpriv` is there to arrange it.
fn with_us(program: &Path) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match std::env::split_paths(&path).map(|folder| folder.join("setpriv")).find(|path| path.is_file()) {
        None => Command::new(program),
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", "--"]).arg(program);
            command
        }
    }
}

/// Returns the command as a person may run it again, one option per line.
fn command_line(path: &Path, words: &[OsString]) -> Vec<u8> {
    let mut text = path.as_os_str().to_owned();
    for word in words {
        text.push(if word.to_string_lossy().starts_with('-') { " \\\n  " } else { " " });
        text.push("'");
        text.push(word);
        text.push("'");
    }
    text.push("\n");
    std::os::unix::ffi::OsStringExt::into_vec(text)
}
