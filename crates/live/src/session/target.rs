//! The program that a session tiers.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use isotherm_linux::hint_faults;
use isotherm_linux::memory::interleave::interleave_thread;
use isotherm_linux::process::launch::{Launch, LaunchError};
use isotherm_linux::process::lock::EngineLock;
use isotherm_linux::process::signals::Signals;
use isotherm_linux::process::tree::Tree;
use isotherm_linux::process::{Pid, ProcRoot};

use super::candidates::Reach;
use super::environment::Environment;
use super::error::SessionError;
use super::members::{FollowedMembers, Members};
use super::own_process::{OwnProcess, command_line};
use super::processes::{ExitCell, FollowedTree};
use crate::host::Processes;

#[derive(Debug)]
pub enum Target {
    Launch {
        program: OsString,
        arguments: Vec<OsString>,
        /// `libisotherm.so`, if it was found: the agent that some sources load into the program.
        agent: Option<PathBuf>,
        /// Another library to load before all others.
        library: Option<PathBuf>,
        cgroup: Option<PathBuf>,
        /// Whether the session lasts until the last descendant ends.
        descendants: bool,
    },
    Attach {
        pid: Pid,
        time: Option<Duration>,
    },
    /// Processes of a group that come and go, under one engine. The session lasts until [`Members::end`], on
    /// the thread that opens it; signals stay with the caller.
    Group {
        members: Members,
    },
    /// The calling process, whose thread the engine is.
    Inside {
        /// Memory of the engine, which is neither tracked nor moved.
        own: Vec<Range<u64>>,
        /// Set when the session should end; whoever sets it unparks the engine's thread.
        ending: &'static AtomicBool,
    },
}

pub(super) struct Started {
    /// The program's first process; `None` for a group.
    pub(super) pid: Option<Pid>,
    /// The program and its arguments, or its number.
    pub(super) program: Vec<String>,
    pub(super) processes: Box<dyn Processes>,
    /// How the program ended, if the session launched it.
    pub(super) exit: Option<ExitCell>,
    /// The engine's memory, if the engine runs inside the program.
    pub(super) own_memory: Option<Vec<Range<u64>>>,
    /// `None` for a group, whose processes have a lock each.
    pub(super) lock: Option<EngineLock>,
}

impl Target {
    pub(super) fn pid(&self) -> Option<Pid> {
        match self {
            Self::Launch { .. } | Self::Group { .. } => None,
            Self::Attach { pid, .. } => Some(*pid),
            Self::Inside { .. } => Some(Pid(std::process::id())),
        }
    }

    pub(super) fn reach(&self) -> Reach<'_> {
        match self {
            Self::Launch { agent, .. } => Reach::Launch { agent: agent.as_deref() },
            Self::Attach { .. } => Reach::Attach,
            Self::Group { .. } => Reach::Group,
            Self::Inside { .. } => Reach::Inside,
        }
    }

    /// Returns the cgroup that the program will run in, if it is known before the launch.
    pub(super) fn cgroup(&self) -> Option<&Path> {
        match self {
            Self::Launch { cgroup, .. } => cgroup.as_deref(),
            Self::Attach { .. } | Self::Group { .. } | Self::Inside { .. } => None,
        }
    }

    /// Whether signals that ask for the end are the session's to receive.
    pub(super) fn receives_signals(&self) -> bool {
        matches!(self, Self::Launch { .. } | Self::Attach { .. })
    }

    pub(super) fn hide_own_memory(&self) {
        if let Self::Inside { own, .. } = self {
            own.iter().for_each(|range| hint_faults::exclude(range.clone()));
        }
    }

    /// Launches or follows the program; `lock` is a running process's, `signals` are those of an engine
    /// outside. A launched program takes new pages from the `interleaved` nodes in turn, if there are any.
    ///
    /// # Errors
    /// If the program cannot be launched or followed.
    pub(super) fn start(
        self,
        environment: &mut Environment,
        interleaved: &[u32],
        lock: Option<EngineLock>,
        signals: Option<Signals>,
    ) -> Result<Started, SessionError> {
        let root = ProcRoot::default();
        let own = Pid(std::process::id());
        let held = |pid| lock.map_or_else(|| EngineLock::take(&ProcRoot::default(), pid), Ok);
        let received = || signals.map_or_else(Signals::receive, Ok);
        match self {
            Self::Launch { program, arguments, library, cgroup, descendants, .. } => {
                if let Some(library) = library {
                    environment.preload(&library)?;
                }
                let signals = received()?;
                let launch = || Launch::start(signals, &program, &arguments, &environment.variables, true);
                let launch =
                    if interleaved.is_empty() { launch()? } else { launch_interleaved(interleaved, launch)? };
                let pid = launch.pid();
                let lock = held(pid)?;
                if let Some(cgroup) = cgroup {
                    enter(&cgroup, pid)?;
                }
                let tree = Tree::follow(root, pid, Some(own))?;
                let (followed, exit) = FollowedTree::launched(tree, launch.release()?, descendants);
                let parts = std::iter::once(&program).chain(&arguments);
                let program = parts.map(|part| part.to_string_lossy().into_owned()).collect();
                let processes = Box::new(followed);
                let (pid, lock) = (Some(pid), Some(lock));
                Ok(Started { pid, program, processes, exit: Some(exit), own_memory: None, lock })
            }
            Self::Attach { pid, time } => {
                let lock = held(pid)?;
                let pid = lock.pid();
                let tree = Tree::follow(root, pid, None)?;
                let processes = Box::new(FollowedTree::attached(tree, received()?, time));
                let program = vec![pid.0.to_string()];
                let (pid, lock) = (Some(pid), Some(lock));
                Ok(Started { pid, program, processes, exit: None, own_memory: None, lock })
            }
            Self::Group { members } => {
                let processes = Box::new(FollowedMembers::new(members, root));
                Ok(Started {
                    pid: None,
                    program: Vec::new(),
                    processes,
                    exit: None,
                    own_memory: None,
                    lock: None,
                })
            }
            Self::Inside { own: memory, ending } => Ok(Started {
                pid: Some(own),
                program: command_line(&root, own),
                processes: Box::new(OwnProcess::new(root, own, ending)),
                exit: None,
                own_memory: Some(memory),
                lock: Some(held(own)?),
            }),
        }
    }
}

/// Launches on a thread of its own, since a program inherits the memory policy of the thread that forks it.
fn launch_interleaved(
    nodes: &[u32],
    launch: impl FnOnce() -> Result<Launch, LaunchError> + Send,
) -> Result<Launch, LaunchError> {
    std::thread::scope(|scope| {
        let launching = scope.spawn(|| {
            interleave_thread(nodes)?;
            launch()
        });
        launching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn enter(cgroup: &Path, pid: Pid) -> Result<(), SessionError> {
    let path = cgroup.join("cgroup.procs");
    std::fs::write(&path, pid.0.to_string()).map_err(|error| SessionError::Cgroup { path, error })
}
