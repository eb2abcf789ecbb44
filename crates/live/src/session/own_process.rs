//! The engine's own process, as the one process of a session.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use isotherm_linux::process::{Pid, ProcRoot, ProcessStat};

use crate::host::{ProcessEvent, Processes};

const UPDATES_PER_CHECK: u32 = 25;
/// Threads of a process at its end: the main thread and the engine's.
const THREADS_AT_END: u32 = 2;

/// This process until it is asked to end or has no threads but the engine's.
pub(super) struct OwnProcess {
    root: ProcRoot,
    pid: Pid,
    reported: bool,
    ending: &'static AtomicBool,
    updates: u32,
}

impl OwnProcess {
    pub(super) fn new(root: ProcRoot, pid: Pid, ending: &'static AtomicBool) -> Self {
        Self { root, pid, reported: false, ending, updates: 0 }
    }

    fn is_alone(&mut self) -> bool {
        self.updates = (self.updates + 1) % UPDATES_PER_CHECK;
        self.updates == 0
            && ProcessStat::read(&self.root, self.pid, &mut Vec::new())
                .is_ok_and(|stat| stat.state == b'Z' && stat.threads <= THREADS_AT_END)
    }
}

impl Processes for OwnProcess {
    fn update(&mut self, events: &mut Vec<ProcessEvent>) -> bool {
        if !std::mem::replace(&mut self.reported, true) {
            events.push(ProcessEvent::Started(self.pid));
        }
        !self.ending.load(Relaxed) && !self.is_alone()
    }

    /// Whoever sets `ending` unparks this thread.
    fn wait(&mut self, time: Duration) {
        if !self.ending.load(Relaxed) {
            std::thread::park_timeout(time);
        }
    }

    fn threads(&self) -> Option<u64> {
        let stat = ProcessStat::read(&self.root, self.pid, &mut Vec::new()).ok()?;
        Some(stat.threads.saturating_sub(1).into())
    }
}

/// Returns the program and its arguments, or the process's number if it hides them.
pub(super) fn command_line(root: &ProcRoot, pid: Pid) -> Vec<String> {
    let mut text = Vec::new();
    if root.read(pid, "cmdline", &mut text).is_err() || text.is_empty() {
        return vec![pid.0.to_string()];
    }
    let parts = text.strip_suffix(&[0]).unwrap_or(&text).split(|&byte| byte == 0);
    parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}
