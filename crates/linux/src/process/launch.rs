//! Starts a program for `isotherm run` and waits for it, so that it runs as it would without Isotherm.
//!
//! The program keeps its streams, process group and terminal. It is forked and waits before exec until
//! [`Launch::release`] or Isotherm's death, so that sources follow it from its first instruction. Signals to
//! Isotherm are passed on, unless the terminal has sent them to the program itself.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::signals::Signals;
use super::{Exit, Pid};
use crate::LinuxError;
use crate::sys::process as sys;

/// Time between two looks for the program's end without pidfds.
const LOOK: Duration = Duration::from_millis(20);
/// Ends a child that waits for its release.
const CANCEL: &[u8] = &[1];

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("{command}: not found; expected a program in PATH or a path")]
    NotFound { command: String },
    #[error("{command}: not executable: {error}")]
    NotExecutable { command: String, error: io::Error },
    #[error(transparent)]
    Linux(#[from] LinuxError),
}

impl LaunchError {
    /// Returns the exit status that a shell user expects: 127 not found, 126 not executable, 1 otherwise.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            Self::Linux(_) => 1,
        }
    }
}

/// A program that is forked and waits before exec. Dropping it ends the program, of which nothing has run;
/// the death of this process lets it go on.
#[derive(Debug)]
pub struct Launch {
    pid: Pid,
    signals: Option<Signals>,
    name: String,
    /// Closing it lets the child go on.
    release: Option<File>,
    /// `Command::spawn` returns after exec only.
    spawning: Option<JoinHandle<io::Result<Child>>>,
    adopt: bool,
}

impl Launch {
    /// Forks the program. `signals` have been received since before, so that none is lost. `variables` are
    /// added to this process's environment. With `adopt`, orphans among the program's descendants become
    /// children of this process, which must then have no other children: [`Running::wait`] reaps all.
    pub fn start(
        signals: Signals,
        name: &OsStr,
        arguments: &[OsString],
        variables: &[(OsString, OsString)],
        adopt: bool,
    ) -> Result<Self, LaunchError> {
        if adopt {
            sys::become_subreaper().map_err(LinuxError::of_call("prctl(PR_SET_CHILD_SUBREAPER)"))?;
        }
        let (mut ready, ready_writer) = sys::pipe().map_err(LinuxError::of_call("pipe2"))?;
        let (release_reader, release) = sys::pipe().map_err(LinuxError::of_call("pipe2"))?;
        let mut command = Command::new(name);
        command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
        let ends = [ready_writer.as_raw_fd(), release_reader.as_raw_fd(), release.as_raw_fd()];
        sys::hold_before_exec(&mut command, ends[0], ends[1], ends[2]);
        let spawn = move || {
            let result = command.spawn();
            drop((ready_writer, release_reader));
            result
        };
        // From the fork until the program is known, a lack of memory would lose its status.
        let name = name.to_string_lossy().into_owned();
        let builder = std::thread::Builder::new().name("isotherm-launch".into());
        let spawning = builder.spawn(spawn).map_err(LinuxError::of_call("pthread_create"))?;
        let mut id = [0; 4];
        if let Err(error) = ready.read_exact(&mut id) {
            // Without a child the spawn has the reason; a child that cannot be followed does not start.
            let _ = (&release).write(CANCEL);
            let result = spawned(spawning, name);
            if error.kind() == io::ErrorKind::UnexpectedEof {
                result?;
            }
            return Err(LinuxError::of_call("fork")(error).into());
        }
        let (pid, signals) = (Pid(u32::from_ne_bytes(id)), Some(signals));
        sys::set_program(pid);
        Ok(Self { pid, signals, name, release: Some(release), spawning: Some(spawning), adopt })
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the program start; returns when it has started or failed to.
    pub fn release(mut self) -> Result<Running, LaunchError> {
        // Before exec the number cannot be another process's yet.
        let pidfd = sys::pidfd_open(self.pid).ok();
        self.release = None;
        let name = std::mem::take(&mut self.name);
        if let Some(spawning) = self.spawning.take() {
            spawned(spawning, name)?;
        }
        Ok(Running { pid: self.pid, signals: self.signals.take(), pidfd, adopt: self.adopt, exit: None })
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if let Some(spawning) = self.spawning.take() {
            // The outcome of the spawn does not matter any more.
            let _ = self.release.take().map(|mut release| release.write(CANCEL));
            let _ = spawning.join();
        }
    }
}

fn spawned(spawning: JoinHandle<io::Result<Child>>, command: String) -> Result<(), LaunchError> {
    let result = spawning.join().unwrap_or_else(|_| Err(io::Error::other("the launching thread panicked")));
    match result {
        // `reap` learns of its end by its number.
        Ok(_child) => Ok(()),
        Err(error) => Err(match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => LaunchError::NotFound { command },
            Some(libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE) => {
                LinuxError::of_call("fork")(error).into()
            }
            _ => LaunchError::NotExecutable { command, error },
        }),
    }
}

#[derive(Debug)]
pub struct Running {
    pid: Pid,
    /// Always present; an option only because [`Launch`] has a destructor.
    signals: Option<Signals>,
    pidfd: Option<OwnedFd>,
    adopt: bool,
    exit: Option<Exit>,
}

impl Running {
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Passes signals on until the program ends, one comes, or for `timeout`; `None` while it runs.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Exit>, LinuxError> {
        let deadline = Instant::now() + timeout;
        loop {
            let signalled = self.pass_on();
            self.reap()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if self.exit.is_some() || signalled || left.is_zero() {
                return Ok(self.exit);
            }
            let own = self.signals.iter().map(Signals::descriptor);
            let files = self.pidfd.iter().map(AsRawFd::as_raw_fd).chain(own);
            let pause = if self.pidfd.is_some() { left } else { left.min(LOOK) };
            if sys::poll(files, pause).is_err() {
                std::thread::sleep(pause.min(LOOK));
            }
        }
    }

    /// Passes on signals that the terminal did not send; returns whether any came.
    fn pass_on(&mut self) -> bool {
        let mut came = false;
        while let Some(received) = self.signals.as_mut().and_then(Signals::take) {
            came = true;
            if !received.from_kernel && self.exit.is_none() {
                // It fails only if the program has just ended.
                let _ = sys::send(self.pid, received.signal);
            }
        }
        came
    }

    /// Reaps ended children: the program, and orphans if they are adopted.
    fn reap(&mut self) -> Result<(), LinuxError> {
        loop {
            if !self.adopt && self.exit.is_some() {
                return Ok(());
            }
            match sys::reap((!self.adopt).then_some(self.pid)) {
                Ok(Some((pid, status))) if pid == self.pid => {
                    self.exit = self.exit.or(Exit::from_wait(status));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => {
                    // Another waiter has reaped it: how it ended is unknown.
                    self.exit.get_or_insert(Exit::Code(1));
                    return Ok(());
                }
                Err(error) => return Err(LinuxError::of_call("waitpid")(error)),
            }
        }
    }
}
