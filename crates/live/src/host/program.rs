//! Defines the processes of a live run: a program that was started, or one that runs already, each with its descendants.

use std::time::{Duration, Instant};

use super::{ProcessEvent, Processes};
use isotherm_linux::LinuxError;
use isotherm_linux::process::Exit;
use isotherm_linux::process::launch::Running;
use isotherm_linux::process::signals::Signals;
use isotherm_linux::process::tree::{Event, Tree};

/// How the program ended, told to whoever started it.
pub type ExitCell = std::sync::Arc<std::sync::OnceLock<Exit>>;

/// Who decides when the run is over.
enum Life {
    /// The program that was started: the run ends with it, or with the last of its descendants.
    Started { running: Running, exit: ExitCell, with_descendants: bool },
    /// A signal, the time, or the end of all processes.
    Attached { signals: Signals, until: Option<Instant> },
}

/// A tree of processes and when to stop following it.
pub struct Program {
    tree: Tree,
    life: Life,
    found: Vec<Event>,
    warning: Option<LinuxError>,
}

impl Program {
    /// A program that was started. How it ended is in the cell afterwards.
    pub fn started(tree: Tree, running: Running, with_descendants: bool) -> (Self, ExitCell) {
        let exit = ExitCell::default();
        let life = Life::Started { running, exit: exit.clone(), with_descendants };
        (Self { tree, life, found: Vec::new(), warning: None }, exit)
    }

    /// A program that runs already, followed until it ends, a signal comes or the time is up.
    pub fn attached(tree: Tree, signals: Signals, time: Option<Duration>) -> Self {
        let life = Life::Attached { signals, until: time.map(|time| Instant::now() + time) };
        Self { tree, life, found: Vec::new(), warning: None }
    }

    fn follow(&mut self, events: &mut Vec<ProcessEvent>) -> Result<(), LinuxError> {
        self.found.clear();
        self.tree.poll(&mut self.found)?;
        events.extend(self.found.iter().map(|event| match *event {
            Event::Started { pid, .. } => ProcessEvent::Started(pid),
            Event::Executed(pid) => ProcessEvent::Executed(pid),
            Event::Ended(pid) => ProcessEvent::Ended(pid),
        }));
        Ok(())
    }

    fn goes_on(&mut self) -> Result<bool, LinuxError> {
        match &mut self.life {
            Life::Started { running, exit, with_descendants } => {
                let Some(ended) = running.wait(Duration::ZERO)? else { return Ok(true) };
                // Set once: later calls find it there.
                let _ = exit.set(ended);
                Ok(*with_descendants && !self.tree.is_empty())
            }
            Life::Attached { signals, until } => {
                let asked = signals.take().is_some();
                let over = until.is_some_and(|until| Instant::now() >= until);
                Ok(!asked && !over && !self.tree.is_empty())
            }
        }
    }
}

impl Processes for Program {
    fn update(&mut self, events: &mut Vec<ProcessEvent>) -> bool {
        // What cannot be followed any more is still waited for.
        let followed = self.follow(events);
        let goes_on = self.goes_on();
        self.warning = followed.err();
        goes_on.unwrap_or_else(|error| {
            self.warning = Some(error);
            false
        })
    }

    /// Ends with a program that was started.
    fn wait(&mut self, time: Duration) {
        match &mut self.life {
            Life::Started { running, exit, .. } if exit.get().is_none() => {
                // An error is told by the next update, which asks again.
                if let Ok(Some(ended)) = running.wait(time) {
                    let _ = exit.set(ended);
                }
            }
            _ => std::thread::sleep(time),
        }
    }

    fn warning(&mut self) -> Option<LinuxError> {
        self.warning.take()
    }
}
