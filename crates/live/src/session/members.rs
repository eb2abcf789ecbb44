//! The processes of a group, which come and go while its session runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use isotherm_linux::LinuxError;
use isotherm_linux::process::lock::EngineLock;
use isotherm_linux::process::tree::Tree;
use isotherm_linux::process::{Pid, ProcRoot};

use super::processes::follow;
use crate::host::{ProcessEvent, Processes};

/// Time between two attempts to follow a process that another engine tiers, or that may not be read.
const AGAIN: Duration = Duration::from_secs(2);

/// The processes that a group's session is to follow. Whoever decides that and the session hold a clone each.
#[derive(Debug, Clone, Default)]
pub struct Members(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Start in clock ticks of each process that is to be followed.
    wanted: BTreeMap<Pid, u64>,
    /// Counts changes of `wanted`.
    version: u64,
    ended: bool,
    /// Processes that are wanted and not followed, and why.
    refused: BTreeMap<Pid, String>,
}

impl Members {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the processes, each with its start in clock ticks since boot.
    pub fn set(&self, wanted: BTreeMap<Pid, u64>) {
        let mut state = self.state();
        if state.wanted != wanted {
            (state.wanted, state.version) = (wanted, state.version + 1);
            self.0.changed.notify_all();
        }
    }

    /// Ends the session.
    pub fn end(&self) {
        self.state().ended = true;
        self.0.changed.notify_all();
    }

    /// Returns the processes that are not followed although they are wanted, and why.
    pub fn refused(&self) -> BTreeMap<Pid, String> {
        self.state().refused.clone()
    }
}

/// A session's end of [`Members`], with the lock of each followed process.
pub(super) struct FollowedMembers {
    members: Members,
    root: ProcRoot,
    tree: Tree,
    /// Followed processes, with their start.
    held: BTreeMap<Pid, (u64, EngineLock)>,
    version: u64,
    again: Option<Instant>,
    warning: Option<LinuxError>,
}

impl FollowedMembers {
    pub(super) fn new(members: Members, root: ProcRoot) -> Self {
        let tree = Tree::of_members(root.clone());
        Self { members, root, tree, held: BTreeMap::new(), version: 0, again: None, warning: None }
    }

    fn renew(&mut self) {
        let (wanted, version) = {
            let state = self.members.state();
            (state.wanted.clone(), state.version)
        };
        self.version = version;
        let gone: Vec<Pid> = self
            .held
            .iter()
            .filter(|(pid, held)| wanted.get(pid) != Some(&held.0))
            .map(|held| *held.0)
            .collect();
        for pid in gone {
            self.tree.remove_member(pid);
            self.held.remove(&pid);
        }
        let mut refused = BTreeMap::new();
        for (&pid, &start) in
            wanted.iter().filter(|(pid, _)| !self.held.contains_key(pid)).collect::<Vec<_>>()
        {
            // The program's time is not this engine's to wait in: another engine may hold it for hours.
            let lock = EngineLock::take_within(&self.root, pid, Duration::ZERO);
            match lock.and_then(|lock| self.tree.add_member(pid).map(|()| lock)) {
                Ok(lock) => drop(self.held.insert(pid, (start, lock))),
                Err(LinuxError::Ended(_)) => {}
                Err(error) => drop(refused.insert(pid, error.to_string())),
            }
        }
        self.again = (!refused.is_empty()).then(|| Instant::now() + AGAIN);
        self.members.state().refused = refused;
    }
}

impl Processes for FollowedMembers {
    fn update(&mut self, events: &mut Vec<ProcessEvent>) -> bool {
        let (ended, version) = {
            let state = self.members.state();
            (state.ended, state.version)
        };
        if ended {
            return false;
        }
        if version != self.version || self.again.is_some_and(|again| Instant::now() >= again) {
            self.renew();
        }
        let first = events.len();
        self.warning = follow(&mut self.tree, events).err();
        for event in &events[first..] {
            if let ProcessEvent::Ended(pid) = event {
                self.held.remove(pid);
            }
        }
        true
    }

    /// Returns early when the session is to end or the processes change.
    fn wait(&mut self, time: Duration) {
        let state = self.members.state();
        if !state.ended && state.version == self.version {
            // Whether it was woken or the time is over, the next update looks.
            drop(self.members.0.changed.wait_timeout(state, time));
        }
    }

    fn warning(&mut self) -> Option<LinuxError> {
        self.warning.take()
    }

    fn threads(&self) -> Option<u64> {
        Some(self.tree.threads())
    }
}
