//! Races: which of the hottest pages is touched next.
//!
//! Problem: a window tells how long a page was armed until its first touch. The hottest pages are touched
//! within microseconds, sooner than arming takes and than the agent can read its clock, so they look alike,
//! and they take a large part of all accesses.
//!
//! Approach: an order needs no clock. Pages that are armed at the same time and touched at rates r are next
//! touched in proportion to r, page i of those armed with probability r_i / sum of r (a race of exponential
//! times). The engine names up to [`RACERS`] pages; those that are touched more slowly tie the others' rates
//! to the clock.
//!
//! ```text
//! arm the racers one by one, answering nobody: a thread that touches one waits, so the program stands still
//! bring back the pages that threads wait for; these are out of the race, for they were touched too early
//! up to MOST times: the racer touched next is reported with those that were armed, and brought back
//! bring back the rest
//! ```
//!
//! A thread that touched none meanwhile was not stopped; its next touch counts like the others'.

use std::time::Duration;

use super::agent::Agent;
use super::gate;
use super::mechanism::{Order, Purpose};
use super::pace::{Allowed, USED};
use super::protocol::{RACERS, Race, Record};
use super::settled::Share;
use crate::clock;
use crate::sys::agent as sys;
use crate::sys::pages::PAGE;
use crate::sys::plain::plain;

/// Most touches that are reported of one race: half of the racers, so that the slower ones win as well.
const MOST: u32 = RACERS as u32 / 2;
/// Longest wait for them in nanoseconds.
const LONGEST: u64 = 1_000_000;
/// Longest time in nanoseconds that a racer stays armed.
const HELD: u64 = 100_000_000;
/// Most reads of messages that are spent on threads that touched a racer too early.
const EARLY: usize = 8;
/// Races take one part in this many of what sampling may cost program and agent.
const SHARE: u64 = 8;
/// Shortest and longest nanoseconds between two races.
const PAUSES: (u64, u64) = (20_000_000, 10_000_000_000);
const MILLION: u64 = 1_000_000;

/// The agent's copy of the racers. All zero is the start.
pub(super) struct Races {
    pages: [u64; RACERS],
    next: u64,
}

plain!(Zeroed for Races { pages, next });

impl Agent<'_> {
    /// Holds a race if one is due and can be paid.
    pub(super) fn race(&mut self, now: u64, allowed: Allowed) {
        let stops = self.ending.is_some() || self.rung || self.answered;
        if stops || allowed.rate == 0 || now < self.memory.race.next || !self.memory.pace.can_lend() {
            return;
        }
        let link = self.link;
        self.memory.race.next = now + PAUSES.0;
        let Some(list) = link.shared().racers(&mut self.memory.race.pages) else { return };
        let count = self.memory.race.pages.iter().position(|page| *page == 0).unwrap_or(RACERS);
        // Requests of policies have the same places.
        let requested =
            link.shared().asked().is_some() || self.memory.tables.open().any(|open| open.requested);
        if count < 2 || requested || !gate::begin() {
            return self.settle();
        }
        let (began, cpu) = (clock::monotonic().0, clock::thread_cpu().0);
        let pages = self.memory.race.pages;
        let place = |page: u64| pages[..count].iter().position(|racer| *racer == page);
        let mut armed = self.arm_racers(&pages[..count]);
        for _ in 0..EARLY {
            if !self.serve(|page| armed &= !place(page).map_or(0, |at| 1 << at)) {
                break;
            }
        }
        let (mut told, until) = (0, clock::monotonic().0 + LONGEST);
        while told < MOST && armed.count_ones() > 1 && self.ending.is_none() && !self.rung && !gate::is_held()
        {
            let any = self.serve(|page| {
                let Some(at) = place(page).filter(|at| armed >> at & 1 != 0) else { return };
                link.shared().push(Record::Race(Race { list, armed, first: at as u8 }));
                armed &= !(1 << at);
                told += 1;
            });
            let left = until.saturating_sub(clock::monotonic().0);
            if !any && left == 0 {
                break;
            }
            if !any {
                sys::wait([self.mechanism.userfault.raw()], Duration::from_nanos(left));
            }
        }
        self.memory.tables.each_open(|window| window.closing |= window.races);
        self.close(clock::monotonic().0);
        let end = clock::monotonic().0;
        self.memory.pace.lose(end - began);
        let pause =
            |cost: u64, budget: u64| cost.saturating_mul(SHARE * MILLION) / (budget * USED / 100).max(1);
        let pause =
            pause(end - began, allowed.program).max(pause(clock::thread_cpu().0 - cpu, allowed.agent));
        self.memory.race.next = end + pause.clamp(PAUSES.0, PAUSES.1);
    }

    /// Arms pages, from a random one on; returns which, a bit each.
    fn arm_racers(&mut self, pages: &[u64]) -> u128 {
        let from = self.random.below(pages.len() as u64) as usize;
        let mut armed = 0;
        for at in (from..pages.len()).chain(0..from) {
            let now = clock::monotonic().0;
            let until = now + HELD;
            let order = Order {
                start: pages[at] & !(PAGE - 1),
                pages: 1,
                huge: false,
                purpose: Purpose::Race,
                now,
                until,
                look: until,
                used: 0,
                began: 0,
                share: Share::default(),
            };
            if self.mechanism.arm(&mut self.memory.tables, self.link.shared(), order).is_some() {
                self.memory.pace.opened(1);
                armed |= 1 << at;
            }
        }
        armed
    }
}
