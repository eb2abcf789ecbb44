//! A window: pages of the program that are armed together.
//!
//! Each page has a *home*, the address where the program looks for it. The home changes when the program
//! moves the mapping and is gone when it unmaps it. Armed pages lie in the window's slot of the store.

use super::settled::Share;
use crate::sys::pages::PAGE;
use crate::sys::plain::plain;
use crate::sys::range::Range64;

/// Pages of the largest window: 2 MiB.
pub(super) const LARGEST: usize = 512;
/// Home of a page that was unmapped.
const GONE: u64 = 0;

/// A window's state. All zero is a free window.
pub(super) struct Window {
    /// Number of pages; 0 while it is free.
    pub(super) pages: u32,
    pub(super) armed: u32,
    pub(super) armed_at_first: u32,
    pub(super) faults: u32,
    pub(super) requested: bool,
    /// Whether it is a racer's: its touches are no samples.
    pub(super) races: bool,
    /// Whether it must be closed now, whatever the time.
    pub(super) closing: bool,
    /// Whether the program or the kernel changed its mapping: its faults say nothing then.
    pub(super) disturbed: bool,
    /// Whether it closes before its time, for the budget's sake.
    pub(super) early: bool,
    /// Whether its slot holds contents that belong to no page any more.
    pub(super) stale: bool,
    /// The page recorded last, plus 1: it may fault again before it can come back.
    pub(super) told: u32,
    /// Monotonic nanoseconds when it was armed.
    pub(super) since: u64,
    /// The program's processor time when it was armed, and until its huge page was touched or it closed.
    pub(super) began: u64,
    pub(super) exposed: u64,
    /// Nanoseconds that arming took, and for how long the program ran meanwhile.
    pub(super) arming: u64,
    pub(super) ran: u64,
    /// Monotonic nanoseconds at which it closes at the latest.
    pub(super) until: u64,
    /// Processor time of the program at which it closes earlier.
    pub(super) used: u64,
    pub(super) slot: u64,
    /// Range that holds all homes.
    pub(super) bounds: Range64,
    pub(super) share: Share,
    bits: [u64; LARGEST / 64],
    returned: [u64; LARGEST / 64],
    homes: [u64; LARGEST],
}

plain!(Zeroed for Window {
    pages, armed, armed_at_first, faults, requested, races, closing, disturbed, early, stale, told, since,
    began, exposed, arming, ran, until, used, slot, bounds, share, bits, returned, homes,
});

/// Armed pages that are neighbours in the store and at home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: usize,
    pub(super) pages: usize,
    pub(super) home: u64,
}

impl Window {
    /// Begins a window of `pages` pages at `start`, none of them armed yet.
    pub(super) fn open(&mut self, start: u64, pages: usize, slot: u64) {
        let pages = pages.min(LARGEST);
        for (at, home) in self.homes[..pages].iter_mut().enumerate() {
            *home = start + at as u64 * PAGE;
        }
        (self.bits, self.returned) = ([0; LARGEST / 64], [0; LARGEST / 64]);
        (self.pages, self.slot) = (pages as u32, slot);
        (self.armed, self.armed_at_first, self.faults, self.told) = (0, 0, 0, 0);
        (self.requested, self.races) = (false, false);
        (self.closing, self.disturbed, self.stale) = (false, false, false);
        (self.early, self.began, self.exposed, self.arming, self.ran) = (false, 0, 0, 0, 0);
        self.bounds = Range64::new(start, pages as u64 * PAGE);
        self.share = Share::default();
    }

    pub(super) fn is_settled(&self, page: usize) -> bool {
        self.share.settled >> (page % 64) & 1 != 0
    }

    /// Returns the first neighbours between two pages that are to be armed: the first, and how many.
    pub(super) fn wanted(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let wanted = |page: &usize| self.share.without >> (page % 64) & 1 == 0;
        let first = (from..to).find(wanted)?;
        Some((first, (first..to).take_while(wanted).count()))
    }

    pub(super) fn is_free(&self) -> bool {
        self.pages == 0
    }

    pub(super) fn is_armed(&self, page: usize) -> bool {
        self.bits[page / 64] >> (page % 64) & 1 != 0
    }

    pub(super) fn mark(&mut self, page: usize, armed: bool) {
        if self.is_armed(page) == armed {
            return;
        }
        self.bits[page / 64] ^= 1 << (page % 64);
        self.armed = if armed { self.armed + 1 } else { self.armed - 1 };
        self.returned[page / 64] |= u64::from(!armed) << (page % 64);
    }

    /// Returns whether the page was armed in this window and has come back.
    pub(super) fn has_returned(&self, page: usize) -> bool {
        self.returned[page / 64] >> (page % 64) & 1 != 0
    }

    /// Closes it as soon as possible and discards its counts.
    pub(super) fn disturb(&mut self) {
        (self.closing, self.disturbed) = (true, true);
    }

    pub(super) fn is_huge(&self) -> bool {
        self.pages as usize == LARGEST
    }

    /// Closes it as soon as possible, whatever its time.
    pub(super) fn cut_short(&mut self) {
        (self.closing, self.early) = (true, true);
    }

    /// Returns for how long it has been armed at a time `now` while the program ran: by the clock, or by the
    /// program's processor time where it had to wait. The kernel knows the latter of a running thread as of
    /// its last tick, so either may be too long, and the shorter is right.
    ///
    /// Pages are armed one after another, each with an interrupt of the program's processors, so the later
    /// ones are for less time: `page` is the one meant.
    pub(super) fn exposed_by(&self, now: u64, used: u64, page: usize) -> u64 {
        let exposed = now.saturating_sub(self.since).min(used.saturating_sub(self.began));
        let armed = if self.is_huge() { self.pages } else { page as u32 + 1 };
        let before = self.arming * u64::from(armed) / u64::from(self.pages.max(1));
        exposed.saturating_sub(before.min(self.ran))
    }

    /// Returns the page that is armed for the mean time.
    pub(super) fn middle(&self) -> usize {
        self.pages as usize / 2
    }

    /// Returns which of the first 64 pages are armed, a bit each.
    pub(super) fn armed_bits(&self) -> u64 {
        self.bits[0]
    }

    /// Returns where the page lies while it is armed.
    pub(super) fn stored(&self, page: usize) -> u64 {
        self.slot + page as u64 * PAGE
    }

    pub(super) fn find(&self, address: u64) -> Option<usize> {
        if !self.bounds.contains(address) {
            return None;
        }
        let address = address & !(PAGE - 1);
        let homes = &self.homes[..self.pages as usize];
        let guess = (address - self.bounds.start) / PAGE;
        if homes.get(guess as usize) == Some(&address) {
            return Some(guess as usize);
        }
        homes.iter().position(|home| *home == address)
    }

    /// Returns the next run of armed neighbours from page `first` on.
    pub(super) fn armed_run(&self, first: usize) -> Option<Run> {
        let first = (first..self.pages as usize).find(|page| self.is_armed(*page))?;
        let home = self.homes[first];
        let pages = (first..self.pages as usize)
            .take_while(|page| {
                self.is_armed(*page) && self.homes[*page] == home + (page - first) as u64 * PAGE
            })
            .count();
        Some(Run { first, pages, home })
    }

    /// Drops pages whose contents are to be removed; returns whether any was here.
    pub(super) fn remove(&mut self, range: Range64) -> bool {
        let mut found = false;
        for page in 0..self.pages as usize {
            if range.contains(self.homes[page]) {
                found = true;
                self.stale |= self.is_armed(page);
                self.mark(page, false);
            }
        }
        if found {
            self.disturb();
        }
        found
    }

    /// Drops pages that are no longer mapped; returns whether any was here.
    pub(super) fn unmap(&mut self, range: Range64) -> bool {
        let found = self.remove(range);
        if found {
            for home in &mut self.homes[..self.pages as usize] {
                if range.contains(*home) {
                    *home = GONE;
                }
            }
            self.find_bounds();
        }
        found
    }

    /// Moves homes in `from` to `to`; returns whether any was here.
    pub(super) fn remap(&mut self, from: Range64, to: u64) -> bool {
        let mut found = false;
        for home in &mut self.homes[..self.pages as usize] {
            if from.contains(*home) {
                *home = *home - from.start + to;
                found = true;
            }
        }
        if found {
            self.disturb();
            self.find_bounds();
        }
        found
    }

    fn find_bounds(&mut self) {
        let homes = self.homes[..self.pages as usize].iter().filter(|home| **home != GONE);
        let (low, high) =
            homes.fold((u64::MAX, 0), |(low, high), home| (low.min(*home), high.max(*home + PAGE)));
        self.bounds = if low < high { Range64 { start: low, end: high } } else { Range64::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x10_0000;

    fn window(pages: usize) -> Box<Window> {
        let mut window = Box::new(Window {
            pages: 0,
            armed: 0,
            armed_at_first: 0,
            faults: 0,
            requested: false,
            races: false,
            closing: false,
            disturbed: false,
            early: false,
            stale: false,
            told: 0,
            since: 0,
            began: 0,
            exposed: 0,
            arming: 0,
            ran: 0,
            until: 0,
            used: 0,
            slot: 0,
            bounds: Range64::default(),
            share: Share::default(),
            bits: [0; LARGEST / 64],
            returned: [0; LARGEST / 64],
            homes: [0; LARGEST],
        });
        window.open(START, pages, 0x7000_0000);
        (0..pages).for_each(|page| window.mark(page, true));
        window
    }

    fn runs(window: &Window) -> Vec<(usize, usize, u64)> {
        let mut runs: Vec<(usize, usize, u64)> = Vec::new();
        let next = |runs: &[(usize, usize, u64)]| runs.last().map_or(0, |run| run.0 + run.1);
        while let Some(run) = window.armed_run(next(&runs)) {
            runs.push((run.first, run.pages, run.home));
        }
        runs
    }

    #[test]
    fn later_pages_are_armed_for_less_time_and_none_while_the_program_stood_still() {
        let mut window = window(4);
        (window.since, window.began, window.arming, window.ran) = (1000, 50, 400, 400);
        let exposed = |window: &Window, page| window.exposed_by(2000, 1050, page);
        assert_eq!([0, 1, 2, 3].map(|page| exposed(&window, page)), [900, 800, 700, 600]);
        // A thread that touched the first page waited from then on.
        window.ran = 150;
        assert_eq!([0, 1, 2, 3].map(|page| exposed(&window, page)), [900, 850, 850, 850]);
    }

    #[test]
    fn an_armed_page_is_found_by_any_address_in_it() {
        let window = window(64);
        assert_eq!(window.find(START + 5 * PAGE + 123), Some(5));
        assert_eq!(window.find(START - 1), None);
        assert_eq!(window.find(START + 64 * PAGE), None);
        assert_eq!(runs(&window), [(0, 64, START)]);
    }

    #[test]
    fn removed_pages_are_armed_no_more_but_stay_at_home() {
        let mut window = window(64);
        assert!(window.remove(Range64::new(START + 2 * PAGE, 3 * PAGE)));
        assert_eq!((window.armed, window.stale, window.closing), (61, true, true));
        assert_eq!(window.find(START + 3 * PAGE), Some(3));
        assert_eq!(runs(&window), [(0, 2, START), (5, 59, START + 5 * PAGE)]);
    }

    #[test]
    fn a_part_that_moves_twice_is_found_where_it_ended() {
        let mut window = window(8);
        assert!(window.remap(Range64::new(START + 2 * PAGE, 2 * PAGE), 0x40_0000));
        assert!(window.remap(Range64::new(0x40_0000, PAGE), 0x80_0000));
        assert_eq!(window.find(0x80_0000), Some(2));
        assert_eq!(window.find(0x40_0000 + PAGE), Some(3));
        assert_eq!(window.find(START + 2 * PAGE), None);
        let expected = [(0, 2, START), (2, 1, 0x80_0000), (3, 1, 0x40_1000), (4, 4, START + 4 * PAGE)];
        assert_eq!(runs(&window), expected);
    }

    #[test]
    fn unmapped_pages_have_no_home() {
        let mut window = window(4);
        assert!(window.unmap(Range64::new(START, PAGE)));
        assert_eq!(window.find(START), None);
        assert_eq!(runs(&window), [(1, 3, START + PAGE)]);
        assert!(window.unmap(Range64::new(0, u64::MAX)));
        assert_eq!((window.armed, window.armed_run(0)), (0, None));
    }
}
