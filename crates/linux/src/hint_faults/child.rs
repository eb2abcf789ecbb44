//! A child of a raw fork, past the C library: it gets copies of the pages that were armed at that moment.
//!
//! The kernel tells of the child with a userfaultfd for its memory. Until that is closed the child waits
//! where it touches a missing page or changes a mapping, so its own messages are read as well: nothing is
//! copied to where it has dropped contents, and what it has moved is copied to where it went.

use super::tables::{Tables, WINDOWS};
use super::window::{LARGEST, Run, Window};
use crate::sys::agent as sys;
use crate::sys::pages::PAGE;
use crate::sys::range::Range64;
use crate::sys::userfaultfd::{Message, Userfault, decode};

/// Most mappings that a child moves before it has its pages; with more, it finds zeros.
const MOVES: usize = 64;
/// Most generations of raw forks that begin before the first of them has its pages; further ones find zeros.
const GENERATIONS: u32 = 8;
/// Refused copies in a row, each followed by a nap, before a child is left alone: half a second.
const PATIENCE: u32 = 10_000;

pub(super) struct Child {
    userfault: Userfault,
    generation: u32,
    /// Pages of each window that the child has, or has dropped.
    settled: [[u64; LARGEST / 64]; WINDOWS],
    moves: [(Range64, u64); MOVES],
    moved: usize,
}

impl Child {
    pub(super) fn new(userfault: Userfault) -> Self {
        let (settled, moves) = ([[0; LARGEST / 64]; WINDOWS], [(Range64::default(), 0); MOVES]);
        Self { userfault, generation: 0, settled, moves, moved: 0 }
    }

    /// Copies what is armed; the child's registration ends with its descriptor.
    pub(super) fn serve(mut self, tables: &Tables) {
        for at in tables.numbers() {
            let window = tables.window_at(at);
            let mut next = 0;
            while let Some(run) = window.armed_run(next) {
                next = run.first + run.pages;
                for page in 0..run.pages {
                    if !self.copy(
                        tables,
                        window,
                        at,
                        Run { first: run.first + page, pages: 1, home: run.home + page as u64 * PAGE },
                    ) {
                        return;
                    }
                }
            }
        }
    }

    /// Copies one page; returns false if the child has ended, or cannot be served.
    fn copy(&mut self, tables: &Tables, window: &Window, at: usize, page: Run) -> bool {
        let mut missing = false;
        for _ in 0..PATIENCE {
            if self.is_settled(at, page.first) {
                return true;
            }
            match self.userfault.copy(self.place(page.home), window.stored(page.first), PAGE) {
                Err(libc::EAGAIN) => {
                    missing = false;
                    if !self.read(tables) {
                        sys::nap();
                    }
                }
                Err(libc::ESRCH) => return false,
                // It may have moved during the call: then the next one is refused until that is read.
                Err(libc::ENOENT) if !missing => missing = true,
                // It is there, or nothing is mapped there any more.
                _ => return true,
            }
        }
        false
    }

    fn is_settled(&self, window: usize, page: usize) -> bool {
        self.settled[window][page / 64] >> (page % 64) & 1 != 0
    }

    /// Returns where the child has what the parent has at `home`.
    fn place(&self, home: u64) -> u64 {
        self.moves[..self.moved].iter().fold(home, |place, (from, to)| match from.contains(place) {
            true => place - from.start + to,
            false => place,
        })
    }

    /// Reads one message of the child; returns whether there was one.
    fn read(&mut self, tables: &Tables) -> bool {
        let mut message = [[0; 4]];
        if self.userfault.read(&mut message) == 0 {
            return false;
        }
        match decode(message[0]) {
            Message::Remove(range) | Message::Unmap(range) => self.drop_pages(tables, range),
            Message::Remap { from, to, length } if self.moved < MOVES => {
                self.moves[self.moved] = (Range64::new(from, length), to);
                self.moved += 1;
            }
            Message::Fork(descriptor) => {
                let userfault = Userfault::of_child(descriptor);
                if self.generation < GENERATIONS {
                    let (generation, settled, moves) = (self.generation + 1, self.settled, self.moves);
                    Self { userfault, generation, settled, moves, moved: self.moved }.serve(tables);
                }
            }
            // A fault ends with the registration.
            Message::Remap { .. } | Message::Fault(_) | Message::Other => {}
        }
        true
    }

    fn drop_pages(&mut self, tables: &Tables, range: Range64) {
        for at in tables.numbers() {
            let window = tables.window_at(at);
            let mut next = 0;
            while let Some(run) = window.armed_run(next) {
                next = run.first + run.pages;
                for page in run.first..next {
                    let home = run.home + (page - run.first) as u64 * PAGE;
                    if range.contains(self.place(home)) {
                        self.settled[at][page / 64] |= 1 << (page % 64);
                    }
                }
            }
        }
    }
}
