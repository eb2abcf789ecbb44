//! Runs a guest: starts, watches and stops it, and interprets its end.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::console::Console;
use crate::job::{Job, Task};
use crate::machine::Machine;
use crate::qemu::{self, Guest, Port, Ports};
use crate::run_directory::{RunDirectory, write};
use crate::snapshot::{self, Snapshot};
use crate::{LabError, initramfs, packed, script};

mod monitor;
mod streams;
use monitor::Monitor;
use streams::Streams;

const LOOK: Duration = Duration::from_millis(20);
/// Time for QEMU to do what it is told: to end by itself, or to let a guest continue.
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
    /// Tells the user, in one line, of what does not end the run.
    pub note: fn(&str),
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

/// Starts a guest for a job, from a snapshot if there is one of its kind, passes the program's streams on,
/// and waits for its end.
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
    // A stream that the host reads or writes would interrupt the guest at unpredictable times.
    let kept = packed::wanted(machine, job);
    let initramfs = initramfs::build(cache, machine, kept.then_some(job))?;
    write(&run.initramfs(), &initramfs)?;
    let program = run.share().join("program");
    if !kept {
        write(&run.share().join("job"), script::job_settings(machine, job).as_bytes())?;
        write(&program, &script::program(job))?;
    }
    write(&run.profile(), machine.profile_toml().as_bytes())?;
    let plugin = job.counting.as_ref().map(|counting| counting.plugin.as_path());
    let hardware = plugin.map(|plugin| crate::plugin::hardware(plugin, machine)).transpose()?.flatten();
    let interactive = job.task == Task::Shell;
    let (ports, mut streams) = match (interactive || kept, options.output) {
        (true, _) => (Ports::new(), Streams::default()),
        (false, Output::Files) => (files(run), Streams::default()),
        (false, Output::Ours) => Streams::open()?,
    };
    let hardware = hardware.as_deref();
    let mut guest =
        Guest { machine, cache, run, ports, plugin, hardware, interactive, monitor: None, snapshot: None };
    let watch = Watch { options, closed: Arc::clone(&streams.closed), start: Instant::now() };
    let mut qemu = begin(&mut guest, &initramfs, &watch)?;
    streams.started();
    let reason = match qemu.until(&[], &watch)? {
        Step::Stopped(reason) => Some(reason),
        Step::Exited | Step::Heard(_) => None,
    };
    let exit = qemu.end(reason.is_some())?;
    streams.finish();
    if kept {
        streams::hand_over(run, options.output)?;
    }
    for path in [run.initramfs(), run.shared_memory(), run.registers(), program] {
        // Large, or with the user's environment, and not needed any more.
        let _ = std::fs::remove_file(path);
    }
    match reason {
        Some(Reason::Asked) => Err(LabError::Interrupted),
        Some(Reason::OutputClosed) => Err(LabError::OutputClosed),
        Some(Reason::TimeLimit(limit)) => Err(LabError::TimeLimit { limit, console: run.console() }),
        None => conclude(run, exit, watch.start.elapsed()),
    }
}

fn files(run: &RunDirectory) -> Ports {
    let file = |path: PathBuf| Port::File(path.into());
    vec![("stdout", file(run.stdout())), ("stderr", file(run.stderr()))]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Asked,
    OutputClosed,
    TimeLimit(Duration),
}

/// Reasons to end a guest, which may arise at any time.
struct Watch<'a> {
    options: &'a SessionOptions,
    /// Whether this process's output is closed.
    closed: Arc<AtomicBool>,
    start: Instant,
}

impl Watch<'_> {
    fn reason(&self) -> Option<Reason> {
        if self.options.stop.load(Ordering::Relaxed) {
            return Some(Reason::Asked);
        }
        if self.closed.load(Ordering::Relaxed) {
            return Some(Reason::OutputClosed);
        }
        let limit = self.options.time_limit.filter(|&limit| self.start.elapsed() >= limit);
        limit.map(Reason::TimeLimit)
    }
}

/// End of a wait.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Exited,
    Stopped(Reason),
    Heard(String),
}

/// Starts a guest from the snapshot of its kind, or boots it and saves one. Its job begins then, unless it
/// has ended or there is a reason to end it.
fn begin(guest: &mut Guest<'_>, initramfs: &[u8], watch: &Watch<'_>) -> Result<Qemu, LabError> {
    if !snapshot::possible(guest.machine) {
        return Qemu::start(guest);
    }
    let snapshot = Snapshot::of(guest, initramfs)?;
    let shown = snapshot.path().display();
    let problem = match snapshot.is_there() {
        Ok(true) => {
            guest.snapshot = Some(snapshot.path().into());
            let mut qemu = Qemu::start(guest)?;
            if let Step::Exited = qemu.until(&["completed"], watch)? {
                Some(last_words(guest.run, qemu.end(false)?))
            } else {
                qemu.resume(guest.run, watch)?;
                return Ok(qemu);
            }
        }
        Ok(false) => None,
        Err(error) => Some(error.to_string()),
    };
    if let Some(problem) = problem {
        (watch.options.note)(&format!(
            "{shown}: cannot start from this snapshot ({problem}); booting a guest"
        ));
    }
    guest.snapshot = None;
    let mut qemu = Qemu::start(guest)?;
    if let Step::Heard(_) = qemu.until(&["GUEST_PANICKED"], watch)? {
        if let Err(problem) = save(&mut qemu, &snapshot, watch)? {
            (watch.options.note)(&format!(
                "{shown}: cannot save this snapshot ({problem}), so the next guest boots, too; expected a folder with room"
            ));
        }
        qemu.resume(guest.run, watch)?;
    }
    Ok(qemu)
}

/// Saves a paused guest; the inner result says why that failed.
fn save(qemu: &mut Qemu, snapshot: &Snapshot, watch: &Watch<'_>) -> Result<Result<(), String>, LabError> {
    let path = snapshot.beside();
    let migrate = ("migrate", json!({ "uri": format!("file:{}", path.display()) }));
    let step = qemu.ask(migrate, &["completed", "failed", "error"], watch)?;
    let saved = match step {
        Step::Heard(event) if event == "completed" => snapshot.keep(&path).map_err(|error| error.to_string()),
        Step::Heard(_) => Err("QEMU cannot write it".into()),
        Step::Exited | Step::Stopped(_) => Ok(()),
    };
    // It is still there if it was not kept.
    let _ = std::fs::remove_file(path);
    Ok(saved)
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
    Err(LabError::Ended { reason: last_words(run, exit), console })
}

/// Returns QEMU's own message, or how it ended without one.
fn last_words(run: &RunDirectory, exit: ExitStatus) -> String {
    let said = std::fs::read_to_string(run.qemu_log()).unwrap_or_default();
    said.lines().next().map_or_else(|| exit.to_string(), crate::error::sentence)
}

/// Running QEMU, which is killed when this is dropped.
struct Qemu {
    child: Child,
    /// For a machine whose guests pause.
    monitor: Option<Monitor>,
}

impl Qemu {
    fn start(guest: &mut Guest<'_>) -> Result<Self, LabError> {
        let monitor = snapshot::possible(guest.machine).then(|| Monitor::open(LOOK)).transpose()?;
        let (monitor, theirs) = monitor.unzip();
        guest.monitor = theirs.as_ref().map(AsRawFd::as_raw_fd);
        if guest.plugin.is_some() {
            // Also after a QEMU that has failed to fill it from a snapshot.
            crate::plugin::make_shared(guest.run, guest.machine)?;
        }
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
        let child = command.spawn().map_err(LabError::io(&path, "start QEMU"))?;
        Ok(Self { child, monitor })
    }

    /// Waits for QEMU's end, for a reason to end it, or for an event.
    fn until(&mut self, events: &[&str], watch: &Watch<'_>) -> Result<Step, LabError> {
        loop {
            if self.exited()?.is_some() {
                return Ok(Step::Exited);
            }
            if let Some(reason) = watch.reason() {
                return Ok(Step::Stopped(reason));
            }
            match &mut self.monitor {
                Some(monitor) if !events.is_empty() => {
                    if let Some(event) = monitor.hear().into_iter().find(|event| events.contains(&&**event)) {
                        return Ok(Step::Heard(event));
                    }
                }
                _ => std::thread::sleep(LOOK),
            }
        }
    }

    /// Sends QEMU a command and waits for an event.
    fn ask(
        &mut self,
        (command, arguments): (&str, Value),
        events: &[&str],
        watch: &Watch<'_>,
    ) -> Result<Step, LabError> {
        self.monitor.iter_mut().for_each(|monitor| monitor.tell(command, &arguments));
        self.until(events, watch)
    }

    /// Lets a paused guest continue.
    fn resume(&mut self, run: &RunDirectory, watch: &Watch<'_>) -> Result<(), LabError> {
        let (refused, told) = (Step::Heard("error".into()), Instant::now());
        // QEMU refuses as long as it closes the file of a snapshot.
        while self.ask(("cont", json!({})), &["RESUME", "error"], watch)? == refused {
            if told.elapsed() > GRACE {
                let reason = "QEMU does not let the paused guest continue".into();
                return Err(LabError::Ended { reason, console: run.console() });
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Returns QEMU's status; with `force`, ends it first.
    fn end(&mut self, force: bool) -> Result<ExitStatus, LabError> {
        if force {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let told = Instant::now();
            while self.exited()?.is_none() && told.elapsed() < GRACE {
                std::thread::sleep(LOOK);
            }
            let _ = self.child.kill();
        }
        self.child.wait().map_err(LabError::io(Path::new("QEMU"), "wait for it"))
    }

    fn exited(&mut self) -> Result<Option<ExitStatus>, LabError> {
        self.child.try_wait().map_err(LabError::io(Path::new("QEMU"), "wait for it"))
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
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
