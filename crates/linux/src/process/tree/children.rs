//! Finds children: from `task/TID/children`, or each process's parent without CONFIG_PROC_CHILDREN.

use std::collections::HashMap;
use std::fs;

use super::super::{Load, Pid, ProcRoot, ProcessStat};
use crate::LinuxError;

#[derive(Debug)]
pub(super) struct Children {
    /// Whether the kernel lists them.
    listed: bool,
    /// Each parent's children, where it does not.
    by_parent: HashMap<Pid, Vec<Pid>>,
    /// Kept open: a read costs a fraction of an open.
    load: Load,
    /// Last number given out, as of the last look.
    last: Option<u64>,
    /// Remaining polls that look, since a list can miss an entry while it changes.
    pending: u8,
    buffer: Vec<u8>,
}

impl Children {
    pub(super) fn new(root: &ProcRoot, first: Pid) -> Self {
        let list = root.file(first, &format!("task/{}/children", first.0));
        Self {
            listed: list.exists(),
            by_parent: HashMap::new(),
            load: Load::new(root),
            last: None,
            pending: 0,
            buffer: Vec::new(),
        }
    }

    /// Returns whether the kernel has given out a process number since (`proc_loadavg(5)`).
    pub(super) fn may_have_changed(&mut self, thorough: bool) -> bool {
        let last = self.load.last_process();
        let same = last.is_some() && last == self.last;
        self.last = last;
        self.pending = if same { self.pending.saturating_sub(1) } else { 2 };
        thorough || self.pending > 0
    }

    /// Reads what [`Self::of`] needs.
    pub(super) fn prepare(&mut self, root: &ProcRoot) -> Result<(), LinuxError> {
        if self.listed {
            return Ok(());
        }
        self.by_parent.clear();
        let entries = fs::read_dir(root.path()).map_err(|error| LinuxError::file(root.path(), error))?;
        for entry in entries.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()).map(Pid) else {
                continue;
            };
            match ProcessStat::read(root, pid, &mut self.buffer) {
                Ok(stat) => self.by_parent.entry(stat.parent).or_default().push(pid),
                Err(LinuxError::Ended(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn of(&mut self, root: &ProcRoot, parent: Pid, children: &mut Vec<Pid>) {
        if !self.listed {
            children.extend(self.by_parent.get(&parent).into_iter().flatten());
            return;
        }
        // Each thread has its own.
        let Ok(threads) = fs::read_dir(root.file(parent, "task")) else { return };
        for thread in threads.flatten() {
            let Some(name) = thread.file_name().to_str().map(|name| format!("task/{name}/children")) else {
                continue;
            };
            if root.read(parent, &name, &mut self.buffer).is_ok() {
                let words = self.buffer.split(|&byte| byte == b' ');
                let numbers = words.filter_map(|word| std::str::from_utf8(word).ok()?.trim().parse().ok());
                children.extend(numbers.map(Pid));
            }
        }
    }
}
