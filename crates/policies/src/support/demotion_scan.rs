//! The scan for cold pages: linear over the address space, continuing where it stopped, between two
//! watermarks (FreqTier, Algorithm 2 and sections IV-C, V-B 1; HybridTier, section 4.3).

use isotherm_core::{Move, PageId, TierId, View, Work};

use crate::Setup;
use crate::support::round::Round;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Watermarks {
    /// PROMO_WMARK: with fewer free, pages are demoted.
    pub(crate) promote: u64,
    /// DEMOTE_WMARK: until more than these are free; at least the other.
    pub(crate) demote: u64,
}

impl Watermarks {
    pub(crate) fn new(promote: f64, demote: f64, setup: &Setup) -> Self {
        let promote = setup.share(promote).max(1);
        Self { promote, demote: setup.share(demote).max(promote) }
    }

    /// Returns the pages to demote while `free` are free and promotions just lacked room for `refused`.
    pub(crate) fn wanted(self, free: u64, refused: u64) -> u64 {
        if free >= self.promote && refused == 0 {
            return 0;
        }
        (self.demote + 1).saturating_sub(free).max(refused)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    Enough,
    /// It went once around the address space and found fewer.
    Short,
    /// It went once around and found none.
    Empty,
}

#[derive(Debug, Clone)]
pub(crate) struct DemotionScan {
    /// LastScannedPage: where the next scan begins.
    cursor: PageId,
    batch: usize,
    found: Vec<(PageId, TierId)>,
    fast: Vec<u32>,
}

impl DemotionScan {
    pub(crate) fn new(batch: usize) -> Self {
        Self { cursor: PageId(0), batch, found: Vec::new(), fast: Vec::new() }
    }

    #[cfg(test)]
    pub(crate) fn begin_at(&mut self, page: PageId) {
        self.cursor = page;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.found.capacity() * size_of::<(PageId, TierId)>() + self.fast.capacity() * size_of::<u32>()
    }

    /// Plans to demote `wanted` cold fast pages, going once around the address space at most. `choose` gets
    /// fast pages in address order and appends moves of the cold ones, at most as many as it is told, leaving
    /// alone what lies behind the last of these: the next scan begins there.
    pub(crate) fn run(
        &mut self,
        wanted: u64,
        view: &mut dyn View,
        moves: &mut Vec<Move>,
        work: &mut Work,
        mut choose: impl FnMut(&[u32], u64, &mut Vec<Move>, &mut Work),
    ) -> Scan {
        let (mut round, mut left) = (Round::from(self.cursor), wanted);
        while left > 0 && !round.complete {
            self.found.clear();
            let next = view.walk(round.cursor, self.batch, &mut self.found);
            self.found.retain(|&(page, _)| round.is_new(page));
            round.proceed(next);
            self.cursor = round.cursor;
            self.fast.clear();
            let fast = self.found.iter().filter(|entry| entry.1 == TierId::FAST);
            self.fast.extend(fast.map(|entry| entry.0.0));
            work.operations += self.found.len() as u64;
            let before = moves.len();
            choose(&self.fast, left, moves, work);
            left -= (moves.len() - before) as u64;
            if let (0, Some(last)) = (left, moves.last()) {
                self.cursor = PageId(last.page.0 + 1);
            }
        }
        match left {
            0 => Scan::Enough,
            _ if left == wanted => Scan::Empty,
            _ => Scan::Short,
        }
    }
}
