//! CLOCK: FIFO in which a page that was used since the hand last passed gets a second chance.
//!
//! Corbató, "A paging experiment with the Multics system", MIT Project MAC report M-384, 1968. Its parameter
//! is the number of reference bits: one here, clear when a page enters.

use isotherm_core::PageId;

use super::{Access, Replacement};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum State {
    Out,
    /// Held, not used since it entered or the hand passed.
    Unused,
    /// Held and used.
    Used,
}

/// CLOCK with one reference bit. See the module.
#[derive(Debug, Clone)]
pub struct Clock {
    /// The pages held, around the clock.
    frames: Vec<PageId>,
    hand: usize,
    capacity: usize,
    /// By page, so that a hit needs no way from the page to its frame.
    state: Vec<State>,
}

impl Clock {
    /// Returns an empty cache of `capacity` (at least 1) of the pages below `pages`.
    pub fn new(pages: usize, capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self { frames: Vec::with_capacity(capacity), hand: 0, capacity, state: vec![State::Out; pages] }
    }

    /// Turns the hand past every used page, whose bit it clears, and replaces the first unused one.
    fn replace(&mut self, page: PageId) -> PageId {
        loop {
            let frame = &mut self.frames[self.hand];
            self.hand = if self.hand + 1 == self.capacity { 0 } else { self.hand + 1 };
            let state = &mut self.state[frame.index()];
            if *state == State::Unused {
                *state = State::Out;
                return std::mem::replace(frame, page);
            }
            *state = State::Unused;
        }
    }
}

impl Replacement for Clock {
    const HIT_LINES: u64 = 1;
    /// The page's state and, at a hit ratio of a half, those of the victim and of one page passed over.
    const MISS_LINES: u64 = 3;

    #[inline]
    fn access(&mut self, page: PageId) -> Access {
        let state = &mut self.state[page.index()];
        if *state != State::Out {
            *state = State::Used;
            return Access::Hit;
        }
        *state = State::Unused;
        if self.frames.len() < self.capacity {
            self.frames.push(page);
            return Access::Miss { evicted: None };
        }
        Access::Miss { evicted: Some(self.replace(page)) }
    }

    fn contains(&self, page: PageId) -> bool {
        self.state[page.index()] != State::Out
    }

    fn len(&self) -> usize {
        self.frames.len()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn grow(&mut self, pages: usize) {
        if pages > self.state.len() {
            self.state.resize(pages, State::Out);
        }
    }

    fn bytes(&self) -> usize {
        self.capacity * size_of::<PageId>() + size_of_val(&self.state[..])
    }
}
