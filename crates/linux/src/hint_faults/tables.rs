//! Tables of what is armed and registered. They lie in the arena and are searched without allocation.

use super::mappings::BUFFER;
use super::protocol::{Counter, Shared};
use super::store::{TOTAL, places};
use super::window::Window;
use crate::sys::plain::plain;
use crate::sys::range::Range64;

pub(super) const REGIONS: usize = 32;
/// Most windows at a time.
pub(super) const WINDOWS: usize = TOTAL;
const QUARANTINED: usize = 128;
/// Nanoseconds of processor time that may be missing when a window is closed.
const SLACK: u64 = 10_000;
/// Shortest and longest nanoseconds between two reads of the program's processor time.
const LOOKS: (u64, u64) = (50_000, 5_000_000);

#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) range: Range64,
    pub(super) closing: bool,
}

plain!(Zeroed for Region { range, closing });

impl Region {
    pub(super) fn is_free(self) -> bool {
        self.range.end == 0
    }
}

/// The tables. All zero is the start.
pub(super) struct Tables {
    windows: [Window; TOTAL],
    /// One bit per open window: the windows themselves are far apart in memory.
    open: [u64; TOTAL.div_ceil(64)],
    pub(super) regions: [Region; REGIONS],
    quarantine: [(Range64, u64); QUARANTINED],
    /// When to read the program's processor time next, its last value, and the last pause.
    next_look: u64,
    last_used: u64,
    pause: u64,
    pub(super) maps_buffer: [u8; BUFFER],
}

plain!(Zeroed for Tables { windows, open, regions, quarantine, next_look, last_used, pause, maps_buffer });

impl Tables {
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        let open = self.open;
        (0..TOTAL).filter(move |at| open[at / 64] >> (at % 64) & 1 != 0)
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &Window> {
        self.numbers().map(|at| &self.windows[at])
    }

    pub(super) fn each_open(&mut self, mut see: impl FnMut(&mut Window)) {
        for at in self.numbers() {
            see(&mut self.windows[at]);
        }
    }

    pub(super) fn window_at(&self, at: usize) -> &Window {
        &self.windows[at]
    }

    pub(super) fn window(&mut self, at: usize) -> &mut Window {
        &mut self.windows[at]
    }

    pub(super) fn begin(&mut self, at: usize, start: u64, pages: u64, slot: u64) -> &mut Window {
        self.open[at / 64] |= 1 << (at % 64);
        self.windows[at].open(start, pages as usize, slot);
        &mut self.windows[at]
    }

    /// Closes the window; returns where it was.
    pub(super) fn end(&mut self, at: usize) -> Range64 {
        self.open[at / 64] &= !(1 << (at % 64));
        self.windows[at].pages = 0;
        std::mem::take(&mut self.windows[at].bounds)
    }

    /// Returns the open window, and its page, whose home holds the address.
    pub(super) fn find(&mut self, address: u64) -> Option<(&mut Window, usize)> {
        let (at, page) =
            self.numbers().find_map(|at| self.windows[at].find(address).map(|page| (at, page)))?;
        Some((&mut self.windows[at], page))
    }

    pub(super) fn free_window(&self, huge: bool, requested: bool) -> Option<usize> {
        places(huge, requested).find(|at| self.windows[*at].is_free())
    }

    pub(super) fn is_used(&self, range: Range64) -> bool {
        self.open().any(|window| window.bounds.overlaps(range))
    }

    /// Returns how many windows of sampling are open, and when the next one is to be closed.
    pub(super) fn open_windows(&self) -> (usize, Option<u64>) {
        self.open().fold((0, None), |(count, next): (usize, Option<u64>), window| {
            let look = if window.requested { u64::MAX } else { self.next_look };
            let until = if window.closing { 0 } else { window.until.min(look) };
            (count + 1, Some(next.map_or(until, |next| next.min(until))))
        })
    }

    /// Returns whether nothing is armed or registered.
    pub(super) fn is_empty(&self) -> bool {
        self.open == [0; TOTAL.div_ceil(64)] && self.regions.iter().all(|region| region.is_free())
    }

    pub(super) fn has_room(&self, requested: bool) -> bool {
        self.free_window(false, requested).is_some()
    }

    /// Closes all windows of sampling before their time.
    pub(super) fn close_sampled(&mut self) {
        self.each_open(|window| {
            if !window.requested {
                window.cut_short();
            }
        });
    }

    /// Ends windows of sampling for which the program has run long enough: `used` is its processor time so
    /// far. The next look comes when others can be due or, while the program does not run, later each time.
    pub(super) fn look(&mut self, now: u64, used: impl FnOnce() -> u64) {
        if now < self.next_look || !self.open().any(|window| !window.requested) {
            return;
        }
        let used = used();
        let runs = used.saturating_sub(self.last_used) >= SLACK;
        let pause = if runs { LOOKS.0 } else { (self.pause * 2).clamp(LOOKS.0, LOOKS.1) };
        (self.last_used, self.pause) = (used, pause);
        let mut least = u64::MAX;
        self.each_open(|window| {
            let missing = window.used.saturating_sub(used);
            if window.requested {
            } else if missing > SLACK {
                least = least.min(missing);
            } else {
                window.until = now;
            }
        });
        self.next_look = now.saturating_add(least.max(pause));
    }

    /// Schedules a look at a newly armed window of sampling.
    pub(super) fn look_by(&mut self, now: u64, time: u64) {
        self.next_look = if self.next_look <= now { time } else { self.next_look.min(time) };
    }

    /// Marks regions in which no window is left as closing.
    pub(super) fn release(&mut self, bounds: Range64) {
        for at in 0..REGIONS {
            let range = self.regions[at].range;
            if range.overlaps(bounds) && !self.is_used(range) {
                self.regions[at].closing = true;
            }
        }
    }

    /// Closes the region that holds the page, with all of its windows; returns false if no region does.
    pub(super) fn close_region(&mut self, page: Range64) -> bool {
        let Some(region) = self.regions.iter_mut().find(|region| region.range.overlaps(page)) else {
            return false;
        };
        region.closing = true;
        let range = region.range;
        self.each_open(|window| {
            if window.bounds.overlaps(range) {
                window.disturb();
            }
        });
        true
    }

    /// Tells all windows of a change, and closes the regions that it concerns.
    pub(super) fn disturb(
        &mut self,
        shared: &Shared,
        range: Range64,
        mut tell: impl FnMut(&mut Window) -> bool,
    ) {
        self.each_open(|window| {
            if tell(window) {
                shared.add(Counter::Disturbed, 1);
            }
        });
        for region in self.regions.iter_mut().filter(|region| region.range.overlaps(range)) {
            region.closing = true;
        }
    }

    /// Removes the range from regions, as another registered mapping may move there before the agent knows.
    pub(super) fn cut(&mut self, gone: Range64) {
        for at in 0..REGIONS {
            let range = self.regions[at].range;
            if !range.overlaps(gone) {
                continue;
            }
            let [kept, other] = range.without(gone);
            self.regions[at].range = kept;
            if other.end > 0 {
                self.add_ghost(other);
            }
        }
    }

    /// Adds a region for a registered mapping that moved.
    pub(super) fn add_ghost(&mut self, range: Range64) {
        if let Some(region) = self.regions.iter_mut().find(|region| region.is_free()) {
            *region = Region { range, closing: true };
        }
    }

    /// Returns whether contents were removed there recently, or removed so often that the places are unknown.
    pub(super) fn is_quarantined(&self, range: Range64, now: u64) -> bool {
        let mut full = true;
        for (removed, until) in &self.quarantine {
            if *until > now && removed.overlaps(range) {
                return true;
            }
            full &= *until > now;
        }
        full
    }

    pub(super) fn quarantine(&mut self, range: Range64, until: u64) {
        if let Some(oldest) = self.quarantine.iter_mut().min_by_key(|(_, until)| *until) {
            *oldest = (range, until);
        }
    }
}
