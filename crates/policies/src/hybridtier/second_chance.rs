//! The second chance (HybridTier, sections 3.1 and 4.3): pages of high frequency but low momentum are marked
//! with their count, revisited after a minute, and demoted if the count says that nobody accessed them.
//!
//! Counters are halved now and then, and the saved counts with them: cooling alone is no change.

use std::collections::VecDeque;

use isotherm_core::{Nanos, PageId};

use crate::support::page_bits::PageBits;

/// A page and the frequency that it had when it was marked, halved as often as the counters were since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) page: PageId,
    pub(super) count: u16,
}

#[derive(Debug, Clone, Copy)]
struct Cohort {
    marked: Nanos,
    pages: usize,
}

#[derive(Debug, Clone)]
pub(super) struct SecondChances {
    marks: VecDeque<Mark>,
    cohorts: VecDeque<Cohort>,
    marked: PageBits,
    revisit: Nanos,
    capacity: usize,
}

impl SecondChances {
    /// Creates room for `capacity` marks of pages below `pages`, each revisited after `revisit`.
    pub(super) fn new(capacity: usize, revisit: Nanos, pages: usize) -> Self {
        let (marks, cohorts) = (VecDeque::new(), VecDeque::new());
        Self { marks, cohorts, marked: PageBits::new(pages), revisit, capacity }
    }

    /// Marks a page, unless it is marked already or there is no room for another mark.
    pub(super) fn mark(&mut self, page: PageId, count: u32, now: Nanos) {
        if self.marks.len() >= self.capacity || !self.marked.insert(page) {
            return;
        }
        self.marks.push_back(Mark { page, count: u16::try_from(count).unwrap_or(u16::MAX) });
        match self.cohorts.back_mut() {
            Some(last) if last.marked == now => last.pages += 1,
            _ => self.cohorts.push_back(Cohort { marked: now, pages: 1 }),
        }
    }

    /// Moves at most `limit` marks whose time has come to `due`, which is emptied first.
    pub(super) fn take_due(&mut self, now: Nanos, limit: usize, due: &mut Vec<Mark>) {
        due.clear();
        while let Some(first) = self.cohorts.front_mut().filter(|first| now - first.marked >= self.revisit) {
            let taken = first.pages.min(limit - due.len());
            due.extend(self.marks.drain(..taken));
            first.pages -= taken;
            if first.pages > 0 {
                break;
            }
            self.cohorts.pop_front();
        }
        due.iter().for_each(|mark| self.marked.remove(mark.page));
    }

    pub(super) fn clear(&mut self) {
        self.marks.drain(..).for_each(|mark| self.marked.remove(mark.page));
        self.cohorts.clear();
    }

    pub(super) fn cool(&mut self) {
        self.marks.iter_mut().for_each(|mark| mark.count /= 2);
    }

    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.marks.capacity() * size_of::<Mark>()
            + self.cohorts.capacity() * size_of::<Cohort>()
            + self.marked.bytes()
    }
}
