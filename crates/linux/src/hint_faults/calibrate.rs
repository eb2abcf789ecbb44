//! Measures what a fault costs, on pages of the agent's own that a short-lived thread touches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::agent::Agent;
use super::gate;
use super::mechanism::Order;
use crate::clock;
use crate::sys::agent::{self as sys, BlockedSignals};
use crate::sys::pages::PAGE;

const PAGES: u64 = 32;
/// Assumed nanoseconds of a fault, and the agent's part in it, where they cannot be measured.
const ASSUMED: (u64, u64) = (12_000, 3_000);
/// Longest fault in nanoseconds; longer ones are waits for a processor.
const DEAREST: u64 = 60_000;
const PATIENCE: Duration = Duration::from_millis(500);

impl Agent {
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
        // The thread has started and taken its memory before anything is armed.
        let (go, spent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let toucher = {
            let (go, spent) = (Arc::clone(&go), Arc::clone(&spent));
            let _blocked = BlockedSignals::all();
            std::thread::Builder::new()
                .name("isotherm".into())
                .stack_size(64 << 10)
                .spawn(move || touch_all(start, &go, &spent))
                .ok()?
        };
        self.memory.pace.begin(clock::monotonic().0, 0, ASSUMED.0, ASSUMED.1);
        let handled = self.serve_toucher(start, &go, &spent);
        go.store(true, SeqCst);
        toucher.join().ok()?;
        let spent = spent.load(SeqCst);
        (spent > 0 && handled.is_some()).then(|| (spent.clamp(1_000, DEAREST), handled.unwrap_or(0)))
    }

    /// Arms the pages and answers until all are back; returns the agent's nanoseconds for each.
    fn serve_toucher(&mut self, start: u64, go: &AtomicBool, spent: &AtomicU64) -> Option<u64> {
        if !gate::begin() {
            self.close_all();
            return None;
        }
        let (now, begin) = (clock::monotonic().0, Instant::now());
        let (until, look) = (u64::MAX, u64::MAX);
        let order = Order { start, pages: PAGES, huge: false, requested: false, now, until, look, used: 0 };
        let armed = self.mechanism.arm(&mut self.memory.tables, self.link.shared(), order);
        let armed = armed.map(|window| u64::from(window.armed));
        if armed == Some(PAGES) {
            go.store(true, SeqCst);
            while spent.load(SeqCst) == 0 && begin.elapsed() < PATIENCE && !gate::is_held() {
                if !self.serve() {
                    sys::wait([self.mechanism.userfault.raw(), -1], Some(Duration::from_millis(1)));
                }
            }
        }
        self.close_all();
        Some(self.memory.pace.handling)
    }

    /// Moves all pages back, however long it takes.
    fn close_all(&mut self) {
        loop {
            self.serve();
            let now = clock::monotonic().0;
            let tables = &mut self.memory.tables;
            if self.mechanism.close(tables, self.link.shared(), now, true, |_| {}) {
                break;
            }
            sys::nap();
        }
        gate::quiet();
    }
}

/// Reads each page once and stores how many nanoseconds one took.
fn touch_all(start: u64, go: &AtomicBool, spent: &AtomicU64) {
    while !go.load(SeqCst) {
        std::thread::yield_now();
    }
    let mut times = [0; PAGES as usize];
    for (page, time) in times.iter_mut().enumerate() {
        let begin = clock::monotonic().0;
        sys::touch(start + page as u64 * PAGE);
        *time = clock::monotonic().0 - begin;
    }
    // The lower quartile: waits for a busy processor are not part of a fault.
    times.sort_unstable();
    spent.store(times[times.len() / 4].max(1), SeqCst);
}
