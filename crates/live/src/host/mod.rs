//! The live host: running programs as the engine sees them.
//!
//! [`LiveHost`] implements the engine's loop over three interfaces, so that tests can replace this machine:
//! [`AccessSource`], [`AddressSpaces`] and [`Processes`].
//!
//! | step | module |
//! |---|---|
//! | samples arrive, get page numbers and form a batch | `feed`, with the queues' model in `feed::queues` |
//! | mapped pages are numbered, located and moved | `tiered_memory` (`page_numbering`, `residency`) |
//! | the policy reads tiers and pages | `view` |
//! | the next scan and the policy's size are decided | `scan_schedule`, `growth` |
//! | samples are kept for a policy that takes over | `lessons` |
//! | accesses and moves are counted | `tally` |
//! | samples become estimates with intervals | `evidence` |
//! | counts become timeline, hot set and summary | `record` |
//! | the program's time and what tiering takes of it | `costs` |
//! | a share of the machine among several hosts, and reports for it | `share` |
//! | offered signals, and remedies for missing ones | `signals` |
//!
//! In *shadow* mode samples are real and residency is virtual: nothing moves. Otherwise the kernel carries
//! plans out. The programs run on while the engine works: nothing here stops them.
//!
//! - A policy's time is `CLOCK_MONOTONIC` since the host was made, or the time of a source with its own
//!   clock; sources and processes are polled by `CLOCK_MONOTONIC` alone.
//! - The policy's own work takes real time; [`Plan::sleep`] delays the next delivery.
//! - Hits of tiers that the hardware does not count are summed over samples. While a policy has switched
//!   sampling off, sampling goes on at a sixteenth of the rate for that purpose, and those samples are not
//!   delivered.
//! - Occupancy of the tiers' queues that nothing counts may follow from samples by Little's law
//!   ([`isotherm_core::live_result::CounterOrigin`]).
//! - The kernel copies pages: [`isotherm_core::Copying::Transactional`] moves exist in shadow mode only,
//!   where nothing is copied.

mod costs;
mod evidence;
mod feed;
mod growth;
mod lessons;
mod options;
mod processes;
mod record;
mod scan_schedule;
mod share;
mod signals;
mod tally;
mod tiered_memory;
mod view;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use isotherm_core::live_result::{Estimate, Summary};
use isotherm_core::machine_status::MappingStatus;
use isotherm_core::{
    Allocation, Bytes, FastLimit, Gauge, Host, MoveStatus, Nanos, Outcome, PageId, Pages, Plan, Policy,
    SampleBatch, Sampling, Signal, Signals, Spent, TierId, View, Work,
};
use isotherm_linux::LinuxError;
use isotherm_linux::clock;
use isotherm_linux::process::{Load, Pid, ProcRoot};
use isotherm_linux::source::{AccessSource, SourceStatistics};
use isotherm_shares::Curve;

use costs::{Costs, Modelled};
use feed::Feed;
use growth::Growth;
use lessons::Lessons;
pub use options::{Options, Tier};
pub use processes::{ProcessEvent, Processes};
use record::{Known, Recorder};
use scan_schedule::ScanSchedule;
pub use share::{HostReport, ProcessReport, Share, TierReport};
pub use signals::{counter_origin, offers, remedy};
use tiered_memory::TieredMemory;
pub use tiered_memory::{AddressSpaces, PresentRun};

/// Time between two polls of sources and processes: the sources' buffers must last that long.
const POLL: Nanos = Nanos(10 * Nanos::MILLISECOND.0);
/// The same while sources deliver less than [`BUSY`] accesses per poll and the policy steps less often too.
const QUIET_POLL: Nanos = Nanos(40 * Nanos::MILLISECOND.0);
/// The same while the programs sleep. The policy then decides no oftener.
const SLEEPING_POLL: Nanos = Nanos(250 * Nanos::MILLISECOND.0);
/// Time between two choices of the pages that race.
const CHOICE: Nanos = Nanos::SECOND;
/// Time between two reports of a host that has a share.
const REPORT: Nanos = Nanos::SECOND;
/// Time between two steps of a policy that asks for none for minutes: requests are answered after a step.
const IDLE_STEP: Nanos = Nanos::SECOND;
const MINUTE: Nanos = Nanos(60 * Nanos::SECOND.0);
/// Accesses of one poll that make the next one come soon.
const BUSY: usize = 512;
/// Mapped memory counts as unchanged if it changed by less than one part in this many.
const STEADY: u64 = 100;
/// Share of one processor for scans that cost the programs no time on the source's own clock.
const BESIDE_TIME_BUDGET: f64 = 0.1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// The programs have ended, or the run was asked to end.
    Ended,
    /// The memory in use has outgrown the policy, which should be rebuilt.
    Outgrown,
    /// Another policy takes over ([`LiveHost::replace_policy`]).
    Replaced,
}

pub struct LiveHost {
    options: Options,
    memory: TieredMemory,
    feed: Feed,
    processes: Box<dyn Processes>,
    followed: Vec<Pid>,
    /// Followed processes whose name was not read yet.
    unnamed: Vec<Pid>,
    /// Ended processes; their memory stays known until the next scan, for the summary.
    ended: Vec<Pid>,
    schedule: ScanSchedule,
    costs: Costs,
    load: Load,
    recorder: Recorder,
    growth: Growth,
    lessons: Lessons,
    next_poll: Nanos,
    next_choice: Nanos,
    next_report: Nanos,
    /// Samples as of the last report, and what was known then.
    reported: Option<(u64, Option<Estimate>, Curve)>,
    /// The memory by address when somebody last looked.
    mappings: Arc<Vec<MappingStatus>>,
    /// Time between the last poll and the next.
    between: Nanos,
    /// Whether the programs had no processor time between the last two polls.
    asleep: bool,
    /// Time until which the policy's thread rests.
    resume: Nanos,
    pause: Option<Pause>,
    events: Vec<ProcessEvent>,
    ranges: Vec<Range<u64>>,
    accessed: Vec<bool>,
}

impl LiveHost {
    pub fn new(
        options: Options,
        sources: Vec<Box<dyn AccessSource>>,
        spaces: Box<dyn AddressSpaces>,
        processes: Box<dyn Processes>,
    ) -> Self {
        Self {
            memory: TieredMemory::new(&options, spaces),
            feed: Feed::new(sources, &options),
            processes,
            followed: Vec::new(),
            unnamed: Vec::new(),
            ended: Vec::new(),
            schedule: ScanSchedule::default(),
            costs: Costs::default(),
            load: Load::new(&ProcRoot::default()),
            // Other hosts may run in this process.
            recorder: Recorder::new(options.inside.is_some() || options.share.is_some()),
            growth: Growth::default(),
            lessons: Lessons::default(),
            next_poll: Nanos(0),
            next_choice: Nanos(0),
            next_report: Nanos(0),
            reported: None,
            mappings: Arc::default(),
            between: POLL,
            asleep: false,
            resume: Nanos(0),
            pause: None,
            events: Vec::new(),
            ranges: Vec::new(),
            accessed: Vec::new(),
            options,
        }
    }

    /// Waits up to `patience` until memory stops growing, to size the policy. Returns false if the programs
    /// ended.
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

    /// Sets whether outgrown memory stops the engine; it always does if the fast limit is a share.
    pub fn resize_policy(&mut self, resizes: bool) {
        self.growth.resizes = resizes;
    }

    /// Sets whether the policy stays however far memory grows ([`Policy::grows`]).
    pub fn keep_policy(&mut self, stays: bool) {
        self.growth.stays = stays;
    }

    /// Shows a policy that takes over what the one before it learned from: the last samples.
    pub fn teach(&mut self, policy: &mut dyn Policy) {
        let lessons = std::mem::take(&mut self.lessons);
        let counters = self.feed.counters.clone();
        lessons.teach(policy, &counters, self);
        self.lessons = lessons;
    }

    /// Forgets the samples of a policy that another kind of policy follows.
    pub fn forget_samples(&mut self) {
        self.lessons.clear();
    }

    pub fn fast(&self) -> Pages {
        self.memory.residency.capacity(TierId::FAST)
    }

    pub fn footprint(&self) -> Pages {
        self.memory.residency.mapped()
    }

    /// Returns why the engine stopped. The host goes on when the engine starts again.
    pub fn pause(&mut self) -> Pause {
        self.pause.take().unwrap_or(Pause::Ended)
    }

    /// Stops the engine at its next step for another policy to take over, unless the run has ended by then.
    pub fn replace_policy(&mut self) {
        self.pause.get_or_insert(Pause::Replaced);
    }

    /// Makes the sources watch nothing, or resumes; a suspended engine calls [`Self::idle`].
    pub fn suspend(&mut self, suspended: bool) {
        self.feed.suspend(suspended);
    }

    /// Returns how many of the programs' threads can run at a time; `None` if nobody counts them.
    pub fn running_threads(&self) -> Option<u64> {
        let processors = std::thread::available_parallelism().map_or(u64::MAX, |count| count.get() as u64);
        Some(self.processes.threads()?.clamp(1, processors))
    }

    pub fn suspended(&self) -> bool {
        self.feed.suspended
    }

    /// Follows the programs for `time` without scanning or moving memory. Returns false when the run is over.
    pub fn idle(&mut self, time: Duration) -> bool {
        self.processes.wait(time);
        // Drops accesses that were under way when the sources were suspended.
        self.feed.drain();
        self.follow_processes()
    }

    /// Follows the programs to their end without tiering them.
    pub fn outlast(&mut self) {
        self.suspend(true);
        while self.idle(Duration::from_nanos(QUIET_POLL.0)) {}
    }

    pub fn begin_policy(&mut self, allocation: Allocation) {
        self.memory.begin_policy(allocation);
        self.spent();
        self.costs.begin(self.now());
    }

    /// Returns the programs' time and what tiering took of it, since the policy began.
    fn spent(&mut self) -> Spent {
        let engine = self.recorder.cpu();
        let used = |of: fn(&SourceStatistics) -> Nanos| {
            self.feed.sources.iter().map(|source| of(&source.statistics())).sum::<Nanos>()
        };
        let agents = used(|source| source.agent_cpu);
        // A source with a clock of its own tells its costs by that.
        let sampling = |by_clock: bool| {
            let sources = self.feed.sources.iter().filter(|source| source.clock().is_some() == by_clock);
            sources.map(|source| source.statistics().program_time).sum::<Nanos>()
        };
        let modelled = Modelled { sampling: sampling(true), moving: self.costs.modelled_moves };
        let sampling = sampling(false);
        let inside = if self.options.inside.is_some() { engine } else { Nanos(0) };
        let moving = self.costs.moving;
        let running = self.costs.ran() - (agents + inside);
        // An emulated program takes longer than its own clock says; an engine polls by the machine's.
        let emulated = self.feed.clock().is_some();
        let displaces = !emulated && self.load.lacks_processors();
        let moving = if self.feed.prices().is_some() { Nanos(0) } else { moving };
        let (elapsed, deciding) = (self.recorder.now(), engine + agents);
        let reading = Spent { elapsed, running, sampling, deciding, moving };
        self.costs.add(self.now(), reading, modelled, displaces)
    }

    pub fn note(&mut self, metadata: Bytes, fill: impl FnOnce(&mut Vec<Gauge>)) {
        self.recorder.note(metadata, &self.memory, &self.feed.counters, fill);
    }

    /// Returns the ranges of addresses on the fast tier, with their process.
    pub fn fast_memory(&self) -> Vec<(Pid, Range<u64>)> {
        let fast = record::ranges(&self.recorder.tally.heat, &self.memory, |_, tier| tier == TierId::FAST);
        fast.iter().map(|range| (Pid(range.process), range.start..range.start + range.bytes.0)).collect()
    }

    /// Returns what is known by now of the programs' accesses.
    pub(crate) fn known(&self) -> Known {
        self.recorder.known(&self.memory, &self.options, &self.feed, self.recorder.now())
    }

    pub fn summary(&mut self) -> Summary {
        let Self { recorder, memory, feed, options, lessons, .. } = self;
        let mut summary = recorder.summary(memory, options, feed);
        summary.engine.host_bytes += Bytes(lessons.bytes() as u64);
        summary
    }

    /// Takes the processes' events. Returns false when the run is over.
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
                // The source may still hold the last accesses.
                ProcessEvent::Ended(_) => {}
            }
        }
        self.events = events;
        running
    }

    fn start(&mut self, process: Pid) {
        self.between = POLL;
        self.followed.push(process);
        self.costs.follow(process);
        self.unnamed.push(process);
        self.schedule.soon();
        self.feed.each(|source| source.follow(process));
    }

    fn end(&mut self, process: Pid) {
        self.followed.retain(|&followed| followed != process);
        self.costs.forget(process);
        self.unnamed.retain(|&unnamed| unnamed != process);
        self.feed.sources.iter_mut().for_each(|source| source.forget(process));
        self.ended.push(process);
    }

    fn scan(&mut self) {
        let start = clock::thread_cpu();
        let before = self.memory.residency.mapped().0;
        self.memory.expire(self.recorder.now());
        // Before all numbering: a new process may have the number of one that ended.
        self.ended.drain(..).for_each(|process| self.memory.forget(process, &mut self.recorder.tally));
        for process in self.unnamed.drain(..) {
            self.memory.spaces.name(process).into_iter().for_each(|name| self.recorder.named(name));
        }
        for &process in &self.followed {
            let mut hidden = self.feed.hidden(process);
            hidden.extend(self.options.inside.iter().flatten().cloned());
            match self.memory.scan(process, &hidden, &mut self.recorder.tally) {
                Ok(()) | Err(LinuxError::Ended(_)) => {}
                Err(error) => self.feed.warning(error.to_string()),
            }
        }
        self.memory.enforce(&mut self.recorder.tally);
        self.recorder.tally.heat.age(self.memory.residency.mapped().0);
        self.memory.spaces.warnings().iter().for_each(|warning| self.feed.warning(warning.to_string()));
        let cost = clock::thread_cpu() - start;
        let beside = self.feed.clock().map(|_| BESIDE_TIME_BUDGET);
        let (budget, shortest) = (beside.unwrap_or(self.options.scan_budget), self.options.scan_interval);
        let mapped = self.memory.residency.mapped().0;
        let changed = mapped.abs_diff(before) > mapped / STEADY;
        self.schedule.done(self.recorder.now(), (cost, budget), shortest, changed, self.asleep);
    }

    /// Polls processes, memory and sources. Returns false when the run is over.
    fn poll(&mut self) -> bool {
        let running = self.follow_processes();
        if running && self.schedule.due(self.recorder.now()) {
            let before = self.footprint().0;
            self.scan();
            let times = self.growth.bound(before, self.footprint().0);
            let follows = self.growth.resizes || self.memory.limit_follows();
            if follows && !self.growth.stays && self.memory.outgrown(times) {
                self.pause = Some(Pause::Outgrown);
            }
        }
        // A policy that falls behind sees waiting accesses first; the source counts losses.
        let delivered = if self.feed.is_behind() { BUSY } else { self.feed.drain() };
        self.choose_racers();
        self.take_share();
        // A policy that steps often gets new accesses at each step.
        let slept = self.asleep;
        self.asleep = !self.costs.have_run() && delivered == 0 && self.feed.clock().is_none();
        if slept && !self.asleep {
            self.schedule.soon();
        }
        let quiet = match self.asleep {
            true => SLEEPING_POLL,
            false => QUIET_POLL.min(self.feed.batch().1.max(POLL)),
        };
        self.between = if delivered < BUSY { quiet.min(self.between + self.between) } else { POLL };
        self.next_poll = self.recorder.now() + self.between;
        if !running {
            self.pause = Some(Pause::Ended);
        }
        running
    }

    /// Names the pages that are to race, and settled memory, to the sources, once a second.
    fn choose_racers(&mut self) {
        let now = self.recorder.now();
        if now < self.next_choice {
            return;
        }
        self.next_choice = now + CHOICE;
        for (process, list, addresses) in self.recorder.tally.evidence.choose_racers(&self.memory) {
            self.feed.sources.iter_mut().for_each(|source| source.set_racers(process, list, &addresses));
        }
        for (process, ranges) in self.recorder.tally.evidence.choose_settled(now, &self.memory) {
            self.feed.sources.iter_mut().for_each(|source| source.set_settled(process, &ranges));
        }
    }

    /// Takes over the fast memory that the host may use now, and reports once a second.
    fn take_share(&mut self) {
        let Some(share) = self.options.share.clone() else { return };
        if self.memory.set_limit(FastLimit::Bytes(share.fast())) {
            self.schedule.soon();
        }
        let now = self.recorder.now();
        if now >= self.next_report {
            self.next_report = now + REPORT;
            if share.take_watched() {
                self.mappings = Arc::new(self.mappings());
            }
            share.set_report(self.report());
        }
    }

    /// Returns the programs' memory by address.
    pub(crate) fn mappings(&self) -> Vec<MappingStatus> {
        self.memory.mappings(&self.followed, &self.recorder.tally.heat)
    }

    /// Returns a process's name.
    pub(crate) fn name(&mut self, process: Pid) -> Option<String> {
        self.memory.spaces.name(process)
    }

    /// Replaces the limit of fast memory.
    ///
    /// # Errors
    /// If a daemon sets it, or it is for another number of tiers.
    pub(crate) fn set_limit(&mut self, fast: FastLimit) -> Result<(), String> {
        if self.options.share.is_some() {
            return Err("a daemon divides the fast memory among this run and others".into());
        }
        fast.check("this run", self.options.tiers.len()).map_err(|error| error.to_string())?;
        if self.memory.set_limit(fast) {
            self.schedule.soon();
        }
        Ok(())
    }

    /// Returns the host's state, for whoever divides the fast memory or looks at it.
    pub(crate) fn report(&mut self) -> HostReport {
        let samples = self.recorder.tally.samples;
        let known = self.reported.take().filter(|reported| reported.0 == samples);
        let (_, hit_ratio, curve) = known.unwrap_or_else(|| {
            (samples, self.known().hit_ratio, self.memory.curve(&self.recorder.tally.heat))
        });
        self.reported = Some((samples, hit_ratio, curve.clone()));
        let hits = match self.feed.measured {
            true => {
                self.feed.counters.tiers.iter().map(|tier| tier.load_misses + tier.store_misses).collect()
            }
            false => {
                let (tiers, now) = (self.memory.residency.tiers(), self.recorder.now());
                self.recorder.tally.evidence.hits(tiers, now, &self.memory)
            }
        };
        let tier = |((tier, hits), described): ((TierId, u64), &Tier)| TierReport {
            latency: described.latency,
            capacity: self.memory.bytes_of(self.memory.residency.capacity(tier)),
            resident: self.memory.bytes_of(self.memory.residency.used(tier)),
            hits,
        };
        let statistics: Vec<SourceStatistics> =
            self.feed.sources.iter().map(|source| source.statistics()).collect();
        let agents = statistics.iter().map(|source| source.agent_cpu).sum::<Nanos>();
        let (swapped, zswapped) = self.memory.swapped();
        HostReport {
            swapped,
            zswapped,
            time: self.recorder.now(),
            tiers: self.memory.tiers().zip(hits).zip(&self.options.tiers).map(tier).collect(),
            shadow: self.options.shadow,
            traffic: self.recorder.tally.traffic,
            samples,
            lost: statistics.iter().map(|source| source.lost).sum(),
            hit_ratio,
            running: self.costs.ran(),
            observing: statistics.iter().map(|source| source.program_time).sum(),
            engine: self.recorder.cpu() + agents,
            moving: self.costs.moving,
            memory: Bytes(self.memory.bytes() as u64 + self.recorder.tally.bytes().0),
            curve,
            processes: self
                .followed
                .iter()
                .map(|&process| self.memory.process(process, &self.recorder.tally.heat))
                .collect(),
            mappings: self.mappings.clone(),
            sources: self.feed.sources.iter().map(|source| source.name()).collect(),
            warnings: self.feed.warnings.clone(),
        }
    }

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

    /// Reads and clears the accessed bits of pages of one process.
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
        remedy(missing).into()
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
        let tick = if tick > MINUTE { IDLE_STEP } else { tick };
        // The tick of a policy scaled to a small program may be shorter than a poll.
        let mut deadline = (self.now() + tick.max(POLL)).max(self.resume);
        if self.asleep {
            deadline = deadline.max(self.next_poll);
        }
        loop {
            let polled = self.pause.is_none() && self.recorder.now() < self.next_poll;
            let running = polled || self.poll();
            self.feed.fill(batch, full, &mut self.memory, &mut self.recorder.tally);
            let now = self.now();
            let filled = batch.samples.len() + batch.faults.len() >= full && now >= self.resume;
            if !running || self.pause.is_some() || filled || now >= deadline {
                self.feed.finish(batch, &self.memory, now);
                if !self.growth.stays {
                    self.lessons.keep(&batch.samples);
                }
                batch.spent = self.spent();
                return self.pause.is_none();
            }
            let mut wait = self.next_poll - self.recorder.now();
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
        let start = clock::thread_cpu();
        let tally = &mut self.recorder.tally;
        tally.traffic.splits += plan.split.iter().filter(|&&page| self.memory.split(page)).count() as u64;
        for reclaim in &plan.reclaim {
            let freed = self.memory.reclaim(reclaim.from, reclaim.pages, &mut self.recorder.tally);
            outcome.reclaimed.push(freed);
        }
        self.memory.migrate(&plan.moves, &mut outcome.moves, &mut self.recorder.tally);
        let collapsed = plan.collapse.iter().filter(|&&page| self.memory.collapse(page)).count();
        self.recorder.tally.traffic.collapses += collapsed as u64;
        self.costs.moving += clock::thread_cpu() - start;
        if let Some(prices) = self.feed.prices().filter(|_| !plan.moves.is_empty()) {
            let moved = outcome.moves.iter().filter(|&&status| status == MoveStatus::Moved).count();
            self.costs.modelled_moves += prices.call + Nanos(prices.page.0 * moved as u64);
        }
        self.arm(&plan.arm);
        if let Some(request) = plan.device {
            self.feed.each(|source| source.command(request));
        }
    }
}
