//! The agent: a process that shares the program's memory ([`crate::sys::companion`]), arms windows and
//! answers faults.
//!
//! It neither waits for the program nor touches its memory: no allocation, no locks, no lazily bound symbols
//! or thread-local variables. It blocks signals, has its own descriptors, and is confined to the few system
//! calls that it needs, since it keeps rights that the program may give up.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::gate;
use super::link::{LOOK, Link};
use super::mechanism::{Event, Mechanism, Order, Purpose};
use super::pace::{Allowed, Pace};
use super::pass::{Candidate, Pass};
use super::protocol::{Counter, Shared, State};
use super::race::Races;
use super::random::Random;
use super::settled::{Settled, Share};
use super::store::SMALL;
use super::tables::Tables;
use super::window::Window;
use crate::clock;
use crate::sys::agent as sys;
use crate::sys::mmap::Arena;
use crate::sys::pages::PAGE;
use crate::sys::plain::plain;
use crate::sys::userfaultfd::{Message, RawMessage, decode};

const MESSAGES: usize = 32;
/// Windows armed between two reads of messages.
const BURST: usize = 16;
/// Age in nanoseconds at which a pass is abandoned, so that newer memory is included.
const PASS_AGE: u64 = 10_000_000_000;
/// Shortest time between two passes, in nanoseconds.
const PASS_PAUSE: u64 = 50_000_000;
/// A pass may use one part in this many of a processor to begin; waiting for a processor does not count.
const PASS_COST: u64 = 200;
/// Longest sleep while pages are armed, should the doorbell fail to tell of a fork.
const HOLD_LOOK: Duration = Duration::from_millis(5);

pub(super) struct Memory {
    pub(super) tables: Tables,
    pub(super) pace: Pace,
    pass: Pass,
    pub(super) race: Races,
    settled: Settled,
    messages: [RawMessage; MESSAGES],
}

plain!(Zeroed for Memory { tables, pace, pass, race, settled, messages });

pub(super) struct Agent<'a> {
    pub(super) memory: Arena<Memory>,
    pub(super) mechanism: Mechanism,
    pub(super) link: &'a Link,
    /// The program's process.
    program: u32,
    pub(super) random: Random,
    next_pass: u64,
    /// Slots of threads in use at which ended threads are looked for.
    next_forgetting: usize,
    pub(super) rung: bool,
    /// The doorbell was answered and is not renewed yet: nothing may be armed.
    pub(super) answered: bool,
    /// Why it ends, once it does.
    pub(super) ending: Option<State>,
}

impl<'a> Agent<'a> {
    /// Maps all memory that the agent needs, or returns why it cannot.
    pub(super) fn new(link: &'a Link, mut mechanism: Mechanism, program: u32) -> Result<Self, State> {
        let mut memory: Arena<Memory> = Arena::new().map_err(|_| State::NoMemory)?;
        mechanism.own_also(memory.range());
        mechanism.own_libraries(&mut memory.tables.maps_buffer);
        let random = Random(link.shared().seed.load(Relaxed));
        let (rung, answered, ending) = (false, false, None);
        let (next_pass, next_forgetting) = (0, 0);
        Ok(Self {
            memory,
            mechanism,
            link,
            program,
            random,
            next_pass,
            next_forgetting,
            rung,
            answered,
            ending,
        })
    }

    /// Works until the engine goes or the program ends; by then all pages are back. Returns why it ended.
    pub(super) fn run(&mut self) -> State {
        gate::activate(self.mechanism.doorbell);
        self.tell_where();
        let (cost, handling) = self.calibrate();
        let (now, cpu) = (clock::monotonic().0, clock::thread_cpu().0);
        self.memory.pace.begin(now, cpu, cost, handling);
        self.link.tell(State::Ready);
        let state = loop {
            let busy = self.serve(|_| {});
            let now = clock::monotonic().0;
            let allowed = self.link.allowed();
            self.memory.pace.tick(now, clock::thread_cpu().0, allowed);
            let closed = self.close(now);
            if closed && let Some(state) = self.ending {
                break state;
            }
            self.arm(now, allowed);
            self.race(now, allowed);
            self.tell();
            if !busy {
                self.wait(allowed, closed);
            }
        };
        self.tell();
        // Before a thread that gives the agent up goes on and ends, and the agent with it.
        self.link.tell(state);
        gate::deactivate();
        state
    }

    /// Tells the engine where the agent's own memory lies.
    fn tell_where(&self) {
        let (memory, store) = (self.memory.range(), self.mechanism.store.range());
        let words = [memory.start, memory.end, store.start, store.end];
        for (place, word) in self.link.shared().hidden.iter().zip(words) {
            place.store(word, Relaxed);
        }
    }

    /// Reads and answers messages, and tells `raced` of racers that were touched, in order; returns whether
    /// there were any messages.
    pub(super) fn serve(&mut self, mut raced: impl FnMut(u64)) -> bool {
        let Memory { tables, pace, messages, .. } = &mut *self.memory;
        let program = self.program;
        let count = self.mechanism.userfault.read(messages);
        let read = clock::monotonic().0;
        let shared = self.link.shared();
        let mut now = read;
        let messages = || messages[..count.min(MESSAGES)].iter().map(|message| decode(*message));
        // A child has what was armed at its fork: it gets that before another thread's fault brings it back.
        let is_fork = |message: &Message| matches!(message, Message::Fork(_));
        for message in messages().filter(is_fork).chain(messages().filter(|message| !is_fork(message))) {
            let used = || sys::processor_time(program);
            match self.mechanism.answer(tables, shared, message, now, used) {
                Event::None => {}
                Event::Doorbell => self.rung = true,
                Event::Locked => self.ending = Some(State::Locked),
                Event::Raced(page) => raced(page),
                Event::Answered { requested } => {
                    now = clock::monotonic().0;
                    pace.fault(now - read, requested);
                }
            }
        }
        if count > 0 && pace.overshoots() {
            tables.close_sampled();
        }
        count > 0
    }

    /// Closes windows that are due; returns whether nothing is armed any more.
    pub(super) fn close(&mut self, now: u64) -> bool {
        let Memory { tables, pace, .. } = &mut *self.memory;
        let all = self.ending.is_some() || self.rung || gate::is_held();
        let program = self.program;
        if pace.is_overdrawn() {
            // Observing further would exceed the budget.
            tables.close_sampled();
        }
        let used = || sys::processor_time(program);
        tables.look(now, used);
        let closed = self.mechanism.close(tables, self.link.shared(), (now, all), used, |window| {
            let faults = if window.requested { 0 } else { u64::from(window.faults) };
            pace.closed(expected_pages(window), faults);
            if !(window.disturbed || window.early || window.requested || all) {
                pace.observe(expected_pages(window), u64::from(window.faults));
            }
        });
        if closed {
            gate::quiet();
            if std::mem::take(&mut self.rung) {
                self.mechanism.answer_doorbell();
                self.answered = true;
            }
        }
        closed
    }

    /// Arms what policies ask for, then windows of the pass, as far as the budget allows.
    fn arm(&mut self, now: u64, allowed: Allowed) {
        if self.answered && !gate::is_held() && !gate::is_ending() {
            self.mechanism.renew_doorbell();
            self.answered = false;
        }
        if self.ending.is_some() || self.rung || self.answered || !self.memory.pace.can_pay() {
            return;
        }
        let sampling = allowed.rate > 0 && self.memory.pace.allows();
        let asked = self.link.shared().asked().is_some();
        if !(sampling || asked) || !gate::begin() {
            return self.settle();
        }
        if asked {
            self.arm_requests();
        }
        if sampling && self.has_pass(now) {
            for _ in 0..BURST {
                if !self.memory.pace.allows() || !self.arm_next() {
                    break;
                }
                // A thread that has touched a page already must not wait for the other windows.
                self.serve(|_| {});
                if self.rung || self.ending.is_some() {
                    break;
                }
            }
        }
        self.settle();
    }

    /// Tells forking threads if nothing is armed after all.
    pub(super) fn settle(&self) {
        if self.memory.tables.is_empty() {
            gate::quiet();
        }
    }

    /// Returns whether a window is left to arm. Beginning a new pass takes time, so nothing is armed then.
    fn has_pass(&mut self, now: u64) -> bool {
        let Memory { tables, pass, settled, .. } = &mut *self.memory;
        let old = now > pass.began + PASS_AGE;
        if pass.is_left() && !old {
            return true;
        }
        if now < self.next_pass || !tables.is_empty() {
            return false;
        }
        let window = self.link.window();
        let mechanism = &self.mechanism;
        if gate::slots_in_use() >= self.next_forgetting {
            let program = self.program;
            let kept = gate::forget_ended(|thread| sys::thread_exists(program, thread));
            self.next_forgetting = (2 * kept).max(64);
        }
        // Without the forgetting: it costs each thread once, and the agent's account pays for it.
        let cpu = clock::thread_cpu().0;
        let (maps, presence) = (&mechanism.maps, &mechanism.presence);
        let own = |range| mechanism.is_own(range);
        settled.begin(self.link.shared());
        let shares = pass.begin(maps, presence, &mut self.random, window, own, gate::Arming::allowed);
        self.link.shared().set(Counter::MayBeArmed, shares.may_be_armed);
        self.link.shared().set(Counter::LeftOut, shares.left_out);
        let taken = clock::thread_cpu().0 - cpu;
        (pass.began, self.next_pass) = (now, now + (PASS_COST * taken).max(PASS_PAUSE));
        pass.is_left()
    }

    /// Arms the pass's next window, if any is left.
    fn arm_next(&mut self) -> bool {
        let Memory { tables, pass, pace, settled, .. } = &mut *self.memory;
        if !tables.has_room(false) {
            return false;
        }
        let share = |&Candidate { start, pages, huge }: &Candidate| {
            if huge { settled.of_huge(start, pages) } else { settled.of(start, pages) }
        };
        let all = |pages: u64| if pages < 64 { (1 << pages) - 1 } else { u64::MAX };
        let wanted = |candidate: &Candidate| share(candidate).without != all(candidate.pages);
        let Some(candidate) = std::iter::from_fn(|| pass.next()).find(wanted) else { return false };
        let share = share(&candidate);
        let Candidate { start, pages, huge } = candidate;
        let now = clock::monotonic().0;
        let began = sys::processor_time(self.program);
        let (until, look, used) = (now + LONGEST_WINDOW, now + pace.window_time, began + pace.window_time);
        let purpose = Purpose::Sample;
        let order = Order { start, pages, huge, purpose, now, until, look, used, began, share };
        if let Some(armed) = self.mechanism.arm(tables, self.link.shared(), order) {
            pace.opened(expected_pages(armed));
            armed.arming = clock::monotonic().0 - now;
            armed.ran = sys::processor_time(self.program).saturating_sub(began);
        }
        pace.lose(((clock::monotonic().0 - now) / ARMING_LOSS).min(MAX_ARMING_LOSS));
        true
    }

    /// Arms pages that a policy asked for, neighbours together.
    fn arm_requests(&mut self) {
        let Memory { tables, pace, .. } = &mut *self.memory;
        let shared = self.link.shared();
        for _ in 0..BURST {
            if !tables.has_room(true) || !pace.can_pay() {
                return;
            }
            let Some((start, pages)) = next_request(shared) else { return };
            let now = clock::monotonic().0;
            let until = now.saturating_add(self.link.armed_bound());
            let order = Order {
                start,
                pages,
                huge: false,
                purpose: Purpose::Request,
                now,
                until,
                look: until,
                used: 0,
                began: 0,
                share: Share::default(),
            };
            let huge = start & !((2 << 20) - 1);
            let whole = Order { start: huge, pages: 512, huge: true, ..order };
            let opened = [order, whole].into_iter().find_map(|order| {
                self.mechanism.arm(tables, shared, order).map(|armed| expected_pages(armed))
            });
            match opened {
                Some(pages) => pace.opened(pages),
                None => shared.add(Counter::Refused, pages),
            }
            pace.lose(((clock::monotonic().0 - now) / ARMING_LOSS).min(MAX_ARMING_LOSS));
        }
    }

    fn wait(&mut self, allowed: Allowed, closed: bool) {
        let now = clock::monotonic().0;
        let tables = &self.memory.tables;
        let (open, next) = tables.open_windows();
        let mut time = if open == 0 { LOOK } else { HOLD_LOOK };
        if let Some(next) = next {
            time = time.min(Duration::from_nanos(next.saturating_sub(now)));
            if next == 0 {
                sys::nap();
            }
        } else if !closed {
            time = Duration::ZERO;
        }
        if gate::is_held() {
            time = time.min(Duration::from_millis(1));
        } else if let Some(next) = self.next_arming(now, allowed, open) {
            time = time.min(Duration::from_nanos(next));
        }
        if !self.link.wait(self.mechanism.userfault.raw(), time) {
            self.ending.get_or_insert(State::Ended);
        } else if gate::is_crowded() {
            self.ending.get_or_insert(State::Crowded);
        } else if gate::is_ending() {
            self.ending.get_or_insert(State::GivenUp);
        }
    }

    /// Returns how long until something can be armed; `None` if that depends on windows that are open.
    fn next_arming(&self, now: u64, allowed: Allowed, open: usize) -> Option<u64> {
        let Memory { tables, pace, pass, .. } = &*self.memory;
        if self.link.shared().asked().is_some() && tables.has_room(true) {
            return Some(pace.pause(allowed));
        }
        let can_sample = allowed.rate > 0 && if pass.is_left() { tables.has_room(false) } else { open == 0 };
        let pass = if pass.is_left() { 0 } else { self.next_pass.saturating_sub(now) };
        can_sample.then(|| pace.pause(allowed).max(pass))
    }

    fn tell(&self) {
        let (shared, pace) = (self.link.shared(), &self.memory.pace);
        shared.agent_cpu.store(pace.last_cpu, Relaxed);
        shared.program_time.store(pace.program_time, Relaxed);
        shared.set(Counter::WindowTime, pace.window_time);
        shared.set(Counter::FaultCost, pace.fault_cost);
    }
}

/// Longest time in nanoseconds that a window stays open, even if the program has hardly run.
const LONGEST_WINDOW: u64 = 1_000_000_000;
/// Moving pages interrupts the program's threads for one part in this many of that time.
const ARMING_LOSS: u64 = 2;
/// Longest interruption by one window in nanoseconds; longer ones are waits for a processor.
const MAX_ARMING_LOSS: u64 = 20_000;

/// Returns how many faults the window can cause: a huge page comes back at the first.
fn expected_pages(window: &Window) -> u64 {
    if u64::from(window.pages) > SMALL { 1 } else { u64::from(window.armed_at_first) }
}

/// Takes neighbouring pages out of the queue: the first address and the number of pages.
fn next_request(shared: &Shared) -> Option<(u64, u64)> {
    let start = shared.asked()? & !(PAGE - 1);
    shared.answered();
    let mut pages = 1;
    while pages < SMALL && shared.asked() == Some(start + pages * PAGE) {
        shared.answered();
        pages += 1;
    }
    Some((start, pages))
}
