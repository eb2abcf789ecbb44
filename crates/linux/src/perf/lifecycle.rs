//! Learns of forks, exits and execs of observed tasks, by events that count nothing and report these.

use std::collections::HashSet;
use std::io;

use super::open::explain_ring;
use super::record::{Change, Content, Record, word};
use super::ring::Ring;
use super::sys::{Attr, Event, flag, kind, sample, software};
use super::tasks::Tasks;
use crate::LinuxError;

/// Pages of a ring: room for 4,000 forks on one processor between two drains.
const PAGES: usize = 64;

#[derive(Debug)]
pub(crate) struct Lifecycle {
    rings: Vec<Ring>,
    /// Time, event, change.
    changes: Vec<(u64, u64, Change)>,
}

/// Returns the attribute of the reports, whose records end in a `struct sample_id` of time and event number.
fn attr() -> Attr {
    Attr {
        kind: kind::SOFTWARE,
        config: software::DUMMY,
        sample_type: sample::TIME | sample::IDENTIFIER,
        flags: flag::INHERIT
            | flag::TASK
            | flag::COMM
            | flag::COMM_EXEC
            | flag::SAMPLE_ID_ALL
            | flag::EXCLUDE_KERNEL
            | flag::EXCLUDE_HYPERVISOR,
        ..Attr::default()
    }
}

fn origin(record: &Record<'_>) -> Option<(u64, u64)> {
    let time = word(record.body, record.body.len().checked_sub(16)?)?;
    Some((time, record.identifier()?))
}

impl Lifecycle {
    pub(crate) fn new(cpus: &[u32]) -> Result<Self, LinuxError> {
        let ring = |&cpu| Ring::new(cpu, PAGES).map_err(|error| explain_ring(error, PAGES));
        Ok(Self { rings: cpus.iter().map(ring).collect::<Result<_, _>>()?, changes: Vec::new() })
    }

    pub(crate) fn open(&self, tid: u32) -> io::Result<(Vec<Event>, Vec<u64>)> {
        let events = self.rings.iter().map(|ring| ring.open(&attr(), tid)).collect::<io::Result<Vec<_>>>()?;
        let ids = events.iter().map(Event::id).collect::<io::Result<_>>()?;
        Ok((events, ids))
    }

    /// Applies the changes since the last call. New processes are no longer muted.
    pub(crate) fn apply<R>(&mut self, tasks: &mut Tasks<R>, muted: &mut HashSet<u32>) {
        self.read(tasks);
        for (_, id, change) in self.changes.drain(..) {
            match change {
                Change::Fork(task) => {
                    if task.pid != task.parent_pid {
                        muted.remove(&task.pid);
                    }
                    tasks.forked(id, task);
                }
                Change::Exit(task) => tasks.exited(task.tid),
                Change::Exec(pid, tid) => tasks.executed(id, pid, tid),
            }
        }
    }

    fn read<R>(&mut self, tasks: &mut Tasks<R>) {
        for ring in &mut self.rings {
            let changes = &mut self.changes;
            ring.drain(|record| match record.content() {
                Content::Change(change) => {
                    changes.extend(origin(&record).map(|(time, id)| (time, id, change)));
                }
                Content::Lost(_) => tasks.distrust(),
                _ => {}
            });
        }
        self.changes.sort_by_key(|&(time, ..)| time);
    }

    pub(crate) fn memory(&self) -> u64 {
        self.rings.iter().map(Ring::memory).sum()
    }
}
