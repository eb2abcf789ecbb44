//! The processes of a session outside the program: a launched or attached program with its descendants.

use std::time::{Duration, Instant};

use isotherm_linux::LinuxError;
use isotherm_linux::process::Exit;
use isotherm_linux::process::launch::Running;
use isotherm_linux::process::signals::Signals;
use isotherm_linux::process::tree::{Event, Tree};

use crate::host::{ProcessEvent, Processes};

/// How a launched program ended, shared with the session.
pub(super) type ExitCell = std::sync::Arc<std::sync::OnceLock<Exit>>;

enum Life {
    /// The end of the launched program, or of its last descendant.
    Launched { running: Running, exit: ExitCell, with_descendants: bool },
    /// A signal, the time, or the end of all processes.
    Attached { signals: Signals, until: Option<Instant> },
}

/// A process tree and the condition that ends its session.
pub(super) struct FollowedTree {
    tree: Tree,
    life: Life,
    warning: Option<LinuxError>,
}

/// Appends what has become of a tree's processes since the last call.
pub(super) fn follow(tree: &mut Tree, events: &mut Vec<ProcessEvent>) -> Result<(), LinuxError> {
    let mut found = Vec::new();
    tree.poll(&mut found)?;
    events.extend(found.iter().map(|event| match *event {
        Event::Started { pid, .. } => ProcessEvent::Started(pid),
        Event::Executed(pid) => ProcessEvent::Executed(pid),
        Event::Ended(pid) => ProcessEvent::Ended(pid),
    }));
    Ok(())
}

impl FollowedTree {
    /// Follows a launched program. The cell is set when the program ends.
    pub(super) fn launched(tree: Tree, running: Running, with_descendants: bool) -> (Self, ExitCell) {
        let exit = ExitCell::default();
        let life = Life::Launched { running, exit: exit.clone(), with_descendants };
        (Self { tree, life, warning: None }, exit)
    }

    /// Follows a running program until it ends, a signal arrives or `time` has passed.
    pub(super) fn attached(tree: Tree, signals: Signals, time: Option<Duration>) -> Self {
        let life = Life::Attached { signals, until: time.map(|time| Instant::now() + time) };
        Self { tree, life, warning: None }
    }

    fn continues(&mut self) -> bool {
        match &mut self.life {
            Life::Launched { running, exit, with_descendants } => {
                let ended = match running.wait(Duration::ZERO) {
                    Ok(Some(ended)) => ended,
                    Ok(None) => return true,
                    Err(error) => {
                        // It is waited for all the same: its status is the session's.
                        self.warning = Some(error);
                        return true;
                    }
                };
                // Later calls find the cell already set.
                let _ = exit.set(ended);
                *with_descendants && !self.tree.is_empty()
            }
            Life::Attached { signals, until } => {
                let asked = signals.take().is_some();
                let over = until.is_some_and(|until| Instant::now() >= until);
                !asked && !over && !self.tree.is_empty()
            }
        }
    }
}

impl Processes for FollowedTree {
    fn update(&mut self, events: &mut Vec<ProcessEvent>) -> bool {
        // A program that can no longer be followed is still waited for.
        self.warning = follow(&mut self.tree, events).err();
        self.continues()
    }

    /// Returns early if the launched program ends.
    fn wait(&mut self, time: Duration) {
        match &mut self.life {
            Life::Launched { running, exit, .. } if exit.get().is_none() => {
                match running.wait(time) {
                    Ok(Some(ended)) => drop(exit.set(ended)),
                    Ok(None) => {}
                    // The next update asks again and reports it.
                    Err(_) => std::thread::sleep(time),
                }
            }
            _ => std::thread::sleep(time),
        }
    }

    fn warning(&mut self) -> Option<LinuxError> {
        self.warning.take()
    }

    fn threads(&self) -> Option<u64> {
        Some(self.tree.threads())
    }
}
