//! Access source over a [`Scanner`]: a thread that scans, and the results since the last query.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use isotherm_core::{Bytes, Nanos, Sampling, Signal, Signals};

use super::range_set::RangeSet;
use super::sampler::Sampler;
use super::schedule::Schedule;
use super::{Found, Pace, Scanner};
use crate::process::Pid;
use crate::source::{Access, AccessSource, ScannedMapping, SourceStatistics};
use crate::sys::agent;
use crate::{LinuxError, clock};

/// Longest pause of scans beside another source, in intervals.
const MOST_INTERVALS: u64 = 16;
/// Shortest time between two looks at a process that sleeps.
const NAP: Nanos = Nanos(10 * Nanos::MILLISECOND.0);
const MAX_PER_SCAN: u64 = 1 << 16;
/// Maximum accesses kept until the next drain; the rest is lost and counted.
const MAX_KEPT: usize = 1 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanStatistics {
    /// Scans, including the first of each process.
    pub scans: u64,
    pub walked: u64,
    pub referenced: u64,
    /// Accessed pages that could not be told apart from others.
    pub undecided: u64,
    /// Processor time of the scanning thread, and of the kernel's for it.
    pub cpu: Nanos,
    /// Time for which page faults and changes of mappings were blocked.
    pub locked: Nanos,
}

/// Scans accessed bits at a [`Pace`]. The scanning thread starts with the first process and ends with the
/// source.
pub struct BitSource<S: Scanner> {
    scanner: Arc<S>,
    shared: Arc<Shared<S::Target>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

/// State shared by the scanning thread and the engine's thread. The lock is never held during a scan.
struct State<T> {
    schedule: Schedule,
    /// Opened processes, except the one being scanned.
    targets: HashMap<Pid, Target<T>>,
    followed: HashSet<Pid>,
    marks: HashMap<Pid, RangeSet>,
    sampler: Sampler,
    accesses: Vec<Access>,
    /// Whether another source delivers the accesses, and the mappings of the last scans if so.
    beside: bool,
    mappings: Vec<ScannedMapping>,
    failure: Option<LinuxError>,
    sums: ScanStatistics,
    statistics: SourceStatistics,
    stop: bool,
}

struct Target<T> {
    inner: T,
    /// Start of the last scan, and the program's processor time by then; `None` before the first.
    scanned: Option<(Nanos, Nanos)>,
    /// Intervals until the next scan: more and more where all mappings are in use.
    intervals: u64,
}

impl<T> Target<T> {
    /// Whether the process has had no processor time since its last scan began: then it has accessed nothing.
    fn has_slept(&self, used: Nanos) -> bool {
        used.0 > 0 && self.scanned.is_some_and(|(_, before)| before == used)
    }
}

impl<S: Scanner> BitSource<S> {
    pub fn new(scanner: S, pace: Pace) -> Self {
        Self::open(scanner, pace, false)
    }

    /// Makes a source that stands beside another one and delivers mappings in place of accesses.
    pub fn beside(scanner: S, pace: Pace) -> Self {
        Self::open(scanner, pace, true)
    }

    fn open(scanner: S, pace: Pace, beside: bool) -> Self {
        let state = State {
            schedule: Schedule::new(pace),
            targets: HashMap::new(),
            followed: HashSet::new(),
            marks: HashMap::new(),
            sampler: Sampler::new(MAX_PER_SCAN),
            accesses: Vec::new(),
            beside,
            mappings: Vec::new(),
            failure: None,
            sums: ScanStatistics::default(),
            statistics: SourceStatistics::default(),
            stop: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        Self { scanner: Arc::new(scanner), shared, thread: None }
    }

    pub fn scans(&self) -> ScanStatistics {
        self.shared.lock().sums
    }

    /// Returns whether the process is followed and has not ended, as far as scans have seen.
    pub fn follows(&self, process: Pid) -> bool {
        self.shared.lock().followed.contains(&process)
    }

    fn start(&mut self) -> Result<(), LinuxError> {
        if self.thread.is_none() {
            let (scanner, shared) = (Arc::clone(&self.scanner), Arc::clone(&self.shared));
            let thread = std::thread::Builder::new()
                .name("isotherm-bits".to_owned())
                .spawn(move || shared.run(&*scanner))
                .map_err(|error| LinuxError::Call { call: "clone", error })?;
            self.thread = Some(thread);
        }
        Ok(())
    }
}

impl<S: Scanner> AccessSource for BitSource<S> {
    fn name(&self) -> &'static str {
        self.scanner.name()
    }

    fn offers(&self) -> Signals {
        match self.shared.lock().beside {
            true => Signals::NONE,
            false => Signals::NONE.with(Signal::LoadSamples).with(Signal::AccessedBits),
        }
    }

    fn follow(&mut self, process: Pid) -> Result<(), LinuxError> {
        if self.follows(process) {
            return Ok(());
        }
        let inner = self.scanner.open(process)?;
        self.start()?;
        let mut state = self.shared.lock();
        state.targets.insert(process, Target { inner, scanned: None, intervals: 1 });
        state.followed.insert(process);
        state.schedule.add(process, clock::monotonic());
        self.shared.changed.notify_one();
        Ok(())
    }

    fn forget(&mut self, process: Pid) {
        self.shared.lock().forget(process);
    }

    fn request(&mut self, sampling: &Sampling) -> Result<(), LinuxError> {
        let mut state = self.shared.lock();
        state.sampler.rate = sampling.rate;
        state.schedule.limit(sampling.share());
        Ok(())
    }

    fn drain(&mut self, accesses: &mut Vec<Access>) -> Result<(), LinuxError> {
        let mut state = self.shared.lock();
        accesses.append(&mut state.accesses);
        state.failure.take().map_or(Ok(()), Err)
    }

    fn accessed(
        &mut self,
        process: Pid,
        ranges: &[Range<u64>],
        answers: &mut Vec<bool>,
    ) -> Result<(), LinuxError> {
        let mut state = self.shared.lock();
        match state.marks.get_mut(&process) {
            Some(marks) => answers.extend(ranges.iter().map(|range| marks.remove(range))),
            None => answers.extend(ranges.iter().map(|_| false)),
        }
        Ok(())
    }

    fn mappings(&mut self, mappings: &mut Vec<ScannedMapping>) {
        mappings.append(&mut self.shared.lock().mappings);
    }

    fn statistics(&self) -> SourceStatistics {
        let state = self.shared.lock();
        let marks: usize = state.marks.values().map(RangeSet::len).sum();
        let memory = marks * 2 * size_of::<u64>()
            + state.accesses.capacity() * size_of::<Access>()
            + state.mappings.capacity() * size_of::<ScannedMapping>();
        SourceStatistics {
            foreign: state.sums.undecided,
            agent_cpu: state.sums.cpu,
            memory: Bytes(memory as u64),
            ..state.statistics
        }
    }
}

impl<S: Scanner> Drop for BitSource<S> {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there was printed when it happened.
            let _ = thread.join();
        }
    }
}

/// Returns whether the mapping is large and few of its pages were accessed.
fn may_be_idle((_, present, referenced): &(Range<u64>, u64, u64)) -> bool {
    *present >= 1024 && referenced * 8 < *present
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // The state is consistent between statements; a thread that panicked leaves it usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run<S: Scanner<Target = T>>(&self, scanner: &S) {
        let mut found = Found::default();
        while let Some((process, mut target)) = self.wait() {
            // Before the scan: a process that ends during it takes no more time afterwards.
            let used = Nanos(agent::processor_time(process.0));
            if target.has_slept(used) {
                self.lock().put_off(process, target);
                continue;
            }
            found.clear();
            let (began, cpu) = (clock::monotonic(), clock::thread_cpu());
            let outcome = scanner.scan(&mut target.inner, &mut found);
            let cost = clock::thread_cpu() - cpu;
            self.lock().publish((process, used), target, (began, cost), outcome.map(|()| &found));
        }
    }

    /// Waits until a process is due and takes it out; `None` if the source is gone.
    fn wait(&self) -> Option<(Pid, Target<T>)> {
        let mut state = self.lock();
        while !state.stop {
            let Some((process, due)) = state.schedule.next() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = due - clock::monotonic();
            if left.0 == 0 {
                if let Some(target) = state.targets.remove(&process) {
                    return Some((process, target));
                }
                state.schedule.remove(process);
            } else {
                let time = Duration::from_nanos(left.0);
                state = self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        None
    }
}

impl<T> State<T> {
    fn forget(&mut self, process: Pid) {
        self.schedule.remove(process);
        self.targets.remove(&process);
        self.followed.remove(&process);
        self.marks.remove(&process);
    }

    /// Puts a process's scan off by an interval, or a nap where that is shorter.
    fn put_off(&mut self, process: Pid, target: Target<T>) {
        self.schedule.scanned(process, clock::monotonic() + NAP, (Nanos(0), Nanos(0)), target.intervals);
        self.keep(process, target);
    }

    /// Keeps a target until its next turn. One that was forgotten meanwhile is dropped; if it was followed
    /// again since, the newer one stays.
    fn keep(&mut self, process: Pid, target: Target<T>) {
        if self.followed.contains(&process) {
            self.targets.entry(process).or_insert(target);
        }
    }

    fn publish(
        &mut self,
        (process, used): (Pid, Nanos),
        mut target: Target<T>,
        (began, cost): (Nanos, Nanos),
        outcome: Result<&Found, LinuxError>,
    ) {
        self.sums.scans += 1;
        self.sums.cpu += cost;
        // Beside another source, what the program may wait for counts as lost.
        let waits = |found: &Found| if self.beside { found.locked } else { Nanos(0) };
        let program = outcome.as_ref().map_or(Nanos(0), |found| found.program_time + waits(found));
        if self.beside && target.scanned.is_some() {
            let useful = outcome.as_ref().is_ok_and(|found| found.mappings.iter().any(may_be_idle));
            target.intervals = if useful { 1 } else { (2 * target.intervals).min(MOST_INTERVALS) };
        }
        self.schedule.scanned(process, began, (cost, program), target.intervals);
        match outcome {
            Ok(found) => {
                self.sums.cpu += found.kernel_cpu;
                self.sums.walked += found.walked;
                self.sums.referenced += found.referenced;
                self.sums.undecided += found.undecided;
                self.sums.locked += found.locked;
                self.statistics.program_time += found.program_time + found.lost_to_kernel;
                if let Some((before, used_before)) = target.scanned
                    && self.followed.contains(&process)
                {
                    if self.beside {
                        self.deliver_mappings(process, used - used_before, found);
                    } else {
                        self.deliver(process, before, began, found);
                    }
                }
            }
            Err(LinuxError::Ended(_)) => self.forget(process),
            Err(error) => {
                self.forget(process);
                self.failure = Some(error);
            }
        }
        target.scanned = Some((began, used));
        self.keep(process, target);
    }

    /// Keeps the mappings of the process's last scan only.
    fn deliver_mappings(&mut self, process: Pid, exposed: Nanos, found: &Found) {
        self.mappings.retain(|mapping| mapping.process != process);
        self.mappings.extend(found.mappings.iter().map(|(range, present, referenced)| ScannedMapping {
            process,
            range: range.clone(),
            present: *present,
            referenced: *referenced,
            exposed,
        }));
    }

    fn deliver(&mut self, process: Pid, before: Nanos, began: Nanos, found: &Found) {
        let marks = self.marks.entry(process).or_default();
        found.accessed.iter().for_each(|range| marks.insert(range));
        let kept = self.accesses.len();
        self.sampler.sample((process, began, began - before), &found.pages, &found.heat, &mut self.accesses);
        let fits = self.accesses.len().min(MAX_KEPT.max(kept));
        self.statistics.lost += (self.accesses.len() - fits) as u64;
        self.statistics.delivered += (fits - kept) as u64;
        self.accesses.truncate(fits);
    }
}

#[cfg(test)]
mod tests;
