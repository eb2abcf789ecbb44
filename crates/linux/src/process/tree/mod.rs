//! The tree of a program: its first process and all descendants, with their starts, execs and ends.
//!
//! The tree is polled: one `poll(2)` over all processes, eight bytes of each one's page table, and one short
//! read that tells whether anything on the machine forked; only then are children looked for. Processes that
//! start and end between two polls have no memory to tier. An orphan of a double fork is adopted where
//! Isotherm started the program; attached, it is lost if its parent lived between two polls.

mod children;
mod watched;

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::time::Duration;

use self::children::Children;
use self::watched::{Change, Watched};
use super::{Pid, ProcRoot, ProcessStat};
use crate::LinuxError;
use crate::sys::process as sys;

/// Most processes watched by descriptors, two each: fewer than the usual limit of 1024.
const DESCRIPTORS_FOR: usize = 256;
/// Polls between two complete readings, whatever the hints say.
const THOROUGH: u32 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// It was found: forked, or adopted after its parent ended.
    Started { pid: Pid, parent: Pid },
    /// It executed another program: its memory is new.
    Executed(Pid),
    /// It ended. Its number may be reused soon.
    Ended(Pid),
}

#[derive(Debug)]
pub struct Tree {
    root: ProcRoot,
    /// This process, if it adopts orphans.
    adopter: Option<Pid>,
    known: BTreeMap<Pid, Watched>,
    /// `None` if nobody's children are followed.
    children: Option<Children>,
    /// Events of the next poll.
    early: Vec<Event>,
    polls: u32,
    buffer: Vec<u8>,
}

impl Tree {
    /// Follows a process and its future descendants; the first poll reports it as started. `adopter` is this
    /// process if it adopts orphans ([`super::launch::Launch::start`]) and has no other children.
    pub fn follow(root: ProcRoot, first: Pid, adopter: Option<Pid>) -> Result<Self, LinuxError> {
        let mut buffer = Vec::new();
        let stat = ProcessStat::read(&root, first, &mut buffer)?;
        if stat.kernel {
            return Err(LinuxError::Unsupported {
                what: "tiering a thread of the kernel",
                remedy: format!("process {} has no memory of its own; name a program's process", first.0),
            });
        }
        if stat.has_ended() {
            return Err(LinuxError::Ended(first.0));
        }
        let children = Some(Children::new(&root, first));
        let mut tree =
            Self { root, adopter, known: BTreeMap::new(), children, early: Vec::new(), polls: 0, buffer };
        tree.add(first, stat);
        Ok(tree)
    }

    /// Follows the processes that [`Self::add_member`] names, without their children.
    pub fn of_members(root: ProcRoot) -> Self {
        let (known, early, buffer) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { root, adopter: None, known, children: None, early, polls: 0, buffer }
    }

    /// Follows another process; the next poll reports it as started.
    pub fn add_member(&mut self, pid: Pid) -> Result<(), LinuxError> {
        let stat = ProcessStat::read(&self.root, pid, &mut self.buffer)?;
        if stat.has_ended() {
            return Err(LinuxError::Ended(pid.0));
        }
        if !self.known.contains_key(&pid) {
            self.add(pid, stat);
        }
        Ok(())
    }

    /// Follows a process no longer; the next poll reports it as ended.
    pub fn remove_member(&mut self, pid: Pid) {
        let Some(_) = self.known.remove(&pid) else { return };
        let before = self.early.len();
        self.early.retain(|event| !is_start(event, pid));
        if self.early.len() == before {
            self.early.push(Event::Ended(pid));
        }
    }

    pub fn processes(&self) -> impl Iterator<Item = Pid> {
        self.known.keys().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the threads of all processes now; one that has just ended has none.
    pub fn threads(&self) -> u64 {
        let mut buffer = Vec::new();
        let threads = |pid| ProcessStat::read(&self.root, pid, &mut buffer).map_or(0, |stat| stat.threads);
        self.processes().map(threads).map(u64::from).sum()
    }

    /// Appends the events since the last poll. A process that ends meanwhile is no error.
    pub fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), LinuxError> {
        self.find_ended(events)?;
        self.find_changed(events)?;
        let thorough = self.polls.is_multiple_of(THOROUGH);
        if self.children.as_mut().is_some_and(|children| children.may_have_changed(thorough)) {
            self.find_started()?;
        }
        events.append(&mut self.early);
        self.polls = self.polls.wrapping_add(1);
        Ok(())
    }

    /// Polls all descriptors at once for ended processes.
    fn find_ended(&mut self, events: &mut Vec<Event>) -> Result<(), LinuxError> {
        let held = |watched: &Watched| watched.pidfd.as_ref().map(AsRawFd::as_raw_fd);
        let files = self.known.values().filter_map(held);
        let ready = sys::poll(files, Duration::ZERO).map_err(LinuxError::of_call("poll"))?;
        let mut ready = ready.into_iter();
        let early = &mut self.early;
        self.known.retain(|&pid, watched| {
            let ended = watched.pidfd.is_some() && ready.next() == Some(true);
            if ended {
                report_end(pid, early, events);
            }
            !ended
        });
        Ok(())
    }

    /// Looks for exec, and for the end of processes without a descriptor.
    fn find_changed(&mut self, events: &mut Vec<Event>) -> Result<(), LinuxError> {
        let thorough = self.polls.is_multiple_of(THOROUGH);
        let mut ended = Vec::new();
        for (&pid, watched) in &mut self.known {
            match watched.look(&self.root, pid, thorough, &mut self.buffer)? {
                Change::None => {}
                // The program running when its start is reported counts as its first.
                Change::Executed if self.early.iter().any(|event| is_start(event, pid)) => {}
                Change::Executed => events.push(Event::Executed(pid)),
                Change::Ended => ended.push(pid),
            }
        }
        for pid in ended {
            self.known.remove(&pid);
            report_end(pid, &mut self.early, events);
        }
        Ok(())
    }

    fn find_started(&mut self) -> Result<(), LinuxError> {
        let Some(mut children) = self.children.take() else { return Ok(()) };
        let found = children.prepare(&self.root).and_then(|()| self.find_children(&mut children));
        self.children = Some(children);
        found
    }

    fn find_children(&mut self, children: &mut Children) -> Result<(), LinuxError> {
        let mut parents: Vec<Pid> = self.known.keys().copied().chain(self.adopter).collect();
        let mut found = Vec::new();
        while let Some(parent) = parents.pop() {
            found.clear();
            children.of(&self.root, parent, &mut found);
            for &pid in &found {
                if self.known.contains_key(&pid) || Some(pid) == self.adopter {
                    continue;
                }
                match ProcessStat::read(&self.root, pid, &mut self.buffer) {
                    Ok(stat) if !stat.has_ended() && !stat.kernel && !stat.agent => {
                        self.add(pid, stat);
                        parents.push(pid);
                    }
                    Ok(_) | Err(LinuxError::Ended(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, pid: Pid, stat: ProcessStat) {
        let descriptors = self.root.is_real() && self.known.len() < DESCRIPTORS_FOR;
        self.known.insert(pid, Watched::new(&self.root, pid, &stat, descriptors));
        self.early.push(Event::Started { pid, parent: stat.parent });
    }
}

/// Reports an end, or nothing if its start was not reported.
fn report_end(pid: Pid, early: &mut Vec<Event>, events: &mut Vec<Event>) {
    let before = early.len();
    early.retain(|event| !is_start(event, pid));
    if early.len() == before {
        events.push(Event::Ended(pid));
    }
}

fn is_start(event: &Event, pid: Pid) -> bool {
    matches!(event, Event::Started { pid: started, .. } if *started == pid)
}

#[cfg(test)]
mod tests;
