//! Measures what a fault costs, on pages of the agent's own that a short-lived companion touches.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::agent::Agent;
use super::gate;
use super::mechanism::{Order, Purpose};
use super::settled::Share;
use crate::clock;
use crate::sys::agent as sys;
use crate::sys::companion::Companion;
use crate::sys::pages::PAGE;
use crate::sys::range::Range64;

const PAGES: u64 = 32;
/// Assumed nanoseconds of a fault, and the agent's part in it, where they cannot be measured.
const ASSUMED: (u64, u64) = (12_000, 3_000);
/// Longest fault in nanoseconds; longer ones are waits for a processor.
const DEAREST: u64 = 60_000;
const PATIENCE: Duration = Duration::from_millis(500);

/// Lets the toucher begin, and what a fault cost it in nanoseconds.
static GO: AtomicBool = AtomicBool::new(false);
static SPENT: AtomicU64 = AtomicU64::new(0);

impl Agent<'_> {
    /// Returns the nanoseconds that a thread loses in a fault, and how many of them the agent takes.
    pub(super) fn calibrate(&mut self) -> (u64, u64) {
        let Ok(range) = sys::map(PAGES * PAGE) else { return ASSUMED };
        sys::small_pages_only(range);
        (0..PAGES).for_each(|page| sys::write_byte(range.start + page * PAGE, 1));
        let measured = self.measure(range.start);
        let settled = self.mechanism.userfault.unregister(range).is_ok();
        if settled {
            sys::unmap(range);
        }
        measured.unwrap_or(ASSUMED)
    }

    fn measure(&mut self, start: u64) -> Option<(u64, u64)> {
        // Left over from the parent in a child of a fork.
        GO.store(false, SeqCst);
        SPENT.store(0, SeqCst);
        let toucher = Companion::start(touch_all, start).ok()?;
        self.memory.pace.begin(clock::monotonic().0, 0, ASSUMED.0, ASSUMED.1);
        let handled = self.serve_toucher(start);
        GO.store(true, SeqCst);
        toucher.reap();
        let spent = SPENT.load(SeqCst);
        (spent > 0 && handled.is_some()).then(|| (spent.clamp(1_000, DEAREST), handled.unwrap_or(0)))
    }

    /// Arms the pages and answers until all are back; returns the agent's nanoseconds for each.
    fn serve_toucher(&mut self, start: u64) -> Option<u64> {
        if !gate::begin() {
            self.close_all();
            return None;
        }
        let (now, begin) = (clock::monotonic().0, Instant::now());
        let (until, look) = (u64::MAX, u64::MAX);
        let (huge, purpose, used, began) = (false, Purpose::Sample, 0, 0);
        let share = Share::default();
        let order = Order { start, pages: PAGES, huge, purpose, now, until, look, used, began, share };
        let armed = self.mechanism.arm(&mut self.memory.tables, self.link.shared(), order);
        let armed = armed.map(|window| u64::from(window.armed));
        if armed == Some(PAGES) {
            GO.store(true, SeqCst);
            while SPENT.load(SeqCst) == 0 && begin.elapsed() < PATIENCE && !gate::is_held() {
                if !self.serve(|_| {}) {
                    sys::wait([self.mechanism.userfault.raw()], Duration::from_millis(1));
                }
            }
        }
        self.close_all();
        Some(self.memory.pace.handling)
    }

    /// Moves all pages back, however long it takes.
    fn close_all(&mut self) {
        loop {
            self.serve(|_| {});
            let now = clock::monotonic().0;
            let tables = &mut self.memory.tables;
            if self.mechanism.close(tables, self.link.shared(), (now, true), || 0, |_| {}) {
                break;
            }
            sys::nap();
        }
        gate::quiet();
    }
}

/// Reads each page once and stores how many nanoseconds one took.
fn touch_all(start: u64, _: Range64) {
    // With a copy of the userfaultfd it would wait for itself, should the agent end before it.
    sys::keep_only([], false);
    let begin = Instant::now();
    while !GO.load(SeqCst) {
        if begin.elapsed() > 2 * PATIENCE {
            return;
        }
        sys::give_way();
    }
    let mut times = [0; PAGES as usize];
    for (page, time) in times.iter_mut().enumerate() {
        let begin = clock::monotonic().0;
        sys::touch(start + page as u64 * PAGE);
        *time = clock::monotonic().0 - begin;
    }
    // The lower quartile: waits for a busy processor are not part of a fault.
    times.sort_unstable();
    SPENT.store(times[times.len() / 4].max(1), SeqCst);
}
