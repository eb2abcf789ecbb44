//! Defines the live host: running programs as the engine sees them.
//!
//! The host follows processes, numbers the memory that they map (`numbers`), keeps where each page is (`residency`, `memory`)
//! and turns what the access sources saw into the engine's batches (`feed`). With *shadow* tiers samples are real and
//! residency is virtual: nothing moves. Otherwise the kernel carries plans out. The programs run on while the engine works:
//! nothing here stops them.
//!
//! - A policy's time is `CLOCK_MONOTONIC` since the host was made, or the time of the source that has its own; sources and processes
//!   are looked at by `CLOCK_MONOTONIC` alone.
//! - The policy's own work takes the time that it takes; [`Plan::sleep`] delays the next delivery.
//! - Where the hardware does not count hits of tiers, they are summed over samples; while a policy has switched sampling off,
//!   it goes on at a sixteenth of the rate for that alone, and those samples are not delivered.
//! - Where nothing counts the tiers' queues, their occupancy may follow from samples by Little's law ([`CounterOrigin`]).
//! - Copies are the kernel's: [`isotherm_core::Copying::Transactional`] moves exist in shadow mode only, where nothing is copied.

mod choice;
mod feed;
mod growth;
mod heat;
pub mod kernel;
mod memory;
mod options;
mod page_numbering;
mod poisson_mixture;
pub mod program;
mod queues;
mod residency;
mod scan;
mod summary;
pub mod tiers;
mod view;

use std::ops::Range;
use std::time::Duration;

use isotherm_core::{
    Allocation, Bytes, Gauge, Host, Nanos, Outcome, PageId, Pages, Plan, SampleBatch, Sampling, Signal,
    Signals, TierId, View, Work,
};

pub use choice::{Candidate, ChoiceError, choose, offers, remedy};
use feed::Feed;
use growth::Growth;
pub use heat::{HotPages, HotSet, HotShare, MemoryRange};
use isotherm_linux::LinuxError;
use isotherm_linux::clock;
use isotherm_linux::process::Pid;
use isotherm_linux::source::AccessSource;
use memory::Memory;
pub use memory::{AddressSpaces, PresentRun};
pub use options::{FastLimit, FastLimitError, Options, Tier};
pub use queues::CounterOrigin;
use scan::Scanner;
use summary::Recorder;
pub use summary::{EngineUse, Moment, Refused, SourceUse, Summary, TierUse, Traffic};

/// How often sources and processes are looked at: the buffers must hold what comes meanwhile.
const POLL: Nanos = Nanos(10 * Nanos::MILLISECOND.0);
/// The same while sources deliver less than [`BUSY`] accesses in that time, and the policy steps less often too.
const QUIET_POLL: Nanos = Nanos(40 * Nanos::MILLISECOND.0);
/// Accesses of one look from which on the next one comes soon.
const BUSY: usize = 512;
/// What has changed by less than this part has not changed.
const STEADY: u64 = 100;
/// The share of a processor for looking at what is mapped, where that costs the programs no time on the source's clock.
const BESIDE_TIME_BUDGET: f64 = 0.1;

/// What happened to the processes that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEvent {
    /// A process appeared.
    Started(Pid),
    /// It executed another program: its old memory is gone.
    Executed(Pid),
    /// It ended.
    Ended(Pid),
}

/// The processes of a run.
pub trait Processes: Send {
    /// Appends what happened since the last call. Returns false when no process is left, or the run was asked to end.
    fn update(&mut self, events: &mut Vec<ProcessEvent>) -> bool;

    /// Lets time pass, less if the run ends meanwhile.
    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    /// What went wrong in the last update.
    fn warning(&mut self) -> Option<LinuxError> {
        None
    }
}

/// Why the engine stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// The programs have ended, or the run was asked to end.
    Ended,
    /// The memory in use has outgrown what the policy was sized for: it should be built anew.
    Outgrown,
    /// Another policy takes over ([`LiveHost::replace_policy`]).
    Replaced,
}

/// Running programs under the engine.
pub struct LiveHost {
    options: Options,
    memory: Memory,
    feed: Feed,
    processes: Box<dyn Processes>,
    followed: Vec<Pid>,
    /// Those whose name was not asked for yet.
    unnamed: Vec<Pid>,
    /// Those that have ended, and whose memory is known until the next scan: if all end together, the summary has it.
    ended: Vec<Pid>,
    scanner: Scanner,
    recorder: Recorder,
    growth: Growth,
    /// When sources and processes are looked at again.
    next_look: Nanos,
    /// The time between the last look and the next.
    between: Nanos,
    /// The policy's thread rests until then.
    resume: Nanos,
    pause: Option<Pause>,
    events: Vec<ProcessEvent>,
    ranges: Vec<Range<u64>>,
    accessed: Vec<bool>,
}

impl LiveHost {
    /// A host over the sources, whose processes are those that `processes` tells of.
    pub fn new(
        options: Options,
        sources: Vec<Box<dyn AccessSource>>,
        spaces: Box<dyn AddressSpaces>,
        processes: Box<dyn Processes>,
    ) -> Self {
        Self {
            memory: Memory::new(&options, spaces),
            feed: Feed::new(sources, &options),
            processes,
            followed: Vec::new(),
            unnamed: Vec::new(),
            ended: Vec::new(),
            scanner: Scanner::default(),
            recorder: Recorder::new(options.inside.is_some()),
            growth: Growth::default(),
            next_look: Nanos(0),
            between: POLL,
            resume: Nanos(0),
            pause: None,
            events: Vec::new(),
            ranges: Vec::new(),
            accessed: Vec::new(),
            options,
        }
    }

    /// Lets the programs run without a policy until their memory has stopped growing, at most `patience`: what the policy is
    /// then sized by. Returns false if they ended meanwhile.
    pub fn settle(&mut self, patience: Duration) -> bool {
        let deadline = self.recorder.now() + Nanos(patience.as_nanos() as u64);
        let mut before = 0;
        while self.recorder.now() < deadline {
            for _ in 0..10 {
                std::thread::sleep(patience / 100);
                if !self.follow_processes() {
                    return false;
                }
            }
            self.scan();
            let mapped = self.memory.residency.mapped().0;
            if self.growth.settles(before, mapped) {
                break;
            }
            before = mapped;
        }
        true
    }

    /// Whether memory that has outgrown the policy ends a run of the engine ([`Pause::Outgrown`]); it does in any case where the
    /// fast tier's limit is a share of it.
    pub fn resize_policy(&mut self, resizes: bool) {
        self.growth.resizes = resizes;
    }

    /// The fast tier's size now.
    pub fn fast(&self) -> Pages {
        self.memory.residency.capacity(TierId::FAST)
    }

    /// What is mapped now.
    pub fn footprint(&self) -> Pages {
        self.memory.residency.mapped()
    }

    /// Why the engine stopped. The host goes on when the engine is started again.
    pub fn pause(&mut self) -> Pause {
        self.pause.take().unwrap_or(Pause::Ended)
    }

    /// Stops the engine at its next step, unless the run has ended by then, for another policy to take over.
    pub fn replace_policy(&mut self) {
        self.pause.get_or_insert(Pause::Replaced);
    }

    /// Has the sources watch nothing, or again what the policy asked for. Until then the engine is to [`Self::idle`].
    pub fn suspend(&mut self, suspended: bool) {
        self.feed.suspend(suspended);
    }

    /// Whether sources watch nothing.
    pub fn suspended(&self) -> bool {
        self.feed.suspended()
    }

    /// Follows the programs for a while: memory is not looked at, and nothing moves. Returns false when the run is over.
    pub fn idle(&mut self, time: Duration) -> bool {
        self.processes.wait(time);
        // What was under way when the sources were told.
        self.feed.drain();
        self.follow_processes()
    }

    /// A policy starts that is sized for the memory as it is now.
    pub fn begin_policy(&mut self, allocation: Allocation) {
        self.memory.begin_policy(allocation);
    }

    /// Takes what the engine's last step left: the policy's memory and gauges.
    pub fn note(&mut self, metadata: Bytes, fill: impl FnOnce(&mut Vec<Gauge>)) {
        self.recorder.note(metadata, &self.memory, &self.feed.counters, fill);
    }

    /// What came of the run so far.
    pub fn summary(&mut self) -> Summary {
        let Self { recorder, memory, feed, options, .. } = self;
        recorder.summary(memory, options, feed)
    }

    /// Returns false when the run is over. What the last processes held stays known, for the summary.
    fn follow_processes(&mut self) -> bool {
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let running = self.processes.update(&mut events);
        if let Some(warning) = self.processes.warning() {
            self.feed.warning(warning.to_string());
        }
        for &event in &events {
            match event {
                ProcessEvent::Started(process) => {
                    self.recorder.processes += 1;
                    self.start(process);
                }
                ProcessEvent::Executed(process) => {
                    self.growth.restart();
                    self.end(process);
                    self.start(process);
                }
                ProcessEvent::Ended(process) if running => self.end(process),
                // Its source may still hold what it saw last.
                ProcessEvent::Ended(_) => {}
            }
        }
        self.events = events;
        running
    }

    fn start(&mut self, process: Pid) {
        self.between = POLL;
        self.followed.push(process);
        self.unnamed.push(process);
        self.scanner.soon();
        self.feed.each(|source| source.follow(process));
    }

    fn end(&mut self, process: Pid) {
        self.followed.retain(|&followed| followed != process);
        self.unnamed.retain(|&unnamed| unnamed != process);
        self.feed.sources.iter_mut().for_each(|source| source.forget(process));
        self.ended.push(process);
    }

    /// Looks at which pages are mapped, and keeps the fast tier within its limit.
    fn scan(&mut self) {
        let start = clock::thread_cpu();
        let before = self.memory.residency.mapped().0;
        self.memory.expire(self.recorder.now());
        // Before anything is numbered: a process that starts is scanned at once, and may have the number of one that ended.
        self.ended.drain(..).for_each(|process| self.memory.forget(process, &mut self.recorder));
        for process in self.unnamed.drain(..) {
            self.memory.name(process).into_iter().for_each(|name| self.recorder.named(name));
        }
        for &process in &self.followed {
            let mut hidden = self.feed.hidden(process);
            hidden.extend(self.options.inside.iter().flatten().cloned());
            match self.memory.scan(process, &hidden, &mut self.recorder) {
                Ok(()) | Err(LinuxError::Ended(_)) => {}
                Err(error) => self.feed.warning(error.to_string()),
            }
        }
        self.memory.enforce(&mut self.recorder);
        self.recorder.age(self.memory.residency.mapped());
        self.memory.warnings().iter().for_each(|warning| self.feed.warning(warning.to_string()));
        let cost = clock::thread_cpu() - start;
        let beside = self.feed.clock().map(|_| BESIDE_TIME_BUDGET);
        let (budget, shortest) = (beside.unwrap_or(self.options.scan_budget), self.options.scan_interval);
        let mapped = self.memory.residency.mapped().0;
        let changed = mapped.abs_diff(before) > mapped / STEADY;
        self.scanner.done(self.recorder.now(), cost, budget, shortest, changed);
    }

    /// One look at processes, memory and sources. Returns false when the run is over.
    fn poll(&mut self) -> bool {
        let running = self.follow_processes();
        if running && self.scanner.due(self.recorder.now()) {
            let before = self.footprint().0;
            self.scan();
            let times = self.growth.bound(before, self.footprint().0);
            if (self.growth.resizes || self.memory.limit_follows()) && self.memory.outgrown(times) {
                self.pause = Some(Pause::Outgrown);
            }
        }
        // What waits is taken first: a policy that cannot follow sees recent accesses, and the source counts what it loses.
        let delivered = if self.feed.is_behind() { BUSY } else { self.feed.drain() };
        // A policy that steps often sees each time what is new.
        let quiet = QUIET_POLL.min(self.feed.batch().1.max(POLL));
        self.between = if delivered < BUSY { quiet.min(self.between + self.between) } else { POLL };
        self.next_look = self.recorder.now() + self.between;
        if !running {
            self.pause = Some(Pause::Ended);
        }
        running
    }

    /// Arms the pages of a plan, process by process.
    fn arm(&mut self, pages: &[PageId]) {
        self.memory.arm(pages, self.recorder.now());
        let mut addresses = Vec::new();
        let mut owner = None;
        for &page in pages {
            let Some((process, address)) = self.memory.numbers.address(page) else { continue };
            if owner.is_some_and(|owner| owner != process) {
                self.arm_addresses(owner, &mut addresses);
            }
            owner = Some(process);
            addresses.push(address);
        }
        self.arm_addresses(owner, &mut addresses);
    }

    fn arm_addresses(&mut self, owner: Option<Pid>, addresses: &mut Vec<u64>) {
        if let Some(process) = owner {
            let hints = |source: &dyn AccessSource| source.offers().has(Signal::HintFaults);
            self.feed.each(|source| if hints(source) { source.arm(process, addresses) } else { Ok(()) });
        }
        addresses.clear();
    }

    /// Asks for the accessed bits of pages of one process.
    fn accessed_bits(&mut self, process: Pid, ranges: &[Range<u64>], answers: &mut Vec<bool>) {
        let asked = answers.len() + ranges.len();
        let mut done = false;
        self.feed.each(|source| {
            if done || !source.offers().has(Signal::AccessedBits) {
                return Ok(());
            }
            done = true;
            source.accessed(process, ranges, answers)
        });
        answers.resize(asked, false);
    }
}

impl Host for LiveHost {
    fn offers(&self) -> Signals {
        offers(&self.feed.sources, self.feed.origin, self.options.shadow, self.memory.reclaims())
    }

    fn remedy(&self, missing: Signal) -> String {
        choice::remedy(missing).into()
    }

    fn view(&mut self) -> &mut dyn View {
        self
    }

    fn now(&self) -> Nanos {
        self.feed.clock().unwrap_or_else(|| self.recorder.now())
    }

    fn sample(&mut self, request: Sampling) {
        self.feed.request(request);
    }

    fn advance(&mut self, batch: &mut SampleBatch) -> bool {
        batch.samples.clear();
        batch.faults.clear();
        let (full, tick) = self.feed.batch();
        // The tick of a policy that is scaled to a small program may be shorter than anything here can change.
        let deadline = (self.now() + tick.max(POLL)).max(self.resume);
        loop {
            let looked = self.pause.is_none() && self.recorder.now() < self.next_look;
            let running = looked || self.poll();
            self.feed.fill(batch, full, &mut self.memory, &mut self.recorder);
            let now = self.now();
            let filled = batch.samples.len() + batch.faults.len() >= full && now >= self.resume;
            if !running || self.pause.is_some() || filled || now >= deadline {
                self.feed.finish(batch, &self.memory, now);
                return self.pause.is_none();
            }
            let mut wait = self.next_look - self.recorder.now();
            if self.feed.clock().is_none() {
                wait = wait.min(deadline - now);
            }
            self.processes.wait(Duration::from_nanos(wait.0));
        }
    }

    fn spend(&mut self, _work: Work, _metadata: Bytes, sleep: Nanos) {
        self.resume = self.now() + sleep;
    }

    fn carry_out(&mut self, plan: &Plan, outcome: &mut Outcome) {
        for reclaim in &plan.reclaim {
            let freed = self.memory.reclaim(reclaim.from, reclaim.pages, &mut self.recorder);
            outcome.reclaimed.push(freed);
        }
        self.memory.migrate(&plan.moves, &mut outcome.moves, &mut self.recorder);
        self.arm(&plan.arm);
        if let Some(request) = plan.device {
            self.feed.each(|source| source.command(request));
        }
    }
}
