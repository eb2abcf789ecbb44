//! A pass: every window of the program's present memory once, in random order.
//!
//! So the choice is uniform and even: after n passes each page was armed n times. If more windows exist than
//! fit, a uniform sample is taken. The cuts between windows shift from pass to pass.

use super::mappings::{BUFFER, Maps};
use super::presence::{Presence, Present, RUNS};
use super::random::Random;
use crate::sys::pages::PAGE;
use crate::sys::plain::plain;
use crate::sys::range::Range64;

/// Most windows of a pass.
const WINDOWS: usize = 1 << 16;
const HUGE: u64 = 2 << 20;
const HUGE_FLAG: u64 = 1 << 11;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) start: u64,
    pub(super) pages: u64,
    pub(super) huge: bool,
}

/// Present pages of the program; those that are the agent's alone are in neither number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Shares {
    pub(super) may_be_armed: u64,
    /// Of files, shared, executable or protected, of libraries that the agent uses, or excluded by the
    /// [gate](super::gate).
    pub(super) left_out: u64,
}

/// The windows of a pass. All zero is an empty pass.
pub(super) struct Pass {
    /// A page's address, and in the lower twelve bits a number of pages and [`HUGE_FLAG`].
    windows: [u64; WINDOWS],
    kept: usize,
    next: usize,
    /// Windows found, of which `kept` were kept.
    seen: u64,
    /// Monotonic nanoseconds when it began.
    pub(super) began: u64,
    pub(super) buffer: [u8; BUFFER],
}

plain!(Zeroed for Pass { windows, kept, next, seen, began, buffer });

impl Pass {
    pub(super) fn next(&mut self) -> Option<Candidate> {
        let word = *self.windows.get(..self.kept)?.get(self.next)?;
        self.next += 1;
        Some(Candidate { start: word & !(PAGE - 1), pages: word & 0x3ff, huge: word & HUGE_FLAG != 0 })
    }

    /// Scans all memory but the agent's `own`; returns how much may be armed. `allowed` finds the first part
    /// of a range that may be, or an empty one at its end.
    pub(super) fn begin(
        &mut self,
        maps: &Maps,
        presence: &Presence,
        random: &mut Random,
        window: u64,
        own: impl Fn(Range64) -> bool,
        allowed: impl Fn(Range64) -> Range64,
    ) -> Shares {
        (self.kept, self.next, self.seen) = (0, 0, 0);
        let mut shares = Shares::default();
        let phase = random.below(window) * PAGE;
        let mut buffer = std::mem::replace(&mut self.buffer, [0; BUFFER]);
        maps.walk(&mut buffer, |mapping| {
            let mut rest = mapping.range;
            if !mapping.library && own(rest) {
                return true;
            }
            if mapping.library || !mapping.plain {
                shares.left_out += presence.count(rest);
                return true;
            }
            while rest.length() > 0 {
                let part = allowed(rest);
                shares.left_out += presence.count(Range64 { start: rest.start, end: part.start });
                shares.may_be_armed += self.add(part, presence, random, window * PAGE, phase);
                rest.start = part.end;
            }
            true
        });
        for at in (1..self.kept).rev() {
            self.windows.swap(at, random.below(at as u64 + 1) as usize);
        }
        shares
    }

    fn add(
        &mut self,
        range: Range64,
        presence: &Presence,
        random: &mut Random,
        size: u64,
        phase: u64,
    ) -> u64 {
        let mut pages = 0;
        let mut runs = [Present::default(); RUNS];
        let mut start = range.start;
        while start < range.end {
            let Ok((found, end)) = presence.scan(Range64 { start, end: range.end }, &mut runs) else {
                break;
            };
            for run in &runs[..found] {
                pages += run.range.length() / PAGE;
                self.cut(*run, random, size, phase);
            }
            if end <= start {
                break;
            }
            start = end;
        }
        pages
    }

    fn cut(&mut self, run: Present, random: &mut Random, size: u64, phase: u64) {
        let mut start = run.range.start;
        while start < run.range.end {
            let whole = run.huge && start.is_multiple_of(HUGE) && start + HUGE <= run.range.end;
            let next = match run.huge {
                true => (start / HUGE + 1) * HUGE,
                false => start + size - (start + size - phase) % size,
            };
            let end = next.min(run.range.end);
            if whole || !run.huge {
                let flag = if whole { HUGE_FLAG } else { 0 };
                self.keep(start | ((end - start) / PAGE) | flag, random);
            }
            start = end;
        }
    }

    /// Keeps a window, or a uniform sample of them.
    fn keep(&mut self, word: u64, random: &mut Random) {
        self.seen += 1;
        if self.kept < WINDOWS {
            self.windows[self.kept] = word;
            self.kept += 1;
        } else if let Some(place) = self.windows.get_mut(random.below(self.seen) as usize) {
            *place = word;
        }
    }

    pub(super) fn is_left(&self) -> bool {
        self.next < self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass() -> Box<Pass> {
        Box::new(Pass { windows: [0; WINDOWS], kept: 0, next: 0, seen: 0, began: 0, buffer: [0; BUFFER] })
    }

    fn pages_of(pass: &mut Pass) -> Vec<u64> {
        let mut pages = Vec::new();
        while let Some(window) = pass.next() {
            pages.extend((0..window.pages).map(|page| window.start + page * PAGE));
        }
        pages.sort_unstable();
        pages
    }

    #[test]
    fn every_present_page_is_in_one_window() {
        let run = Present { range: Range64 { start: 0x7000, end: 0x7000 + 1000 * PAGE }, huge: false };
        for phase in [0, 3, 31] {
            let mut pass = pass();
            pass.cut(run, &mut Random(1), 32 * PAGE, phase * PAGE);
            let expected: Vec<u64> = (0..1000).map(|page| 0x7000 + page * PAGE).collect();
            assert_eq!(pages_of(&mut pass), expected);
            assert!(pass.windows[..pass.kept].iter().all(|word| (1..=32).contains(&(word & 0x3ff))));
        }
    }

    #[test]
    fn huge_pages_are_windows_of_their_own() {
        let mut pass = pass();
        let run = Present { range: Range64 { start: HUGE, end: 3 * HUGE }, huge: true };
        pass.cut(run, &mut Random(1), 32 * PAGE, PAGE);
        let first = pass.next();
        assert_eq!(first, Some(Candidate { start: HUGE, pages: 512, huge: true }));
        assert_eq!(pages_of(&mut pass).len(), 512);
    }

    /// One present page here is found, and nothing of the C library is.
    #[test]
    fn a_pass_finds_this_program() {
        let (maps, presence) = (Maps::open().unwrap(), Presence::open().unwrap());
        let memory = vec![1u8; 8 << 20];
        let page = (memory.as_ptr() as u64 + 100 * PAGE) & !(PAGE - 1);
        let mut pass = pass();
        pass.begin(&maps, &presence, &mut Random(7), 32, |_| false, |range| range);
        assert!(pages_of(&mut pass).binary_search(&page).is_ok());
        pass.begin(&maps, &presence, &mut Random(7), 32, |range| range.contains(page), |range| range);
        assert!(pages_of(&mut pass).binary_search(&page).is_err());
    }

    /// Threads' stacks counted as memory that may be armed, and the agent's own as left out.
    #[test]
    fn what_is_excluded_is_left_out_and_what_is_the_agents_is_not() {
        const EXCLUDED: u64 = 4096;
        let (maps, presence) = (Maps::open().unwrap(), Presence::open().unwrap());
        let memory = vec![1u8; 32 << 20];
        let start = (memory.as_ptr() as u64).next_multiple_of(PAGE);
        let stack = Range64::new(start + 64 * PAGE, EXCLUDED * PAGE);
        let allowed = |range: Range64| match range {
            _ if stack.contains(range.start) => Range64 { start: stack.end, end: range.end },
            _ if range.contains(stack.start) => Range64 { start: range.start, end: stack.start },
            _ => range,
        };
        let mut pass = pass();
        let mut shares = |own: &dyn Fn(Range64) -> bool, allowed: &dyn Fn(Range64) -> Range64| {
            let shares = pass.begin(&maps, &presence, &mut Random(7), 32, own, allowed);
            (shares, pages_of(&mut pass))
        };
        // Other tests change other memory, and libraries are left out in any case.
        let elsewhere = |range: Range64| !range.contains(start);
        let (whole, _) = shares(&elsewhere, &|range| range);
        let (parts, pages) = shares(&elsewhere, &allowed);
        assert!(pages.contains(&start) && pages.iter().all(|page| !stack.contains(*page)));
        assert!(parts.left_out >= whole.left_out + EXCLUDED - 500, "{whole:?} {parts:?}");
        let (none, pages) = shares(&|_| true, &|range| range);
        assert!((none.may_be_armed, pages.len()) == (0, 0) && none.left_out < 500 + whole.left_out);
    }
}
