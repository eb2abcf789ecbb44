//! Moves pages of a process to nodes with `move_pages(2)`, in batches and within a rate.
//!
//! A call moves few pages at a time ([`MOVED_AT_ONCE`](isotherm_core::MOVED_AT_ONCE)), because threads wait
//! for pages that are on their way. Batches locate pages first: those in place or gone cost no attempt and no
//! tokens. A batch has one target, since a call with several leaves the rest undone at its first failure. A
//! huge page moves whole by its first address; its others fail with EBUSY in the same call, since the page is
//! isolated by then.

mod batch;
mod options;

use isotherm_core::{Bytes, MoveStatus, Nanos};

use self::batch::{Answer, Batch, Denial};
pub use self::options::{MoverOptions, MoverStatistics, PageMove, Shape, Step};
use super::bucket::TokenBucket;
use super::nodes::{Kernel, MovePages};
use crate::LinuxError;
use crate::process::Pid;

/// Factor by which calls shrink at each retry: a busy page may end a call and hide the pages behind it.
const NARROWING: usize = 8;

#[derive(Debug)]
pub struct Mover<K = Kernel> {
    kernel: K,
    options: MoverOptions,
    bucket: Option<TokenBucket>,
    /// Base pages per call now: halved when memory is short, doubled when a batch succeeds.
    size: usize,
    batch: Batch,
    paused: Nanos,
    /// Node that had no room in this step.
    full: Option<u32>,
    statistics: MoverStatistics,
    said: Vec<Denial>,
    unsaid: Vec<LinuxError>,
}

impl<K: MovePages> Mover<K> {
    /// Returns a mover. The burst is at least a huge page; otherwise none could ever move.
    pub fn new(kernel: K, options: MoverOptions) -> Self {
        let burst = options.burst.max(Bytes(super::HUGE));
        Self {
            kernel,
            bucket: options.rate.map(|rate| TokenBucket::new(rate, burst)),
            size: options.batch.max(1),
            options,
            batch: Batch::default(),
            paused: Nanos(0),
            full: None,
            statistics: MoverStatistics::default(),
            said: Vec::new(),
            unsaid: Vec::new(),
        }
    }

    /// Carries out the `moves` that have no status yet, in order, and appends their statuses.
    ///
    /// Returns [`Step::Wait`] when the rate allows no more now; call again with the same arguments at that
    /// time. `room` is asked to free bytes on a full node; if it returns false, the other moves to that node
    /// are [`MoveStatus::NoRoom`]. An error leaves the moves behind `statuses` undone; after
    /// [`LinuxError::Ended`] they are gone with the process.
    pub fn step(
        &mut self,
        now: Nanos,
        pid: Pid,
        moves: &[PageMove],
        statuses: &mut Vec<MoveStatus>,
        room: &mut dyn FnMut(u32, Bytes) -> bool,
    ) -> Result<Step, LinuxError> {
        (self.paused, self.full) = (Nanos(0), None);
        while statuses.len() < moves.len() {
            let rest = &moves[statuses.len()..];
            let node = rest[0].node;
            let owners = self.batch.load(rest, self.size);
            let located = self.batch.locate(&mut self.kernel, pid, node)?;
            self.deny(located);
            let (admitted, charged) = match self.admit(now, owners) {
                Ok(admitted) => admitted,
                Err(until) => return Ok(Step::Wait { until }),
            };
            self.batch.keep(admitted);
            self.attempt(pid, node, room)?;
            if self.batch.expand_split(&mut self.kernel, pid, node)? {
                self.attempt(pid, node, room)?;
            }
            self.settle(node, admitted, charged, statuses);
        }
        Ok(Step::Done)
    }

    /// Returns each reason why moves were denied, once in the mover's life.
    pub fn denials(&mut self) -> Vec<LinuxError> {
        std::mem::take(&mut self.unsaid)
    }

    pub fn statistics(&self) -> MoverStatistics {
        self.statistics
    }

    pub fn batch_size(&self) -> usize {
        self.size
    }

    /// Returns how many of the batch's moves the rate allows now, and their bytes; or when it allows one.
    fn admit(&mut self, now: Nanos, owners: usize) -> Result<(usize, Bytes), Nanos> {
        let Some(bucket) = &mut self.bucket else { return Ok((owners, Bytes(0))) };
        let (admitted, cost) = self.batch.affordable(owners, bucket.available(now));
        if admitted == 0 {
            let first = self.batch.affordable(1, Bytes(u64::MAX)).1;
            return Err(bucket.ready_at(now, first).unwrap_or(Nanos(u64::MAX)));
        }
        let taken = bucket.take(now, cost);
        debug_assert!(taken, "it was available");
        Ok((admitted, cost))
    }

    /// Tries the batch's open pages until each has a status.
    fn attempt(
        &mut self,
        pid: Pid,
        node: u32,
        room: &mut dyn FnMut(u32, Bytes) -> bool,
    ) -> Result<(), LinuxError> {
        let (mut chunk, mut round, mut requests) = (self.size, 0, 0);
        while self.batch.collect_open() > 0 {
            if self.full == Some(node) {
                self.batch.settle_open(MoveStatus::NoRoom);
                break;
            }
            match self.round(pid, node, chunk)? {
                Answer::Tried if self.batch.collect_open() == 0 => break,
                Answer::Tried => {
                    if round == self.options.retries || !self.pause() {
                        self.batch.settle_open(MoveStatus::Busy);
                        break;
                    }
                    (round, chunk) = (round + 1, (chunk / NARROWING).max(1));
                    self.statistics.retries += 1;
                }
                Answer::NoRoom => {
                    self.size = (self.size / 2).max(1);
                    chunk = chunk.min(self.size);
                    self.batch.collect_open();
                    let wanted = self.batch.open_bytes();
                    requests += 1;
                    if requests > self.options.room_requests || !room(node, wanted) {
                        self.full = Some(node);
                    }
                }
                Answer::Denied(denial) => self.deny(Some(denial)),
            }
        }
        Ok(())
    }

    /// Tries every open page once, in calls of at most `chunk` pages.
    fn round(&mut self, pid: Pid, node: u32, chunk: usize) -> Result<Answer, LinuxError> {
        let open = self.batch.open();
        let mut start = 0;
        while start < open {
            let pages = start..open.min(start + chunk);
            self.statistics.calls += 1;
            let (answer, tried, shared) =
                self.batch.call(&mut self.kernel, pid, node, self.options.shared, pages)?;
            start += tried;
            if shared {
                self.say(Denial::Shared);
            }
            if !matches!(answer, Answer::Tried) {
                return Ok(answer);
            }
        }
        Ok(Answer::Tried)
    }

    /// Pauses before a retry, unless this step's budget is spent.
    fn pause(&mut self) -> bool {
        if self.paused + self.options.pause > self.options.pause_budget {
            return false;
        }
        self.kernel.pause(self.options.pause);
        self.paused += self.options.pause;
        true
    }

    fn deny(&mut self, denial: Option<Denial>) {
        if let Some(denial) = denial {
            self.batch.collect_open();
            self.batch.settle_open(MoveStatus::Denied);
            self.say(denial);
        }
    }

    fn say(&mut self, denial: Denial) {
        if !self.said.contains(&denial) {
            self.said.push(denial);
            self.unsaid.push(denial.error());
        }
    }

    /// Appends the batch's statuses and returns the tokens of moves that failed.
    fn settle(&mut self, node: u32, owners: usize, charged: Bytes, statuses: &mut Vec<MoveStatus>) {
        let moved = self.batch.moved_bytes();
        if let Some(bucket) = &mut self.bucket {
            bucket.put_back(charged - moved);
        }
        let first = statuses.len();
        self.batch.statuses(owners, statuses);
        self.statistics.count(&statuses[first..], moved);
        if moved.0 > 0 && self.full != Some(node) {
            // Demotions from the full node may have made room there.
            self.full = None;
            self.size = (self.size * 2).min(self.options.batch.max(1));
        }
    }
}

#[cfg(test)]
mod tests;
